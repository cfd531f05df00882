"""One attempt's way through breaker, limiter and bulkhead, in this order, and back: whatever was taken is given back."""

from __future__ import annotations

import math
from contextlib import suppress

from holdfast.guards.breaker import Breaker, Permit
from holdfast.guards.bulkhead import Bulkhead
from holdfast.guards.faults import Fault, fault_of, headers_of, retry_after_of
from holdfast.guards.headers import LONGEST_PAUSE, SupportsGet, parse_rest
from holdfast.guards.limiter import Limiter
from holdfast.guards.ports import State
from holdfast.guards.reservations import Reservation
from holdfast.guards.visits import is_probing
from holdfast.guards.ways import Way
from holdfast.guards.witness import met
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import BreakerOpen, DeadlinePassed
from holdfast.kernel.telemetry import is_heard, note

_MOMENT = 0.02  # seconds between looks at what a probe has found


class Gates:
    """What an attempt must pass; None stands for a gate that is not there."""

    __slots__ = ("breaker", "bulkhead", "limiter", "name")

    def __init__(
        self, name: str, breaker: Breaker | None, limiter: Limiter | None, bulkhead: Bulkhead | None
    ) -> None:
        self.name, self.breaker, self.limiter, self.bulkhead = name, breaker, limiter, bulkhead

    @property
    def longest_pause(self) -> float:
        """Seconds for which a `Retry-After` counts: as its limiter says, also when that is longer than else."""
        return LONGEST_PAUSE if self.limiter is None else max(LONGEST_PAUSE, self.limiter.longest_pause)

    @property
    def has_any(self) -> bool:
        return any(gate is not None for gate in (self.breaker, self.limiter, self.bulkhead))

    async def admit(
        self, way: Way, key: str, cost: float, until: float | None, longest: float = math.inf
    ) -> Admission:
        """Pass all of them before `until`, or be refused. Nobody waits longer than `longest` seconds for quota or a permit.

        When `longest` is given it counts instead of the `wait` of limiter and bulkhead, also when theirs is shorter: a fleet
        answers a moment after it is asked, and what it grants lapses unused when its caller is gone.
        """
        now = monotonic()
        self.check_time(now, until)
        entry = Admission(self, key, now)
        try:
            if self.breaker is not None:
                try:
                    entry.permit = self.breaker.admitted(now)
                except BreakerOpen as refusal:
                    entry.permit = await self._after_probe(way, self.breaker, entry, until, refusal)
            if self.limiter is not None:
                await self._limit(way, entry, cost, until, longest)
            if self.bulkhead is not None:
                if not self.bulkhead.try_acquire():
                    await self._stand_in_line(way, entry, cost, until, longest)
                entry.bulkhead = self.bulkhead
            if entry.has_waited:
                self._look_again(entry, until)
        except BaseException:
            entry.not_made()
            raise
        return entry

    async def _after_probe(
        self, way: Way, breaker: Breaker, entry: Admission, until: float | None, refusal: BreakerOpen
    ) -> Permit:
        """Of a run that finds out, all calls but its probe wait for that: refused, they might end the run, and the probe with it."""
        end = entry.began + breaker.lease if until is None else min(until, entry.began + breaker.lease)
        while is_probing(breaker) and breaker.state is State.HALF_OPEN and entry.began < end:
            await way.look_after(_MOMENT)
            entry.began = monotonic()
            with suppress(BreakerOpen):
                return breaker.admitted(entry.began)
        self.check_time(entry.began, until)
        raise refusal

    async def _limit(
        self, way: Way, entry: Admission, cost: float, until: float | None, longest: float
    ) -> None:
        limiter, now = self.limiter, entry.began
        assert limiter is not None
        if longest == math.inf:
            longest = limiter.longest_wait
        if until is not None:
            longest = min(longest, until - now)
        found = limiter.reserved(entry.key, cost, now, longest)
        if not isinstance(found, Reservation) or found.at > now:
            entry.has_waited = True
            self._keep_permit(entry, now, longest)
            found = await limiter.taken(way, entry.key, cost, longest, first=found)
            if is_heard("limiter.waited"):
                note("limiter.waited", guard=self.name, seconds=monotonic() - now)
        entry.reservation, entry.key = found, found.key  # one that came with a job may have brought its key

    async def _stand_in_line(
        self, way: Way, entry: Admission, cost: float, until: float | None, longest: float
    ) -> None:
        """Quota is taken for now, so whoever has to stand in a line gives it back, and takes it when it is his turn."""
        bulkhead = self.bulkhead
        assert bulkhead is not None
        if entry.reservation is not None:
            entry.reservation.give_back()
        now = monotonic()
        left = longest if until is None else min(longest, max(0.0, until - now))
        seconds = None if left == math.inf else left
        self._keep_permit(entry, now, bulkhead.longest_wait if seconds is None else seconds)
        await bulkhead.acquired(way, seconds)
        entry.bulkhead, entry.has_waited, entry.began = bulkhead, True, monotonic()
        if self.limiter is not None:
            await self._limit(way, entry, cost, until, longest)

    def _keep_permit(self, entry: Admission, now: float, seconds: float) -> None:
        if self.breaker is not None and entry.permit is not None:
            self.breaker.waits(entry.permit, now, seconds)

    def again(self, entry: Admission, until: float | None) -> Admission:
        """The call comes now. Refused, when it may not be made any more."""
        try:
            self._look_again(entry, until)
        except BaseException:
            entry.not_made()
            raise
        return entry

    def _look_again(self, entry: Admission, until: float | None) -> None:
        """Time has passed since the breaker was asked: it may have opened, and the deadline may be over."""
        now = monotonic()
        self.check_time(now, until)
        entry.began = now
        if self.breaker is not None and entry.permit is not None:
            self.breaker.renew(entry.permit, now)

    def check_time(self, now: float, until: float | None) -> None:
        if until is not None and now >= until:
            raise DeadlinePassed(f"{self.name}: the deadline has passed, and no attempt was made after it.")


