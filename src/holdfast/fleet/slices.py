"""Slices of a fleet's quota: what limiters of this process take at once, and what the store is asked for in time.

Limiters ask on any thread, and never wait here. What they ask for in vain, and what they have used, says how much to ask of the
store. Without the store each process has its share: the rate divided by the processes that were there when it went away; and so it
has when the store answers so late that what it grants has lapsed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import msgspec

from holdfast.fleet.terms import Terms, terms_of
from holdfast.guards.limiter import Limiter
from holdfast.guards.ports import SLICE, LimiterRecord, Slice
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UsageError
from holdfast.kernel.loops import new_lock
from holdfast.kernel.telemetry import note
from holdfast.store.quota import Grant, Pace, Want, check_key

_SOON = 0.005  # seconds after which the store will have answered
_LATE = 1.0  # seconds on its own after an answer that came too late
_AT_ONCE = 1000  # keys of one question
_FORGOTTEN = 60.0  # seconds without a question after which a key is


def _ends(lot: list[float]) -> float:
    return lot[1]


class Pot:
    """One limiter's key. Not safe for threads: the slices have a lock."""

    __slots__ = (
        "_share", "_shared_at", "asked", "due", "grant", "is_late", "is_lowered", "key", "largest", "late_until", "limiter",
        "lots", "owed", "refused", "seen", "sped", "terms", "used",
    )  # fmt: skip

    def __init__(self, limiter: Limiter, key: str, terms: Terms, now: float) -> None:
        self.limiter, self.key, self.terms = limiter, key, terms
        self.lots: deque[list[float]] = deque()  # units, and until when they may be used
        self.used = self.refused = self.largest = 0.0  # units since the store was asked last
        self.asked = self.seen = now
        self.sped = 0.0  # when the fleet was last told that it is faster
        self.due = 0.0  # not before that the store is asked
        self.grant: Grant | None = None  # the last
        self.is_lowered = False  # the other side has asked for less, and the fleet must hear of it
        self.is_late = False  # the last grant had lapsed when it came
        self.late_until = 0.0  # until then it has its share instead
        self.owed = 0.0  # units that were admitted without the store
        self._share, self._shared_at = terms.size, now  # of the share: what is taken of it, at which moment

    def take(self, units: float, now: float) -> Slice:
        """From what the store has granted."""
        while self.lots and (self.lots[0][1] <= now or self.lots[0][0] <= 0):
            self.lots.popleft()
        if sum(lot[0] for lot in self.lots) < units:
            self.refused += units
            self.largest = max(self.largest, units)
            return Slice(0.0, 0.0, max(_SOON, self.due - now))
        until, left = self.lots[0][1], units
        for lot in self.lots:
            part = min(lot[0], left)
            lot[0] -= part
            left -= part
        self.used += units
        return Slice(units, until - now)

    def put_back(self, units: float, until: float) -> None:
        """What lapses first is used first."""
        self.lots.append([units, until])
        self.lots = deque(sorted(self.lots, key=_ends))

    def take_share(self, units: float, now: float, nodes: int) -> Slice:
        """Without the store. The share begins empty, so that all of them are never above the rate."""
        if nodes == 1:
            return Slice(units, self.terms.lasts)  # the limiter itself is all that there is
        rate = self.limiter.rate(key=self.key) / nodes
        size = max(units, self.terms.size / nodes)
        self._share = max(0.0, min(self._share, size) - (now - self._shared_at) * rate)
        self._shared_at = now
        if self._share + units > size:
            return Slice(0.0, 0.0, (self._share + units - size) / rate)
        self._share += units
        self.owed = min(self.owed + units, self.terms.size)
        return Slice(units, self.terms.lasts)

    def begin_share(self, now: float) -> None:
        self._share, self._shared_at = self.terms.size, now

    def want(self, now: float, nodes: int) -> Want | None:
        """What to ask the store for; None: nothing now."""
        left = sum(lot[0] for lot in self.lots if lot[1] > now + self.terms.lasts / 4)
        passed = max(now - self.asked, _SOON)
        expected = min(self.used / passed, self.limiter.rate(key=self.key)) * self.terms.lasts
        if now < self.due or not (self.refused or left < expected / 2):
            return None
        least = max(self.largest, 1.0)
        most = max(least, min(max(expected * 1.2, self.refused) + self.owed, self.terms.size / nodes))
        return Want(self.limiter.name, self.key, least, most, self._rate(), self.terms.size)

    def _rate(self) -> float:
        """What the store may grant a second. Once the other side has asked for less the store knows better than each of us."""
        is_known = self.limiter.adapts and self.grant is not None and self.grant.version > 0
        return self.terms.rate(self.limiter.fastest if is_known else self.limiter.rate(key=self.key))

    def granted(self, grant: Grant, asked: float, now: float) -> None:
        """`asked`: when the question was sent, so what it lasts ends early rather than late."""
        was_late, self.is_late = self.is_late, now >= asked + self.terms.lasts
        if self.is_late:
            self.late_until = now + _LATE
            if not was_late:
                self.begin_share(now)
        paid = min(self.owed, grant.units)
        self.owed -= paid
        if grant.units > paid:
            self.lots.append([grant.units - paid, asked + self.terms.lasts])
        self.due = asked + grant.wait
        self.asked, self.used, self.refused, self.largest = asked, 0.0, 0.0, 0.0
        self.grant = grant

    def heard(self, pace: Pace, told: float | None) -> None:
        """What the fleet made of what it was told. If it is just that, it is no news when the store says so again."""
        if self.grant is not None and pace.rate == told:
            self.grant = msgspec.structs.replace(self.grant, version=pace.version)


