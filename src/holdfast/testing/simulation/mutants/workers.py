"""Bugs in the production worker: what it runs, when, with which right, and what it leaves behind."""
# ruff: noqa: ARG001, ARG005, SLF001  a planted function takes what the true one takes, and reaches what it reaches

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from typing import Any

from holdfast.guards.backoff import Backoff
from holdfast.jobs import judge, scheduler
from holdfast.jobs.deaths import Deaths
from holdfast.jobs.endings import Endings
from holdfast.jobs.ends_by_hand import EndsByHand
from holdfast.jobs.ends_of_runs import EndsOfRuns
from holdfast.jobs.executor import Executor
from holdfast.jobs.judge import Ending, Judge
from holdfast.jobs.renewer import Renewer
from holdfast.jobs.returns import Returns
from holdfast.jobs.run import Run
from holdfast.jobs.schedule import Schedule
from holdfast.jobs.scheduler import Scheduler
from holdfast.jobs.slots import Slots
from holdfast.jobs.worker import Worker
from holdfast.kernel.clock import moment, monotonic
from holdfast.kernel.outcomes import Done
from holdfast.store.records import Claim, Enqueued, Finish, NewJob, Rescue
from holdfast.store.sqlite import schedules
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.jobs import enqueue
from holdfast.store.states import State
from holdfast.testing.simulation.fleet import Fleet
from holdfast.testing.simulation.mutants.planting import mutant, replace, unfence
from holdfast.testing.simulation.process import Process

of_workers = partial(mutant, kind="worker")


@of_workers("finished without a fence")
def _finished_without_a_fence(stack: ExitStack) -> None:
    """a run whose lease was lost is written all the same, and the store does not look at the token"""

    async def lost(self: Judge, run: Run) -> Ending:
        return Done()

    replace(stack, Judge, "lost", lost)
    unfence(stack)


@of_workers("who leaves forgets a job")
def _who_leaves_forgets_a_job(stack: ExitStack) -> None:
    """what was claimed and not run is not put back when its worker leaves"""

    def nothing(self: Returns, claims: Sequence[Claim]) -> None:
        return

    replace(stack, Returns, "begin", nothing)


@of_workers("who leaves cuts off a claim")
def _who_leaves_cuts_off_a_claim(stack: ExitStack) -> None:
    """a claim that is in flight when its worker leaves is nobody's"""

    async def at_once(self: Worker, limit: Any) -> None:
        return

    replace(stack, Worker, "_left", at_once)


@of_workers("who leaves goes on claiming")
def _who_leaves_goes_on_claiming(stack: ExitStack) -> None:
    """a worker that was asked to leave takes more jobs"""
    original = Worker._wants

    due: dict[
        str, float
    ] = {}  # by worker: what it puts back is news, and without a pause it would do nothing else

    def wants(self: Worker) -> dict[str, int] | None:
        if not self._draining or monotonic() < due.get(self.name, 0.0):
            return original(self)
        due[self.name] = monotonic() + 0.2
        self._draining = False
        try:
            return original(self)
        finally:
            self._draining = True

    replace(stack, Worker, "_wants", wants)


@of_workers("a supervisor takes from the living")
def _a_supervisor_takes_from_the_living(stack: ExitStack) -> None:
    """a process that stands still is taken for dead, and its claims are released"""
    original = Fleet.pause

    def pause(self: Fleet, process: Process, seconds: float) -> None:
        original(self, process, seconds)
        if self.on_death is not None:
            self.on_death(process)

    replace(stack, Fleet, "pause", pause)


@of_workers("a tick leaves no row")
def _a_tick_leaves_no_row(stack: ExitStack) -> None:
    """every scheduler enqueues a job for a nominal time, because none sees that another did"""

    def tick(db: Db, schedule: str, nominal: float, job: NewJob) -> Enqueued | None:
        [enqueued] = enqueue(db, [job])
        return enqueued

    replace(stack, schedules, "tick", tick)


@of_workers("a schedule forgets when it began")
def _a_schedule_forgets_when_it_began(stack: ExitStack) -> None:
    """what a schedule missed before its first tick is forgotten with the process that knew of it"""

    async def since(self: Scheduler, schedule: Schedule, now: datetime) -> datetime:
        if schedule.name not in self._seen:
            left = await self._store.schedules.last(schedule.name)
            self._seen[schedule.name] = moment(await self._store.now() if left is None else left.nominal)
        return self._seen[schedule.name]

    replace(stack, Scheduler, "_since", since)


