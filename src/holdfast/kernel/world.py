"""The seam to everything that cannot be repeated: clocks, chance and threads. A simulation is another World."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

T = TypeVar("T")
Item_contra = TypeVar("Item_contra", contravariant=True)


class Mailbox(Protocol[Item_contra]):
    """Items for one thread. Anyone may put; only the thread that owns it takes."""

    def put(self, item: Item_contra, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Take(Generic[T]):
    """Wait until the mailbox has something, then take all of it; an empty list when `timeout` ends first."""

    mailbox: Mailbox[T]
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait this many seconds."""

    seconds: float


# A thread's body is a generator that yields what it waits for. Production drives it on a real thread,
# a simulation as a task of its loop, so the same lines run in both.
Body: TypeAlias = Generator[Take[Any] | Pause, Any, None]


class Thread(Protocol):
    def alive(self) -> bool: ...
    async def ended(self) -> None:
        """Return when the body has returned."""


class Beside(Protocol):
    """A coroutine on an event loop of its own, which goes on when the loop of its starter stands still."""

    def post(self, call: Callable[[], object], /) -> None:
        """Have this called on its loop, from anywhere."""

    async def ended(self) -> None:
        """Return when the coroutine has returned."""


class Flag(Protocol):
    """One thread waits for it, in `pause`; any other raises it."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None, /) -> bool: ...


class Kind(Enum):
    """What goes on inside a limit of time."""

    WORK = "work"  # something is done
    NEWS = "news"  # nothing but a wait for being told
    LOOK = "look"  # the same, for what others may change without telling: it is worth looking again


class Limit(Protocol):
    """An async block that raises TimeoutError when its time is over, as `asyncio.timeout` does."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None: ...
    def expired(self) -> bool:
        """Whether its time was over."""

    def reschedule(self, when: float | None, /) -> None:
        """End at this time of the event loop's clock; None: without end."""


class Alarm(Protocol):
    def cancel(self) -> None:
        """It need not ring."""


class World(Protocol):
    def now(self) -> float:
        """Seconds since 1970 on this process's wall clock. It may jump; nothing may be owned by it."""

    def host_now(self) -> float:
        """Seconds since 1970 on the clock of the machine that holds a SQLite file: that store's database clock."""

    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float, /) -> None: ...
    def limit(self, seconds: float, kind: Kind, /) -> Limit: ...
    def after(self, seconds: float, call: Callable[..., object], /, *args: object) -> Alarm: ...
    def pause(self, seconds: float | None, flag: Flag | None, /) -> bool:
        """Let this thread stand still until the time is over (None: without end) or the flag is raised; says whether it is."""

    def random(self) -> float: ...
    def random_bytes(self, count: int, /) -> bytes: ...
    def mailbox(self) -> Mailbox[Any]: ...
    def start_thread(self, name: str, body: Body, /) -> Thread: ...
    def start_beside(self, name: str, main: Callable[[], Coroutine[Any, Any, None]], /) -> Beside: ...
    def owns(self, close: Callable[[], None], /) -> Callable[[], None]:
        """Say that this process's death ends a thing by `close`; returns how to say that it ended by itself."""


class LoopTimers:
    """The timers of a World whose time goes by itself: those of the event loop."""

    async def sleep(self, seconds: float, /) -> None:
        await asyncio.sleep(seconds)

    def limit(self, seconds: float, kind: Kind, /) -> Limit:  # noqa: ARG002  time does not stand still
        return asyncio.timeout(seconds)

    def after(self, seconds: float, call: Callable[..., object], /, *args: object) -> Alarm:
        return asyncio.get_running_loop().call_later(seconds, call, *args)


_current: ContextVar[World | None] = ContextVar("holdfast_world", default=None)
_reality: World | None = None


def current() -> World:
    """The world this code runs in: the real one, unless a simulation or a test has put another in its place."""
    return _current.get() or _reality or _real()


@contextmanager
def inhabit(world: World) -> Generator[World, None, None]:
    """Run the block, and every task started in it, in another world."""
    mark = _current.set(world)
    try:
        yield world
    finally:
        _current.reset(mark)


def _real() -> World:
    global _reality  # noqa: PLW0603  asked for at every turn, and always the same
    from holdfast.kernel.reality import REALITY  # noqa: PLC0415  reality imports the types above

    _reality = REALITY
    return REALITY