class Slices:
    """The `Quota` of all limiters of this process. `wake` is called, on any thread, when the store shall be asked."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._limiters: dict[str, tuple[Limiter, Terms]] = {}
        self._pots: dict[tuple[str, str], Pot] = {}
        self._lock = new_lock()
        self.nodes = 1  # processes that share it, this one too
        self.is_alone = True  # the store does not answer
        self._back = -SLICE  # when it last did again

    def add(self, limiter: Limiter) -> None:
        """Its quota comes from here."""
        known = self._limiters.get(limiter.name)
        if known is not None and known[0] is not limiter:
            raise UsageError(
                f"There is another limiter named {limiter.name!r}. A fleet knows limiters by name: give one of them name=."
            )
        terms = terms_of(limiter.fastest, limiter.burst)
        self._limiters[limiter.name] = (limiter, terms)
        limiter.share(self, most=terms.size)

    # --- the port; the limiter's lock is held ---

    def take(self, name: str, key: str, units: float, /) -> Slice:
        now = monotonic()
        with self._lock:
            pot = self._pot(name, key, now)
            pot.seen = now
            is_share = self.is_alone or now < pot.late_until
            found = pot.take_share(units, now, self.nodes) if is_share else pot.take(units, now)
            is_due = not is_share and pot.want(now, self.nodes) is not None
        if is_due:
            self._wake()
        return found

    def give_back(self, name: str, key: str, part: Slice, /) -> None:
        """What may be of a share is not taken back: the store knows nothing of it."""
        now = monotonic()
        with self._lock:
            pot = self._pot(name, key, now)
            if not (self.is_alone or pot.is_late) and now >= max(self._back, pot.late_until) + SLICE:
                pot.put_back(part.units, now + part.lasts)

    def slowed(self, name: str, key: str, record: LimiterRecord, /) -> None:  # noqa: ARG002  it is asked when there is time
        now = monotonic()
        with self._lock:
            pot = self._pot(name, key, now)
            pot.is_lowered, pot.seen = True, now
            pot.lots.clear()  # whatever was granted before
        self._wake()

    def _pot(self, name: str, key: str, now: float) -> Pot:
        """The lock is held."""
        pot = self._pots.get((name, key))
        if pot is None:
            check_key(key)
            pot = self._pots[name, key] = Pot(self._limiters[name][0], key, self._limiters[name][1], now)
        return pot

    # --- the other side ---

    def wants(self) -> list[Want]:
        """What the store shall be asked for now, each key once."""
        now = monotonic()
        with self._lock:
            found = (pot.want(now, self.nodes) for pot in self._pots.values())
            return list(islice((want for want in found if want is not None), _AT_ONCE))

    def granted(self, grants: Iterable[Grant], asked: float) -> list[tuple[Pot, Grant | None]]:
        """Keep them; returns each with the grant before it."""
        found, late, now = [], list[Pot](), monotonic()
        with self._lock:
            for grant in grants:
                pot = self._pot(grant.name, grant.key, asked)
                found.append((pot, pot.grant))
                was_late = pot.is_late
                pot.granted(grant, asked, now)
                if pot.is_late and not was_late:
                    late.append(pot)
        for pot in late:
            note("guards.late", limiter=pot.limiter.name, key=pot.key, seconds=now - asked)
        return found

    def lowered(self) -> list[Pot]:
        """Those of which the fleet must hear that the other side has asked for less."""
        with self._lock:
            return [pot for pot in self._pots.values() if pot.is_lowered]

    def go_alone(self) -> None:
        now = monotonic()
        with self._lock:
            if not self.is_alone:
                for pot in self._pots.values():
                    pot.begin_share(now)
            self.is_alone = True

    def come_back(self) -> None:
        with self._lock:
            if self.is_alone:
                self._back = monotonic()
            self.is_alone = False

    def forget(self, name: str) -> None:
        """A person has reset it: the store is asked anew."""
        with self._lock:
            for place in [at for at in self._pots if at[0] == name]:
                del self._pots[place]

    def tidy(self) -> None:
        """Forget keys that nobody has asked for lately; the store knows what matters."""
        now = monotonic()
        with self._lock:
            for place in [at for at, pot in self._pots.items() if now - pot.seen > _FORGOTTEN]:
                del self._pots[place]

    @property
    def pots(self) -> Sequence[Pot]:
        with self._lock:
            return [*self._pots.values()]