class Admission:
    """An attempt that may be made. Say once how it ended: `succeeded`, `failed`, `cut_off` or `not_made`."""

    __slots__ = ("_gates", "began", "bulkhead", "has_waited", "key", "permit", "reservation")

    def __init__(self, gates: Gates, key: str, began: float) -> None:
        self._gates, self.key, self.began = gates, key, began
        self.permit: Permit | None = None
        self.reservation: Reservation | None = None
        self.bulkhead: Bulkhead | None = None
        self.has_waited = False

    def took(self, seconds: float) -> None:
        """For the breaker it was not longer than this: the rest of the time it waited for us."""
        if self.permit is not None:
            self.permit.began = monotonic() - seconds

    def heed(self, headers: SupportsGet) -> None:
        """The answer's: the other side may say that nothing is left of its quota."""
        limiter = self._gates.limiter
        if limiter is not None and (seconds := parse_rest(headers, limiter.longest_pause)) is not None:
            self.rests(seconds)

    def heed_those_of(self, error: Exception, fault: Fault) -> None:
        """Who was throttled was told more by that."""
        if self._gates.limiter is not None and fault is not Fault.THROTTLED:
            for headers in headers_of(error):
                self.heed(headers)

    def rests(self, seconds: float) -> None:
        if (limiter := self._gates.limiter) is not None:
            limiter.rest(seconds, key=self.key)

    def succeeded(self) -> None:
        now = monotonic()
        if self.bulkhead is not None:
            self.bulkhead.release()
        if self.permit is not None:
            self.permit.ended(None, now)
        if (limiter := self._gates.limiter) is not None:
            limiter.answered(self.key, None, self.began, now)

    def failed(self, error: Exception, fault: Fault) -> None:
        self.heed_those_of(error, fault)
        retry_after = retry_after_of(error, self._gates.longest_pause)
        breaker = self._gates.breaker
        own = None if breaker is None else breaker.classify
        self.failed_with(fault, fault if own is None else fault_of(error, own), retry_after)

    def failed_with(self, fault: Fault, for_breaker: Fault, retry_after: float | None) -> None:
        """The same, for who knows the faults."""
        now = monotonic()
        met(self._gates.name, fault)
        if self.bulkhead is not None:
            self.bulkhead.release()
        if self.permit is not None:
            self.permit.ended(for_breaker, now)
        if (limiter := self._gates.limiter) is not None:
            limiter.answered(self.key, fault, self.began, now, retry_after=retry_after)

    def cut_off(self) -> None:
        """Whoever made the attempt was cancelled."""
        if self.bulkhead is not None:
            self.bulkhead.release()
        if self.permit is not None:
            self.permit.cut_off()

    def not_made(self) -> None:
        """It was not made after all."""
        if self.bulkhead is not None:
            self.bulkhead.release()
        if self.reservation is not None:
            self.reservation.give_back()
        if self.permit is not None:
            self.permit.not_made()
