"""Bugs in the guards of a fleet: what they admit, what they give back, and what they charge to guarded jobs."""
# ruff: noqa: ARG001, ARG005, SLF001  a planted function takes what the true one takes, and reaches what it reaches

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from typing import Any

from holdfast.fleet import breakers, slices, terms
from holdfast.fleet.guards import GuardFleet
from holdfast.fleet.pots import Pot
from holdfast.fleet.terms import Terms
from holdfast.guards.admission import Admission, Gates
from holdfast.guards.breaker import Breaker, Permit
from holdfast.guards.budget import Budget
from holdfast.guards.bulkhead import Bulkhead
from holdfast.guards.limiter import Limiter
from holdfast.guards.meters import Meter
from holdfast.guards.ports import Slice
from holdfast.guards.probes import Probes
from holdfast.guards.reservations import Reservation
from holdfast.guards.switch import Switch
from holdfast.guards.trips import Within
from holdfast.jobs import deferral, judge, releases
from holdfast.jobs.registry import Registry
from holdfast.kernel.clock import monotonic
from holdfast.kernel.service import Looping
from holdfast.testing.simulation.mutants.planting import mutant, replace

of_guards = partial(mutant, kind="guards")


@of_guards("half-open calls are not counted")
def _half_open_calls_are_not_counted(stack: ExitStack) -> None:
    """a half-open breaker admits whoever comes"""

    def take(self: Probes, now: float) -> int:
        self._numbers += 1
        self._out[self._numbers] = now + self._lease
        return self._numbers

    replace(stack, Probes, "take", take)


@of_guards("an open breaker is asked once")
def _an_open_breaker_is_asked_once(stack: ExitStack) -> None:
    """who has waited for quota is not looked at again, though the breaker has opened meanwhile"""
    replace(stack, Breaker, "renew", lambda self, permit, now: None)


@of_guards("a probe that is cut off is forgotten")
def _a_probe_that_is_cut_off_is_forgotten(stack: ExitStack) -> None:
    """nobody tells the breaker of a call whose caller was cancelled"""
    replace(stack, Permit, "cut_off", lambda self: None)


@of_guards("a permit leaks on cancel")
def _a_permit_leaks_on_cancel(stack: ExitStack) -> None:
    """a call that is cancelled keeps its permit of the bulkhead"""

    def cut_off(self: Admission) -> None:
        if self.permit is not None:
            self.permit.cut_off()

    replace(stack, Admission, "cut_off", cut_off)


@of_guards("a place in the line leaks")
def _a_place_in_the_line_leaks(stack: ExitStack) -> None:
    """who no longer waits for a permit of the bulkhead is handed one"""
    replace(stack, Bulkhead, "_leave", lambda self, waiter: not waiter.has_permit)


@of_guards("attempts are charged while open")
def _attempts_are_charged_while_open(stack: ExitStack) -> None:
    """a guard's refusal is a failure of its job"""
    replace(stack, judge, "deferral", lambda run, error: None)


@of_guards("an uncharged run is charged")
def _an_uncharged_run_is_charged(stack: ExitStack) -> None:
    """what `uncharged=` names is a failure of its job all the same"""
    replace(stack, deferral, "_counted", lambda run, guard, error, wait: None)


@of_guards("a slice is used after it lapsed")
def _a_slice_is_used_after_it_lapsed(stack: ExitStack) -> None:
    """what the store has granted is good for ever"""
    original = Pot.granted

    def granted(self: Pot, grant: Any, asked: float, now: float) -> None:
        original(self, grant, asked, now)
        for lot in self._lots:
            lot.until = float("inf")

    replace(stack, Pot, "granted", granted)


@of_guards("a reservation is good for ever")
def _a_reservation_is_good_for_ever(stack: ExitStack) -> None:
    """the quota that a job brings along is not looked at when it is spent"""

    def spend(self: Reservation, now: float) -> bool:
        is_good, self.is_open = self.is_open, False
        return is_good

    replace(stack, Reservation, "spend", spend)


@of_guards("the shared bucket is as large as the burst")
def _the_shared_bucket_is_as_large_as_the_burst(stack: ExitStack) -> None:
    """the time between grant and use is forgotten"""
    original = terms.terms_of
    replace(stack, Terms, "rate", lambda self, wanted: wanted)
    replace(
        stack, slices, "terms_of", lambda fastest, burst: Terms(burst, original(fastest, burst).lasts, burst)
    )


