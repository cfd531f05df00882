"""Slices of a fleet's quota: what limiters of this process take at once, and what the store is asked for in time.

Limiters ask on any thread, and never wait here. What they ask for in vain, and what they have used, says how much to ask of the
store. Without the store each process has its share: the rate divided by the processes that were there when it went away; and so it
has when the store answers so late that what it grants has lapsed.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count, islice

from holdfast.fleet.pots import Pot
from holdfast.fleet.terms import Terms, terms_of
from holdfast.guards.limiter import Limiter
from holdfast.guards.ports import SLICE, LimiterRecord, Slice
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UsageError
from holdfast.kernel.loops import new_lock
from holdfast.kernel.telemetry import note
from holdfast.store.quota import Grant, Return, Want, check_key

_AT_ONCE = 100  # keys of one question: what is granted for more would lapse before all of it can be used
_FORGOTTEN = 60.0  # seconds without a question after which a key is
_BELIEVED = 10.0  # seconds after which all who are there have said so
_HEARD = 0.5  # seconds after which those who start together have heard of each other,
_COUNTS = 5.0  # if anybody answers: after that nobody is waited for
_WHOLE = 0.9  # of its rate: nobody minds the rest
_NOTICED = 2.0  # seconds after which all have noticed that the store answers again
_COUNTING = 0.02  # seconds until the processes may have been counted
_GLANCE = 8  # how many of the oldest are looked at for each new key, when there are too many


class _Agenda:
    """Pots by the moment at which something is to be done with them."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Pot]] = []
        self._numbers = count()

    def add(self, moment: float, pot: Pot) -> None:
        heappush(self._heap, (moment, next(self._numbers), pot))

    def pop(self, now: float) -> Pot | None:
        return heappop(self._heap)[2] if self._heap and self._heap[0][0] <= now else None

    @property
    def next(self) -> float:
        return self._heap[0][0] if self._heap else math.inf


