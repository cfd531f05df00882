"""One flight: get the right to load, call the function, keep its value; or wait for the process that has the right."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

from holdfast.kernel.awaits import is_async
from holdfast.kernel.clock import look_after, monotonic, sleep, timeout
from holdfast.kernel.errors import TimedOut
from holdfast.kernel.names import HUNDRED_YEARS
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import end, is_cancelled, spawn, to_its_end
from holdfast.kernel.telemetry import note
from holdfast.kernel.threads import Caller
from holdfast.store.cache_records import Entry, Load, Why
from holdfast.views.cache_flights import Flight, given_up
from holdfast.views.cache_keys import Wanted
from holdfast.views.cache_place import Place
from holdfast.views.cache_terms import Terms
from holdfast.views.cache_values import Values

_MOST_LOADS = 3  # of one flight whose value is invalidated again and again
_FIRST_LOOK, _LAST_LOOK = 0.01, 0.25  # seconds between looks for the value of another process, growing


class Loader:
    """Of one function. What it brings is the text of a value."""

    def __init__(
        self,
        function: Callable[..., Any],
        values: Values,
        terms: Terms,
        place: Place,
        threads: Callable[[], Caller],
    ) -> None:
        self._function, self._values, self._terms, self._place = function, values, terms, place
        self._threads = threads
        self._is_async = is_async(function)

    async def fly(self, flight: Flight) -> str | None:
        """None: nobody waits for this refresh, and another is at it, or nothing can be kept."""
        why, text = flight.why, None
        gives_up = monotonic() + self._terms.wait
        for _ in range(_MOST_LOADS):
            begun = await self._right(flight, why, gives_up)
            if isinstance(begun, Entry):
                flight.brings = flight.asked
                return begun.value
            if begun is None and why is Why.STALE:
                return None  # what it would load could not be kept, and nobody waits for it
            if begun is None:  # also when an earlier load was outdated: who came since wants newer
                return await self._alone(flight)
            text = await self._with_right(flight, begun)
            is_kept = await self._keep(begun, text)
            flight.is_kept = is_kept is True
            if is_kept is not False or flight.is_outdated:
                break
            note("cache.outdated", place=self._place.name, key=begun.key)
            if why is Why.FORCED:
                break  # whoever refreshes has what he asked for; what is kept now may be older than that
            # Those who came after the invalidation have joined this flight, too: they get what is newer.
            why = Why.MISSING
        return text

    # --- the right to load ---

    async def _right(self, flight: Flight, why: Why, gives_up: float) -> Load | Entry | None:
        """It, or what another has loaded meanwhile. None: there is no place to ask, or another takes too long."""
        wanted = flight.wanted
        while True:
            flight.asked += 1
            begun = await self._place.begin(wanted, lease=self._terms.lease, why=why)
            if not isinstance(begun, Entry):
                return begun
            if begun.is_fresh:
                return begun if self._values.is_readable(begun, wanted) else None
            if why is Why.STALE:
                return Entry()
            if (found := await self._of_another(flight, gives_up)) is not None:
                return found
            if monotonic() >= gives_up:
                note("cache.waited_in_vain", place=self._place.name, key=wanted.key)
                return None

    async def _of_another(self, flight: Flight, until: float) -> Entry | None:
        """What another process loads. None: it has given up or died, the time is over, or the place does not answer."""
        pause = _FIRST_LOOK
        while (left := until - monotonic()) > 0:
            await look_after(jittered(min(pause, left)))
            pause = min(pause * 1.5, _LAST_LOOK)
            flight.asked += 1
            entry = await self._place.look(flight.wanted)
            if entry is not None and self._values.is_readable(entry, flight.wanted):
                return entry
            if entry is None or not entry.is_loading:
                return None
        return None

    async def _with_right(self, flight: Flight, load: Load) -> str:
        """It is held meanwhile, and given back when the function fails."""
        keeper = spawn(self._hold(load), name=f"cache:{load.key}:lease")
        try:
            return await self._alone(flight)
        except BaseException as error:
            if isinstance(error, Exception):
                note(
                    "cache.load_failed",
                    place=self._place.name,
                    key=load.key,
                    why=str(flight.why),
                    error=self._values.told(error),
                )
            await to_its_end(self._place.abandon(load, rest=self._terms.rest()))
            raise
        finally:
            await end(keeper)

    async def _hold(self, load: Load) -> None:
        while True:
            await sleep(self._terms.lease / 3)
            if await self._place.renew(load, lease=self._terms.lease) is False:
                note("cache.lease_lost", place=self._place.name, key=load.key)
                return

    async def _keep(self, load: Load, text: str) -> bool | None:
        """False: it was invalidated since, or the right was lost. None: the place does not answer."""
        is_kept = await self._place.put(load, text, fresh=self._terms.fresh_for(), stale=self._terms.stale)
        if is_kept is False:  # the right may be there still: nobody shall wait for that
            await self._place.abandon(load, rest=0.0)
        return is_kept

    # --- the function ---

    async def _alone(self, flight: Flight) -> str:
        flight.asked, flight.has_begun = flight.asked + 1, True
        flight.brings = flight.asked
        return await self.load(flight.wanted)

    async def load(self, wanted: Wanted) -> str:
        """Call the function; nothing is kept by this."""
        seconds = HUNDRED_YEARS if self._terms.timeout is None else self._terms.timeout
        limit = timeout(seconds)
        try:
            async with limit:
                value = await self._called(wanted)
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimedOut(f"{self._values.where} took longer than its timeout of {seconds:g} s.") from None
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            raise given_up(wanted.key) from None
        return self._values.written(value)

    async def _called(self, wanted: Wanted) -> Any:
        if self._is_async:
            return await self._function(*wanted.args, **wanted.kwargs)
        value = await self._threads().call(functools.partial(self._function, *wanted.args, **wanted.kwargs))
        return await value if inspect.isawaitable(value) else value  # a plain decorator may hide a coroutine