@of_guards("the whole rate for each who is alone")
def _the_whole_rate_for_each_who_is_alone(stack: ExitStack) -> None:
    """without the store nobody divides"""

    def take_share(self: Pot, units: float, now: float, nodes: int) -> Slice:
        return Slice(units, self.terms.lasts)

    replace(stack, Pot, "take_share", take_share)


@of_guards("a share begins full")
def _a_share_begins_full(stack: ExitStack) -> None:
    """who loses the store has his share of the burst again"""

    def begin_share(self: Pot, now: float) -> None:
        self._share, self._shared_at = 0.0, now

    replace(stack, Pot, "begin_share", begin_share)


@of_guards("no budget")
def _no_budget(stack: ExitStack) -> None:
    """retries cost nothing"""
    replace(stack, Budget, "spend", lambda self, retries=1: True)


@of_guards("a deadline is looked at once")
def _a_deadline_is_looked_at_once(stack: ExitStack) -> None:
    """an attempt that had to wait begins, however late it is"""
    original = Gates._look_again
    replace(stack, Gates, "_look_again", lambda self, entry, until: original(self, entry, None))


@of_guards("half-open for ever")
def _half_open_for_ever(stack: ExitStack) -> None:
    """a breaker whose probes went well does not close"""
    original = Switch._judge

    def judged(self: Switch, now: float) -> None:
        if self._probes.results < self._probes.permits or self._probes.failures:
            original(self, now)

    replace(stack, Switch, "_judge", judged)


@of_guards("a success forgives the failures before it")
def _a_success_forgives_the_failures_before_it(stack: ExitStack) -> None:
    """a breaker that counts failures within a window counts those in a row"""
    original = Within.add

    def add(self: Within, now: float, failed: bool, slow: bool, /) -> bool:
        if not (failed or slow):
            self.clear()
        return original(self, now, failed, slow)

    replace(stack, Within, "add", add)


@of_guards("a pause has no end")
def _a_pause_has_no_end(stack: ExitStack) -> None:
    """what a provider asks for is not cut to what a limiter allows"""
    original = Meter.throttled
    replace(
        stack, Meter, "throttled",
        lambda self, began, now, pause: original(self, began, now, None if pause is None else pause * 100),
    )  # fmt: skip


@of_guards("the release is not metered")
def _the_release_is_not_metered(stack: ExitStack) -> None:
    """all held jobs of a guard go at once"""
    replace(stack, releases.Pour, "take", lambda self, guard, key, now, ahead: 500)


@of_guards("what has lapsed is given back")
def _what_has_lapsed_is_given_back(stack: ExitStack) -> None:
    """quota that a job brought along and did not use is good for another second"""
    replace(stack, Reservation, "left", lambda self, now: 1.0)


@of_guards("one node opens it for all")
def _one_node_opens_it_for_all(stack: ExitStack) -> None:
    """there is no quorum"""
    replace(stack, breakers, "is_agreed", lambda own, others: True)


@of_guards("who begins asks nobody")
def _who_begins_asks_nobody(stack: ExitStack) -> None:
    """calls begin before the fleet has been asked whether it is open"""

    async def start(self: GuardFleet) -> None:
        self._loop, self._news = asyncio.get_running_loop(), asyncio.Event()
        self._slices.come_back()
        self._next_report = monotonic() + 3.0
        await Looping.start(self)

    replace(stack, GuardFleet, "start", start)


@of_guards("a run without a call gives its quota back")
def _a_run_without_a_call_gives_its_quota_back(stack: ExitStack) -> None:
    """what a gate has taken is another's again when the run has ended without a call"""
    replace(stack, Reservation, "keep", lambda self: None)


@of_guards("a rate is counted per process")
def _a_rate_is_counted_per_process(stack: ExitStack) -> None:
    """the fleet does not know the rate of a task"""
    replace(stack, Registry, "_share_rate", lambda self, task: None)


@of_guards("each process is a fleet of its own")
def _each_process_is_a_fleet_of_its_own(stack: ExitStack) -> None:
    """a limiter asks nobody"""
    replace(stack, Limiter, "share", lambda self, quota, *, most: None)