class Slices:
    """The `Quota` of all limiters of this process. `wake` is called, on any thread, when the store shall be asked."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._limiters: dict[str, tuple[Limiter, Terms]] = {}
        self.nodes = 1  # processes that share it, this one too,
        self._counted = -math.inf  # as they were at this moment
        self._fewer = 0  # the most of them that were counted
        self._fewer_since: float | None = None  # since all of them are no longer
        self._counts_from, self._counts_until = math.inf, -math.inf  # between them it has no share yet
        self._begin()

    def _begin(self) -> None:
        # By limiter and by key; the one that was asked for longest ago is the first.
        self._pots: dict[str, OrderedDict[str, Pot]] = {name: OrderedDict() for name in self._limiters}
        self._hungry, self._lapsing = _Agenda(), _Agenda()
        self._lowered: dict[tuple[str, str], Pot] = {}
        self._calmed: dict[tuple[str, str], Pot] = {}
        self._lock = new_lock()
        self.is_alone = True  # the store does not answer
        self._back = -SLICE  # when it last did again
        self._is_lost = False  # it did before
        self._alone_until = -math.inf  # until then others may not have noticed that it does again

    def add(self, limiter: Limiter) -> None:
        """Its quota comes from here."""
        known = self._limiters.get(limiter.name)
        if known is not None and known[0] is not limiter:
            raise UsageError(
                f"There is another limiter named {limiter.name!r}. A fleet knows limiters by name: give one of them name=."
            )
        terms = terms_of(limiter.fastest, limiter.burst)
        self._limiters[limiter.name] = (limiter, terms)
        self._pots.setdefault(limiter.name, OrderedDict())
        limiter.share(self, most=terms.size)

    def slower(self) -> Iterator[tuple[Limiter, float]]:
        """Limiters whose burst is so small that their rate is, and what is left of it."""
        for limiter, terms in self._limiters.values():
            if (rate := terms.rate(limiter.fastest)) < limiter.fastest * _WHOLE:
                yield limiter, rate

    # --- the port; the limiter's lock is held ---

    def take(self, name: str, key: str, units: float, /) -> Slice:
        now = monotonic()
        with self._lock:
            pot = self._pot(name, key, now)
            if is_share := self._has_share(pot, now):
                found = (
                    pot.take_share(units, now, self.nodes)
                    if self._knows_share(pot, now)
                    else Slice(0.0, 0.0, _COUNTING)
                )
            else:
                found = (
                    pot.take_both(units, now, self.nodes) if now < self._alone_until else pot.take(units, now)
                )
            is_new = not is_share and self._queue(pot, now)
        if is_new:
            self._wake()
        return found

    def _has_share(self, pot: Pot, now: float) -> bool:
        return self.is_alone or now < pot.late_until

    def _knows_share(self, pot: Pot, now: float) -> bool:
        """Who has a share because the store is late counts first: of processes that start one after the other each knows fewer."""
        return now >= self._counts_until if self.is_alone else self._counted >= pot.late_since

    def count_first(self) -> None:
        """It starts without the store: those who do so together must have heard of each other before they share."""
        self._counts_from = monotonic()
        self._counts_until = self._counts_from + _COUNTS

    def count(self, nodes: int, asked: float) -> None:
        """So many share it, as the store said when it was asked at this moment.

        Fewer than before are believed after a while: one that has forgotten all has not heard of each of them again.
        """
        self._counted = asked
        if asked > self._counts_from + _HEARD:
            self._counts_until = -math.inf
        if nodes >= self.nodes:
            self.nodes, self._fewer_since = nodes, None
        elif self._fewer_since is None:
            self._fewer, self._fewer_since = nodes, asked
        else:
            self._fewer = max(self._fewer, nodes)
            if asked - self._fewer_since >= _BELIEVED:
                self.nodes, self._fewer_since = self._fewer, None

    def call_when(
        self, name: str, key: str, units: float, call: Callable[[], object], /
    ) -> Callable[[], None] | None:
        now = monotonic()
        with self._lock:
            pot = self._pot(name, key, now)
            if self._has_share(pot, now) or now < self._alone_until:
                return None
            number = pot.join(units, call)
            calls = pot.served(now)  # a grant may have come since he was refused
            is_new = self._queue(pot, now)
        _call(calls)
        if is_new:
            self._wake()
        return partial(self._leave, pot, number)

    def _leave(self, pot: Pot, number: int) -> None:
        with self._lock:
            pot.leave(number)

    def give_back(self, name: str, key: str, part: Slice, /) -> None:
        """What may be of a share is not taken back: the store knows nothing of it."""
        now = monotonic()
        calls: list[Callable[[], object]] = []
        with self._lock:
            pot = self._pot(name, key, now)
            if not (self.is_alone or pot.is_late) and now >= max(self._back, pot.late_until) + SLICE:
                pot.put_back(part.units, now + part.lasts)
                calls = pot.served(now)
        _call(calls)

    def slowed(self, name: str, key: str, record: LimiterRecord, /) -> None:  # noqa: ARG002  it is asked when there is time
        now = monotonic()
        with self._lock:
            pot = self._pot(name, key, now)
            pot.drop()
            self._lower(pot)
        self._wake()

    def calmed(self, name: str, key: str, in_row: int, /) -> None:
        now = monotonic()
        with self._lock:
            self._calm(self._pot(name, key, now), in_row)
        self._wake()

    def _pot(self, name: str, key: str, now: float) -> Pot:
        """The lock is held."""
        pots = self._pots[name]
        pot = pots.get(key)
        if pot is None:
            check_key(key)
            limiter, terms = self._limiters[name]
            if len(pots) > limiter.keys:
                _forget(pots, [old for old in islice(pots.values(), _GLANCE) if not old.matters])
            pot = pots[key] = Pot(limiter, key, terms, now)
        else:
            pots.move_to_end(key)
        pot.seen = now
        return pot

    # --- the other side ---

    def _queue(self, pot: Pot, now: float) -> bool:
        """Remember to ask the store for it; whether that is new. The lock is held."""
        if pot.is_queued or not pot.is_hungry(now):
            return False
        pot.is_queued = True
        self._hungry.add(max(now, pot.due), pot)
        return True

    @property
    def next(self) -> float:
        """The moment at which there is something to ask of the store, or to give back."""
        with self._lock:
            return -math.inf if self._lowered or self._calmed else min(self._hungry.next, self._lapsing.next)

    def wants(self) -> list[Want]:
        """What the store shall be asked for now, each key once."""
        now, found = monotonic(), list[Want]()
        with self._lock:
            while len(found) < _AT_ONCE and (pot := self._hungry.pop(now)) is not None:
                pot.is_queued = False
                if self._pots[pot.limiter.name].get(pot.key) is not pot:
                    continue  # it was forgotten, and there may be another in its place
                if (want := pot.want(now, self.nodes)) is not None:
                    found.append(want)
                else:
                    self._queue(pot, now)  # it is hungry, and was told to ask later
        return found

    def unasked(self, wants: Iterable[Want]) -> None:
        """The store did not answer."""
        now = monotonic()
        with self._lock:
            for want in wants:
                self._queue(self._pot(want.name, want.key, now), now)

    def granted(self, grants: Iterable[Grant], asked: float) -> list[tuple[Pot, Grant | None]]:
        """Keep them, and call those who waited for it; returns each with the grant before it."""
        found, late, calls = [], list[Pot](), list[Callable[[], object]]()
        now = monotonic()
        with self._lock:
            for grant in grants:
                pot = self._pot(grant.name, grant.key, asked)
                found.append((pot, pot.grant))
                was_late = pot.is_late
                pot.granted(grant, asked, now)
                if pot.is_late and not was_late:
                    late.append(pot)
                has_share = self._has_share(pot, now) or now < self._alone_until
                calls += pot.everyone() if has_share else pot.served(now)
                self._queue(pot, now)
                if (lapses := pot.lapses) is not None:
                    self._lapsing.add(lapses, pot)
        for pot in late:
            note("guards.late", limiter=pot.limiter.name, key=pot.key, seconds=now - asked)
        _call(calls)
        return found

    def unused(self) -> list[Return]:
        """What was granted, and has lapsed: others may have it."""
        now, found = monotonic(), list[Return]()
        with self._lock:
            while len(found) < _AT_ONCE and (pot := self._lapsing.pop(now)) is not None:
                found += pot.unused(now)
        return found[:_AT_ONCE]

    def leave(self) -> list[Return]:
        """This process makes no more calls with what it has: what of it others may have."""
        with self._lock:
            found = [
                item for pots in self._pots.values() for pot in pots.values() for item in pot.unused(math.inf)
            ]
        return found[:_AT_ONCE]

    def lowered(self, limit: int) -> list[Pot]:
        """Some of those of which the fleet must hear that the other side has asked for less; it is told of them now."""
        with self._lock:
            found = [*islice(self._lowered.items(), limit)]
            for place, pot in found:
                del self._lowered[place]
                pot.is_lowered = False
        return [pot for _, pot in found]

    def lower(self, pots: Iterable[Pot]) -> None:
        """The fleet could not be told of them."""
        with self._lock:
            for pot in pots:
                self._lower(pot)

    def _lower(self, pot: Pot) -> None:
        pot.is_lowered = True
        self._lowered[pot.limiter.name, pot.key] = pot

    def calm(self, limit: int) -> list[tuple[Pot, int]]:
        """Some of those of which the fleet must hear that the other side has answered again, and what it was told before."""
        with self._lock:
            found = [(place, pot, pot.calmed) for place, pot in islice(self._calmed.items(), limit)]
            for place, pot, _ in found:
                del self._calmed[place]
                pot.calmed = 0
        return [(pot, in_row) for _, pot, in_row in found]

    def not_calmed(self, pots: Iterable[tuple[Pot, int]]) -> None:
        """The fleet could not be told of them."""
        with self._lock:
            for pot, in_row in pots:
                self._calm(pot, in_row)

    def _calm(self, pot: Pot, in_row: int) -> None:
        pot.calmed = max(pot.calmed, in_row)
        self._calmed[pot.limiter.name, pot.key] = pot

    def go_alone(self, *, is_lost: bool = False) -> None:
        """`is_lost`: the store does not answer any more, and others notice that by and by."""
        now = monotonic()
        calls: list[Callable[[], object]] = []
        with self._lock:
            if not self.is_alone:
                for pot in self._all():
                    pot.begin_share(now)
                    calls += pot.everyone()  # nobody will call them: they ask again in time
            self.is_alone, self._fewer_since = True, None
            self._is_lost |= is_lost
        _call(calls)

    def come_back(self) -> None:
        with self._lock:
            if self.is_alone:
                self._back = monotonic()
                self._alone_until = self._back + _NOTICED if self._is_lost else -math.inf
            self.is_alone = self._is_lost = False

    def forget(self, name: str) -> None:
        """A person has reset it: the store is asked anew."""
        with self._lock:
            pots = self._pots[name]
            calls = [call for pot in pots.values() for call in pot.everyone()]
            _forget(pots, [*pots.values()])
            self._lowered = {place: pot for place, pot in self._lowered.items() if place[0] != name}
            self._calmed = {place: pot for place, pot in self._calmed.items() if place[0] != name}
        _call(calls)

    def anew(self) -> None:
        """Nothing is known of any key, nor of other processes: the program has another store."""
        self.nodes, self._counted = 1, -math.inf
        self._fewer, self._fewer_since = 0, None
        self._counts_from, self._counts_until = math.inf, -math.inf
        self._begin()

    def forked(self) -> None:
        """This is a child of the process: what that was granted is the parent's, and there is one more to share with."""
        self.nodes += 1
        self._begin()

    def tidy(self) -> None:
        """Forget keys that nobody has asked for lately; the store knows what matters."""
        now = monotonic()
        with self._lock:
            for pots in self._pots.values():
                while pots and now - (oldest := next(iter(pots.values()))).seen > _FORGOTTEN:
                    _forget(pots, [oldest])

    def _all(self) -> Iterable[Pot]:
        return (pot for pots in self._pots.values() for pot in pots.values())

    @property
    def pots(self) -> Sequence[Pot]:
        with self._lock:
            return [*self._all()]


def _forget(pots: OrderedDict[str, Pot], old: Iterable[Pot]) -> None:
    for pot in old:
        del pots[pot.key]


def _call(calls: Iterable[Callable[[], object]]) -> None:
    """Without the lock: whoever is called may ask at once."""
    for call in calls:
        call()