@of_workers("a schedule begins at every look")
def _a_schedule_begins_at_every_look(stack: ExitStack) -> None:
    """a schedule that has never ticked never does"""
    replace(stack, schedules, "begin", lambda db, schedule: db.now)


@of_workers("everything missed is made up for")
def _everything_missed_is_made_up_for(stack: ExitStack) -> None:
    """the policy for missed times is not looked at"""

    def due(schedule: Schedule, since: datetime, now: datetime) -> list[datetime]:
        return scheduler._newest(schedule.times, since, now, scheduler.MOST)

    replace(stack, scheduler, "_due", due)


@of_workers("nothing is renewed")
def _nothing_is_renewed(stack: ExitStack) -> None:
    """the renewer believes that it holds what it does not renew"""

    async def renew(self: Renewer, store: Any) -> None:
        for run in self._runs.values():
            run.until = monotonic() + self._lease

    replace(stack, Renewer, "_renew", renew)


@of_workers("no lock is taken")
def _no_lock_is_taken(stack: ExitStack) -> None:
    """a task with a lock runs without it"""

    async def lacks(self: Executor, run: Run, task: Any, arguments: Any) -> str | None:
        return None

    replace(stack, Executor, "_lacks", lacks)


@of_workers("a suspect among others")
def _a_suspect_among_others(stack: ExitStack) -> None:
    """a suspect is run beside whatever runs"""

    async def look(self: Worker) -> None:
        self._room.due = began = monotonic()
        claim = await self._claims.claim_suspect(self._queues, lease=self._lease, worker=self.name)
        if claim is not None:
            self._take([claim], began)

    replace(stack, Worker, "_look_for_suspect", look)


@of_workers("a finish is forgotten")
def _a_finish_is_forgotten(stack: ExitStack) -> None:
    """what a store in trouble did not take is not written again"""
    replace(stack, Endings, "put_again", lambda _self, _finishes: None)


@of_workers("a slot too many")
def _a_slot_too_many(stack: ExitStack) -> None:
    """a worker starts one job more than it has slots"""
    original = Slots.__init__

    def init(self: Slots, numbers: Mapping[str, int], *parts: Any) -> None:
        original(self, {queue: number + 1 for queue, number in numbers.items()}, *parts)

    replace(stack, Slots, "__init__", init)


@of_workers("one try more than allowed")
def _one_try_more_than_allowed(stack: ExitStack) -> None:
    """a task runs once more than its policy says"""
    replace(stack, Backoff, "allows", lambda self, attempt, error: attempt <= self.attempts)


@of_workers("no time limit")
def _no_time_limit(stack: ExitStack) -> None:
    """a task's timeout is not kept"""
    replace(stack, Executor, "_set_timer", lambda self, run: None)


@of_workers("the dead of a rescue are not told")
def _the_dead_of_a_rescue_are_not_told(stack: ExitStack) -> None:
    """on_dead is not called for a job that killed its workers"""

    async def tell(self: Deaths, dead: Rescue, tx: Any) -> None:
        return

    replace(stack, Deaths, "_tell", tell)


@of_workers("a handler writes outside of the transaction")
def _a_handler_writes_outside_of_the_transaction(stack: ExitStack) -> None:
    """handlers of an end are called when that is committed, in a transaction of their own"""

    async def told(self: EndsOfRuns, item: Finish, act: Any) -> bool:
        async with self._store.transaction() as tx:
            [ok] = await act(tx)
        if ok:
            async with self._store.transaction() as tx:
                await self._ends.tell(item.claim.job_id, tx, of=(State.UNKNOWN, State.CANCELLED))
        return bool(ok)

    replace(stack, EndsOfRuns, "_told", told)


@of_workers("a cancel forgets the handler")
def _a_cancel_forgets_the_handler(stack: ExitStack) -> None:
    """who cancels a job that does not run does not call its handlers"""

    async def tell(self: EndsByHand, job_ids: Sequence[str], tx: Any) -> list[Any]:
        return []

    replace(stack, EndsByHand, "_tell", tell)


@of_workers("what has expired is told to nobody")
def _what_has_expired_is_told_to_nobody(stack: ExitStack) -> None:
    """expired jobs are cancelled without their handlers"""

    async def expire(self: Deaths) -> bool:
        return await self._store.holds.expire(limit=500) >= 500

    replace(stack, Deaths, "expire", expire)


@of_workers("a death is tried once")
def _a_death_is_tried_once(stack: ExitStack) -> None:
    """a store in trouble is taken for a handler of on_dead that failed"""
    replace(stack, judge, "PAUSES", ())
