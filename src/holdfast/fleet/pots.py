"""What this process has of one key of a fleet's limiter: slices of its quota, and who waits for more of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count

import msgspec

from holdfast.fleet.terms import Terms
from holdfast.guards.limiter import Limiter
from holdfast.guards.ports import Slice
from holdfast.store.quota import Grant, Pace, Return, Want

SOON = 0.005  # seconds after which the store will have answered
_LATE = 1.0  # seconds on its own after answers that came too late
_HICCUP = 0.5  # seconds for which they may, once: who has his share meanwhile has it on top of what others are granted
_WORTH = 0.5  # units that are worth giving back: half of a call that nobody has made is half of the time until the next one
_numbers = count()


class Lot:
    """Units that may be used until a moment. Those of a grant may go back to the store when nobody has used them."""

    __slots__ = ("grant", "units", "until")

    def __init__(self, units: float, until: float, grant: Grant | None) -> None:
        self.units, self.until, self.grant = units, until, grant


class Pot:
    """One limiter's key. Not safe for threads: the slices have a lock."""

    __slots__ = (
        "_largest", "_late_from", "_line", "_lots", "_refused", "_share", "_shared_at", "_unused", "_used", "_waiting", "asked", "calmed", "due",
        "grant", "is_late", "is_lowered", "is_queued", "key", "late_since", "late_until", "limiter", "owed", "seen", "sped", "terms",
    )  # fmt: skip

    def __init__(self, limiter: Limiter, key: str, terms: Terms, now: float) -> None:
        self.limiter, self.key, self.terms = limiter, key, terms
        self._lots: deque[Lot] = deque()  # what lapses first is used first
        self._unused: list[Return] = []  # what has lapsed, and the store may have back
        self._used = self._refused = self._largest = 0.0  # units since the store was asked last
        # Who waits, first come, first served: what each wants, and how to call him.
        self._line: dict[int, tuple[float, Callable[[], object]]] = {}
        self._waiting = 0.0  # units of all of them
        self.asked = self.seen = now
        self.sped = 0.0  # when the fleet was last told that it is faster
        self.due = 0.0  # not before that the store is asked
        self.grant: Grant | None = None  # the last
        self.is_queued = False  # among those that the store will be asked for
        self.is_lowered = False  # the other side has asked for less, and the fleet must hear of it
        self.calmed = (
            0  # the other side has answered after so many times in a row, and the fleet must hear of it
        )
        self.is_late = False  # grants have lapsed by when they come, and not only once
        self._late_from: float | None = None  # since when they do
        self.late_since = self.late_until = 0.0  # in this time it has its share instead
        self.owed = 0.0  # units that were admitted without the store
        self._share, self._shared_at = terms.size, now  # of the share: what is taken of it, at which moment

    # --- what there is ---

    def take(self, units: float, now: float) -> Slice:
        """From what the store has granted."""
        if self._has(now) < units:
            if (
                now >= self.due
            ):  # who comes before, and does not wait for it, may not be here when there is some
                self._refused += units
                self._largest = max(self._largest, units)
            return Slice(0.0, 0.0, max(SOON, self.due - now))
        until, left = self._lots[0].until, units
        for lot in self._lots:
            part = min(lot.units, left)
            lot.units -= part
            left -= part
        self._used += units
        return Slice(units, until - now)

    def _has(self, now: float) -> float:
        while self._lots and (self._lots[0].until <= now or self._lots[0].units <= 0):
            lot = self._lots.popleft()
            if lot.grant is not None and self._is_worth(lot):
                self._unused.append(Return(lot.grant, min(lot.units, lot.grant.units)))
        return sum(lot.units for lot in self._lots)

    def _is_worth(self, lot: Lot) -> bool:
        """Whether the store would have anything of it back: what has drained meanwhile made room already."""
        return lot.grant is not None and lot.units - lot.grant.rate * self.terms.lasts >= _WORTH

    def put_back(self, units: float, until: float) -> None:
        self._keep(Lot(units, until, None))

    def _keep(self, lot: Lot) -> None:
        self._lots = deque(sorted([*self._lots, lot], key=lambda each: each.until))

    def drop(self) -> None:
        """Whatever was granted before counts no more."""
        self._lots.clear()

    def unused(self, now: float) -> list[Return]:
        """What has lapsed, and is worth giving back: nobody can use it any more."""
        self._has(now)
        found, self._unused = self._unused, []
        return found

    @property
    def lapses(self) -> float | None:
        """When something lapses that is worth giving back, as it is now."""
        return next((lot.until for lot in self._lots if self._is_worth(lot)), None)

    # --- who waits ---

    def join(self, units: float, call: Callable[[], object]) -> int:
        """He is called when there are so many; returns his number."""
        number = next(_numbers)
        self._line[number] = units, call
        self._waiting += units
        self._refused = max(0.0, self._refused - units)  # he was refused, and is counted once
        return number

    def leave(self, number: int) -> None:
        units, _ = self._line.pop(number, (0.0, None))
        self._waiting = self._waiting - units if self._line else 0.0

    def served(self, now: float) -> list[Callable[[], object]]:
        """Those for whom there is enough now, in their order. They are out of the line, and ask again."""
        calls, left = [], self._has(now) if self._line else 0.0
        for number, (units, call) in [*self._line.items()]:
            if units > left:
                break
            left -= units
            self.leave(number)
            calls.append(call)
        return calls

    def everyone(self) -> list[Callable[[], object]]:
        """The line is no more: all of them ask again."""
        calls = [call for _, call in self._line.values()]
        self._line.clear()
        self._waiting = 0.0
        return calls

    # --- without the store ---

    def take_share(self, units: float, now: float, nodes: int) -> Slice:
        """The share begins empty, so that all of them are never above the rate."""
        if (wait := self._share_wait(units, now, nodes)) > 0:
            return Slice(0.0, 0.0, wait)
        if nodes > 1:
            self._share += units
            self.owed = min(self.owed + units, self.terms.size)
        return Slice(units, self.terms.lasts)

    def take_both(self, units: float, now: float, nodes: int) -> Slice:
        """What the store has granted, and no more than the share: others may still be on theirs."""
        if (wait := self._share_wait(units, now, nodes)) > 0:
            return Slice(0.0, 0.0, wait)
        found = self.take(units, now)
        self._share += found.units
        return found

    def _share_wait(self, units: float, now: float, nodes: int) -> float:
        """Seconds until so much of the share is there; 0: now."""
        if nodes == 1:
            return 0.0  # the limiter itself is all that there is
        rate = self.limiter.rate(key=self.key) / nodes
        size = max(units, self.terms.size / nodes)
        self._share = max(0.0, min(self._share, size) - (now - self._shared_at) * rate)
        self._shared_at = now
        return max(0.0, (self._share + units - size) / rate)

    def begin_share(self, now: float) -> None:
        self._share, self._shared_at = self.terms.size, now

    # --- asking the store ---

    def is_hungry(self, now: float) -> bool:
        """Whether the store shall be asked as soon as it may be."""
        if self._refused or self._line:
            return True
        if (expected := self._expected(now)) < 1.0:
            return False  # what nobody asks for would lapse before somebody does
        return sum(lot.units for lot in self._lots if lot.until > now + self.terms.lasts / 4) < expected / 2

    def _expected(self, now: float) -> float:
        """Units that it will use while a grant lasts, as it did lately."""
        passed = max(now - self.asked, SOON)
        return min(self._used / passed, self.limiter.rate(key=self.key)) * self.terms.lasts

    def want(self, now: float, nodes: int) -> Want | None:
        """What to ask the store for; None: nothing now."""
        if now < self.due or not self.is_hungry(now):
            return None
        first = next((units for units, _ in self._line.values()), 0.0)
        least = max(self._largest, first, 1.0)
        wished = max(self._expected(now) * 1.2, self._refused + self._waiting) + self.owed
        most = max(least, min(wished, self.terms.size / nodes))
        return Want(
            self.limiter.name, self.key, least, most, self._rate(), self.terms.size, self.limiter.is_lenient
        )

    def _rate(self) -> float:
        """What the store may grant a second. Once the other side has asked for less the store knows better than each of us."""
        is_known = self.limiter.adapts and self.grant is not None and self.grant.version > 0
        return self.terms.rate(self.limiter.fastest if is_known else self.limiter.rate(key=self.key))

    def granted(self, grant: Grant, asked: float, now: float) -> None:
        """`asked`: when the question was sent, so what it lasts ends early rather than late."""
        if now < asked + self.terms.lasts:
            self.is_late, self._late_from = False, None
        elif self._late_from is None:
            self._late_from = now
        elif now - self._late_from >= _HICCUP:
            if not self.is_late:
                self.begin_share(now)
            self.is_late, self.late_since, self.late_until = True, now, now + _LATE
        paid = min(self.owed, grant.units)
        self.owed -= paid
        if grant.units > paid:
            self._keep(Lot(grant.units - paid, asked + self.terms.lasts, grant))
        self.due = asked + grant.wait
        self.asked, self._used, self._refused, self._largest = asked, 0.0, 0.0, 0.0
        self.grant = grant

    def heard(self, pace: Pace, told: float | None) -> None:
        """What the fleet made of what it was told. If it is just that, it is no news when the store says so again."""
        if self.grant is not None and pace.rate == told:
            self.grant = msgspec.structs.replace(self.grant, version=pace.version)

    @property
    def matters(self) -> bool:
        """Whether anything would go wrong without it."""
        return bool(self._line) or self.is_lowered or self.calmed > 0 or self.owed > 0
