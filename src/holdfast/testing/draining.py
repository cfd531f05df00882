"""`drain`: run every job that is ready, one after the other, as a worker would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

from holdfast.jobs.deaths import Deaths
from holdfast.jobs.scheduler import Scheduler
from holdfast.runtime.app import Holdfast
from holdfast.runtime.inside import inside
from holdfast.store.ports import Store
from holdfast.store.records import Claim, JobRecord
from holdfast.store.states import Held, State
from holdfast.testing.asserting import waiting
from holdfast.testing.rating import rates_of
from holdfast.testing.refusing import TurnedAway
from holdfast.testing.relaying import move_events
from holdfast.testing.running import LEASE, NAME, Bench, Ran

_PART = 500
_SHOWN = 5  # held jobs in a message
_schedulers: WeakKeyDictionary[Store, Scheduler] = WeakKeyDictionary()


class Drained(list[Ran]):
    """What was run, and in `held` the jobs that are queued and were not: each says why, and by which guard."""

    def __init__(self, ran: Iterable[Ran], held: Sequence[JobRecord]) -> None:
        super().__init__(ran)
        self.held = list(held)

    def __repr__(self) -> str:
        """With what is held: a test that misses a run shows why there is none."""
        told = ", ".join(_why(each) for each in self.held[:_SHOWN])
        more = f" and {len(self.held) - _SHOWN} more" if len(self.held) > _SHOWN else ""
        return f"{super().__repr__()} (held: {told}{more})" if self.held else super().__repr__()


def _why(job: JobRecord) -> str:
    guard = job.guard if job.held_by is None else job.held_by.name
    by = f" {guard!r}" if job.held is Held.GUARD else ""
    return f"{job.task} by {job.held or 'its paused queue'}{by}"


async def drain(
    hf: Holdfast, *, raise_dead: bool = False, schedules: bool = True, most: int = 1_000
) -> Drained:
    """Run all jobs that are ready, and those that become ready by it, in the order of priority and enqueueing.

    What is due by the clock is promoted first, and schedules that are due enqueue their jobs: a schedule begins with the
    first drain, or with `fresh`. Events are published and delivered to the program's handlers, and so are those that these emit.
    What is not due stays queued: turn the clock and drain again. Returns what was run, with what is held, and why, in `held`.
    Guards are not asked before a run: their calls inside are, and a job that the guard of a step refuses is held until that would let
    it through: turn the clock and drain again. Under a manual clock runs keep to the `rate=` of their task.
    With `raise_dead`, a job that dies raises JobDead, and one that is left unknown JobUnknown.
    """
    async with Bench(hf, raise_dead=raise_dead) as bench:
        if schedules:
            await tick(hf)
        await hf.store.holds.unhold(Held.UNKNOWN_TASK, tasks=inside(hf).registry.names or None)
        left_alone: set[str] = set()  # queues that are paused
        rates, turned_away = rates_of(hf), TurnedAway()
        while True:
            if rates is not None:
                await rates.let_go(hf)
            await turned_away.let_go(hf)
            if (queue := await _next(hf, left_alone)) is None:
                if await move_events(hf) or await bench.lookups.turn():
                    continue
                return Drained(bench.ran, await hf.store.holds.explained(await waiting(hf)))
            if len(bench.ran) >= most:
                raise AssertionError(endless("drain", [each.task for each in bench.ran], most))
            claim = await _claim(hf, queue)
            if claim is None:
                left_alone.add(queue)
            elif rates is None or await rates.admits(hf, claim):
                await bench.run(claim)


async def tick(hf: Holdfast) -> None:
    """Enqueue what schedules say is due. The first call is when they begin, unless the store knows them."""
    if hf.store not in _schedulers:
        _schedulers[hf.store] = Scheduler(hf.store, inside(hf).enqueuer, inside(hf).registry.schedules)
    scheduler = _schedulers[hf.store]
    await scheduler.turn()
    if (trouble := scheduler.trouble()) is not None:
        raise AssertionError(trouble)


async def promote(hf: Holdfast) -> None:
    """Make ready what has arrived and what is due; cancel what has expired."""
    deaths = Deaths(hf.store, inside(hf).registry, inside(hf).portal)
    while await deaths.expire():
        pass
    while await hf.store.holds.promote(window=_PART, limit=_PART) >= _PART:
        pass


async def _next(hf: Holdfast, left_alone: set[str]) -> str | None:
    """The queue of the job that is next: of several, the one with the job that is most urgent, then oldest."""
    await promote(hf)
    queues = {
        each.queue for each in await hf.store.jobs.count() if each.state is State.QUEUED and each.held is None
    }
    if len(queues - left_alone) < 2:
        return next(iter(queues - left_alone), None)
    ready = [job for job in await waiting(hf) if job.held is None and job.queue not in left_alone]
    return min(ready, key=lambda job: -job.priority).queue


async def _claim(hf: Holdfast, queue: str) -> Claim | None:
    claims = hf.store.claims
    taken = await claims.claim({queue: 1}, lease=LEASE, worker=NAME)
    return taken[0] if taken else await claims.claim_suspect([queue], lease=LEASE, worker=NAME)


def endless(what: str, ran: Sequence[str], most: int) -> str:
    tasks = ", ".join(sorted(set(ran[-10:])))
    return (
        f"{what} has run {most} jobs, and there are more. The last were of {tasks}: does a task enqueue itself, or retry at once, or do "
        "events cause each other in a circle? If so many are meant, pass most=."
    )
