"""Time, asked of the current World."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from holdfast.kernel.world import Flag, current


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


def timeout(seconds: float) -> asyncio.Timeout:
    """Raises TimeoutError when its block takes longer, by the loop's clock, which a simulation moves."""
    return asyncio.timeout(seconds)


def shorten(limit: asyncio.Timeout, seconds: float) -> None:
    """Have a timeout end in so many seconds, unless it does before."""
    until = asyncio.get_running_loop().time() + seconds
    if not limit.expired() and until < (limit.when() or until):
        limit.reschedule(until)


def after(seconds: float, call: Callable[..., object], *args: object) -> asyncio.TimerHandle:
    """Have it called in a while, by the loop's clock; `cancel()` the answer when it need not be."""
    return asyncio.get_running_loop().call_later(seconds, call, *args)


def moment(seconds: float) -> datetime:
    """Seconds since 1970 as a date and time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
