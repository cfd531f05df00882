"""Time, asked of the current World; and patience with what is outside of it.

Under a test's clock the two differ. What the program waits for by its own rules (a delay, a timeout, a lease) goes by the
World's clock: `sleep`, `timeout`, `after`. What a database, a broker or a process takes goes by real time, whatever clock
a test holds: `patience`, `recover`. In production and in a simulation both are the event loop's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from holdfast.kernel.world import Alarm, Flag, Kind, Limit, current


def now() -> float:
    """This process's wall clock, in seconds since 1970: for people and for ids, never for ownership."""
    return current().now()


def host_now() -> float:
    """The clock of the machine that holds a SQLite file, in seconds since 1970."""
    return current().host_now()


def monotonic() -> float:
    """Seconds that only grow; the difference of two readings is a duration."""
    return current().monotonic()


async def sleep(seconds: float) -> None:
    await current().sleep(seconds)


def pause(seconds: float | None, flag: Flag | None = None) -> bool:
    """`sleep` for plain functions in threads. It ends early when the flag is raised, and says whether it is."""
    return current().pause(seconds, flag)


def timeout(seconds: float) -> Limit:
    """Raises TimeoutError when its block takes longer."""
    return current().limit(seconds, Kind.WORK)


def news_within(seconds: float) -> Limit:
    """`timeout` around a block that only waits to be told."""
    return current().limit(seconds, Kind.NEWS)


def look_within(seconds: float) -> Limit:
    """The same, for what others may change without telling: it ends in real time too, so that the caller looks again."""
    return current().limit(seconds, Kind.LOOK)


async def look_after(seconds: float) -> None:
    """`sleep` before the caller looks again at what others may change: it ends in real time too."""
    try:
        async with look_within(seconds):
            await asyncio.get_running_loop().create_future()
    except TimeoutError:
        return


def patience(seconds: float) -> asyncio.Timeout:
    """`timeout` for the answers of a database, a broker or a process, by the loop's clock, which a simulation moves."""
    return asyncio.timeout(seconds)


async def recover(seconds: float) -> None:
    """`sleep` before a database, a broker or a process is asked again."""
    await asyncio.sleep(seconds)


def later(seconds: float, call: Callable[..., object], *args: object) -> asyncio.TimerHandle:
    """`after` by the clock by which `patience` goes."""
    return asyncio.get_running_loop().call_later(seconds, call, *args)


def patient() -> float:
    """Seconds that only grow, of the clock by which `patience` goes."""
    return asyncio.get_running_loop().time()


def shorten(limit: asyncio.Timeout, seconds: float) -> None:
    """Have a patience end in so many seconds, unless it does before."""
    until = asyncio.get_running_loop().time() + seconds
    if not limit.expired() and until < (limit.when() or until):
        limit.reschedule(until)


def after(seconds: float, call: Callable[..., object], *args: object) -> Alarm:
    """Have it called in a while; `cancel()` the answer when it need not be."""
    return current().after(seconds, call, *args)


def moment(seconds: float) -> datetime:
    """Seconds since 1970 as a date and time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
