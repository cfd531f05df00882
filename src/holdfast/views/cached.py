"""A cached function: what is fresh is served, what is stale is served and refreshed behind, what is missing is loaded once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

from holdfast.jobs.blocking import Portal
from holdfast.kernel.awaits import Args, by_context, must_await
from holdfast.kernel.errors import UsageError
from holdfast.kernel.telemetry import note
from holdfast.kernel.threads import Caller
from holdfast.store.cache_records import Entry, Why
from holdfast.views.cache_flights import Flight, Flights, check_time
from holdfast.views.cache_keys import Names, Wanted
from holdfast.views.cache_loading import Loader
from holdfast.views.cache_place import Place
from holdfast.views.cache_terms import Terms
from holdfast.views.cache_values import Values

P = ParamSpec("P")
R = TypeVar("R")
_MOST_REFRESHES = 100  # at a time in this process; beyond that a stale value is served as it is


@dataclass(frozen=True)
class Aged(Generic[R]):
    """A value, and how old it was when it was served."""

    value: R
    age: float  # seconds since it was kept, by the clock of whoever keeps it; 0: it was loaded for this call
    is_fresh: bool  # if not, somebody in the fleet makes it new, or could not do so just now


class Home(Protocol):
    """What all cached functions of a program share."""

    flights: Flights

    def threads(self) -> Caller:
        """Those of this event loop, for plain functions."""

    @property
    def portal(self) -> Portal: ...


def _name(args: Args) -> str:
    name: str = args[0].__name__
    return name


class Cached(Generic[P, R]):
    """`await gallery(7)` calls it through the cache; `gallery.__wrapped__` is the function itself."""

    def __init__(
        self, function: Callable[..., Any], names: Names, terms: Terms, place: Place, home: Home
    ) -> None:
        functools.update_wrapper(self, function)
        self._names, self._place, self._home = names, place, home
        self._values = Values(function, names.where)
        self._loader = Loader(function, self._values, terms, place, home.threads)

    def __repr__(self) -> str:
        return f"Cached({self._names.where}, on={self._place.name!r})"

    @must_await("cached", name=_name, to=by_context)
    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The value: at once when there is one that may be served, else after its load. Each caller has a copy of its own."""
        return (await self.aged(*args, **kwargs)).value

    async def aged(self, *args: P.args, **kwargs: P.kwargs) -> Aged[R]:
        """The same value as a call brings, and how old it is: for a page that says so."""
        wanted = self._names.wanted(args, kwargs)
        entry = await self._place.look(wanted)
        found = self._values.found(entry, wanted)
        if found is not None and entry is not None:
            if not entry.is_fresh:
                self._refresh_behind(wanted, entry)
            return Aged(cast("R", found[0]), entry.age, entry.is_fresh)
        if (
            entry is not None and entry.value is not None and self._is_free()
        ):  # nobody can use it: out of the way
            await self._place.invalidate("key", (wanted.key,))
        return Aged(self._value(await self._awaited(wanted)), 0.0, is_fresh=True)

    @must_await("cached.refresh", name=_name, to=by_context)
    async def refresh(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Load it now, whatever is kept, and keep that instead. The load begins after this call; its error is raised here.

        Those who ask for it while one is under way share the next one.
        """
        wanted = self._names.wanted(args, kwargs)
        self._place.kept.check_free()
        check_time()
        while (flight := self._flight(wanted)) is not None and not flight.is_for_refreshing:
            await flight.landed()
        text = await (flight or self._begin(wanted, Why.FORCED)).joined()
        assert text is not None, "a forced load brings a value"
        return self._value(text)

    @must_await("cached.invalidate", name=_name, to=by_context)
    async def invalidate(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Forget the value of this call, also one that is being loaded now.

        False: where it is kept does not answer. This process does it as soon as it can, and does not serve it meanwhile.
        """
        wanted = self._names.wanted(args, kwargs)
        self._place.kept.check_free()
        self._home.flights.outdate(self._place.name, "key", frozenset((wanted.key,)))
        return await self._place.invalidate("key", (wanted.key,))

    def key(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """What the value of this call is kept under."""
        return self._names.wanted(args, kwargs).key

    def call_sync(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it from code without an event loop."""
        return self._home.portal.run(lambda: self(*args, **kwargs), instead="`await` on the call itself")

    def aged_sync(self, *args: P.args, **kwargs: P.kwargs) -> Aged[R]:
        """`aged` from code without an event loop."""
        return self._home.portal.run(lambda: self.aged(*args, **kwargs), instead="`await function.aged(…)`")

    def invalidate_sync(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """`invalidate` from code without an event loop."""
        return self._home.portal.run(
            lambda: self.invalidate(*args, **kwargs), instead="`await function.invalidate(…)`"
        )

    def refresh_sync(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """`refresh` from code without an event loop."""
        return self._home.portal.run(
            lambda: self.refresh(*args, **kwargs), instead="`await function.refresh(…)`"
        )

    # --- flights ---

    def _flight(self, wanted: Wanted) -> Flight | None:
        return self._home.flights.get(self._place.name, wanted.key)

    def _begin(self, wanted: Wanted, why: Why) -> Flight:
        return self._home.flights.begin(self._place.name, Flight(wanted, why), self._loader.fly)

    def _refresh_behind(self, wanted: Wanted, entry: Entry) -> None:
        """One refresher for each key in the fleet: the place grants it to one. Most see that another is at it, and do not ask."""
        if entry.is_loading or entry.is_resting or self._flight(wanted) is not None or not self._is_free():
            return
        if self._home.flights.number(Why.STALE) >= _MOST_REFRESHES:
            note("cache.refresh_put_off", place=self._place.name, key=wanted.key)
            return
        self._begin(wanted, Why.STALE)

    def _is_free(self) -> bool:
        """On SQLite, whoever is inside a transaction holds the lock that the place would wait for."""
        try:
            self._place.kept.check_free()
        except UsageError:
            return False
        return True

    async def _awaited(self, wanted: Wanted) -> str:
        """The text of a value that a load of this process has brought, or one that it has waited for."""
        check_time()
        if not self._is_free():
            return await self._loader.load(wanted)
        while True:
            flight = self._flight(wanted)
            if flight is not None and flight.is_outdated:
                await flight.landed()
            elif (text := await (flight or self._begin(wanted, Why.MISSING)).joined()) is not None:
                return text
            entry = await self._place.look(wanted)
            if entry is not None and entry.value is not None and self._values.is_readable(entry, wanted):
                return entry.value

    def _value(self, text: str) -> R:
        return cast("R", self._values.read(text))
