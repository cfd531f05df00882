"""Loads that are under way in this process: one for each key, in a task of its own, for all who want the value."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any

import msgspec

from holdfast.guards.deadline import UNTIL, time_left
from holdfast.kernel.clock import timeout
from holdfast.kernel.context import become, context
from holdfast.kernel.errors import DeadlinePassed, HoldfastError, NotOpen, TimedOut, UsageError
from holdfast.kernel.loops import PerLoop
from holdfast.kernel.spawn import cancel, is_cancelled, over, start
from holdfast.store.cache_records import Why
from holdfast.views.cache_keys import Wanted

Place = tuple[str, str]  # where it is kept, and its key
# The loads that this code is a part of: one that waits for itself would wait for ever.
_inside: ContextVar[tuple[Flight, ...]] = ContextVar("holdfast_loads", default=())


class Flight:
    """Whoever joins it gets what it brings: the text of the value, or None when it has found that another is at it."""

    task: asyncio.Task[str | None]

    def __init__(self, wanted: Wanted, why: Why) -> None:
        self.wanted, self.why = wanted, why
        self.has_begun = False  # the function is called: what changes from now on, it may not have seen
        self.is_outdated = False  # it was invalidated here: who comes now shall not have what it brings
        self.asked = 0  # how often it has asked for the value: of where that is kept, or of the function
        self.brings = 0  # the answer to which of these questions
        self.is_kept = False  # and it was kept: nothing was invalidated since that question

    @property
    def is_for_refreshing(self) -> bool:
        """Whether it serves one who wants what is newer than now."""
        return self.why is Why.FORCED and not self.has_begun

    async def joined(self) -> str | None:
        """Its end. Whoever gives up, by cancellation or deadline, leaves it to the others.

        None, too, for who came after the question whose answer it brings, when that was not kept: another process may have
        invalidated it before he came.
        """
        self._refuse_itself()
        came = self.asked
        found: str | None = await self._waited(asyncio.shield(self.task))
        return found if self.is_kept or came < self.brings else None

    async def landed(self) -> None:
        """The same, however it ends."""
        self._refuse_itself()
        await self._waited(over(self.task))

    def _refuse_itself(self) -> None:
        if self in _inside.get():
            raise UsageError(
                f"The load of {self.wanted.key!r} asks for its own value, and would wait for itself. Call the function "
                "behind the cache: it is `__wrapped__`."
            )

    async def _waited(self, end: Awaitable[Any]) -> Any:
        left = time_left()
        if left is None:
            return await self._heard(end)
        limit = timeout(left)
        try:
            async with limit:
                return await self._heard(end)
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimedOut(
                f"The value of {self.wanted.key!r} was not there before the deadline. Its load goes on."
            ) from None

    async def _heard(self, end: Awaitable[Any]) -> Any:
        try:
            return await end
        except asyncio.CancelledError:
            if is_cancelled() or not self.task.cancelled():
                raise
        raise NotOpen(f"The load of {self.wanted.key!r} was given up: this Holdfast was left meanwhile.")


class Flights:
    """Those of all functions. Each event loop has its own; where values are kept, loops meet as processes do."""

    def __init__(self) -> None:
        self._here: PerLoop[dict[Place, Flight]] = PerLoop(dict)
        # Counted as they come and go: each reader of a stale value asks, and thousands may be under way.
        self._numbers: PerLoop[Counter[Why]] = PerLoop(Counter)
        self._all: dict[
            tuple[str, Flight], None
        ] = {}  # in order: what is repeated in a simulation ends them alike

    def get(self, place: str, key: str) -> Flight | None:
        flight = self._here.get().get((place, key))
        return None if flight is None or flight.task.done() else flight

    def begin(
        self, place: str, flight: Flight, fly: Callable[[Flight], Coroutine[Any, Any, str | None]]
    ) -> Flight:
        """In a context without the deadline of whoever comes first: others may have more time."""
        here, name, numbers = self._here.get(), (place, flight.wanted.key), self._numbers.get()
        flight.task = start(fly(flight), name=f"cache:{flight.wanted.key}", context=_without_deadline(flight))
        here[name] = flight
        numbers[flight.why] += 1
        self._all[place, flight] = None

        def ended(task: asyncio.Task[str | None]) -> None:
            self._all.pop((place, flight), None)
            numbers[flight.why] -= 1
            if here.get(name) is flight:
                del here[name]
            if not task.cancelled():
                task.exception()  # it was told where it happened, and there may be nobody who waits

        flight.task.add_done_callback(ended)
        return flight

    def number(self, why: Why) -> int:
        return self._numbers.get()[why]

    def outdate(self, place: str, kind: str, names: frozenset[str]) -> None:
        """Those of these keys or tags: who comes from now on waits for the next one."""
        for where, flight in self._of_all():
            has = (flight.wanted.key,) if kind == "key" else flight.wanted.tags
            if where == place and not names.isdisjoint(has):
                flight.is_outdated = True

    async def stop(self) -> None:
        """End those of this loop, and ask the others to."""
        loop, ending = asyncio.get_running_loop(), []
        for _, flight in self._of_all():
            cancel(flight.task)
            if flight.task.get_loop() is loop:
                ending.append(flight.task)
        await over(*ending)

    def _of_all(self) -> Iterator[tuple[str, Flight]]:
        return iter(tuple(self._all))


def check_time() -> None:
    """Whoever must wait needs time to."""
    left = time_left()
    if left is not None and left <= 0:
        raise DeadlinePassed("There is no time left to wait for a value that must be loaded.")


def given_up(key: str) -> HoldfastError:
    return HoldfastError(f"The function that loads {key!r} was cancelled from inside. Its callers are not.")


def _without_deadline(flight: Flight) -> contextvars.Context:
    copied = contextvars.copy_context()
    copied.run(_enter, flight)
    return copied


def _enter(flight: Flight) -> None:
    _inside.set((*_inside.get(), flight))
    UNTIL.set(None)
    become(msgspec.structs.replace(context(), deadline=None))
