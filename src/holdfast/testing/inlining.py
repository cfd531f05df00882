"""`inline`: every enqueue runs its job at once, and every emit those of its handlers, after it was stored."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from holdfast.events.emitting import Item
from holdfast.jobs.handle import Handle
from holdfast.jobs.options import Options
from holdfast.jobs.task import Task
from holdfast.runtime.app import Holdfast
from holdfast.runtime.inside import inside
from holdfast.store.event_records import Emitted
from holdfast.store.records import Claim, NewJob
from holdfast.store.states import State
from holdfast.testing.asserting import waiting
from holdfast.testing.draining import endless, promote
from holdfast.testing.relaying import move_events
from holdfast.testing.running import LEASE, NAME, Bench, Ran

_PART = 500


@contextmanager
def inline(hf: Holdfast, *, raise_dead: bool = False, most: int = 1_000) -> Generator[list[Ran], None, None]:
    """`with inline(hf) as ran:` runs each job inside its `enqueue`, and `ran` tells what became of them.

    Inside `hf.emit` run the handlers that hear the event, and those that hear what these emit.
    What is not ready (a delay, a turn, a paused queue) stays queued, and so does a retry. A job that is enqueued with `tx`
    does not exist before the commit: it waits for a later drain, and so does an event. With `raise_dead`, `enqueue` raises when its job dies or is unknown.
    """
    send, emit = inside(hf).enqueuer.send, inside(hf).bus.emitter.emit
    emit_many = inside(hf).bus.emitter.emit_many
    runs = _Runs(hf, raise_dead=raise_dead, most=most)

    async def send_and_run(task: Task[Any, Any], jobs: list[NewJob], given: Options) -> list[Handle[Any]]:
        handles = await send(task, jobs, given)
        if given.tx is None:
            for handle in handles:
                if handle.created or (handle.standing is not None and handle.standing.replaced):
                    await runs.run(handle.id)
        return handles

    async def emit_and_run(type_: Any, data: Any, *, tx: object, **options: Any) -> Emitted:
        emitted = await emit(type_, data, tx=tx, **options)
        if tx is None:
            await runs.run_handlers(emitted.id)
        return emitted

    async def emit_many_and_run(items: Iterable[Item], *, tx: object) -> list[Emitted]:
        emitted = await emit_many(items, tx=tx)
        if tx is None:
            for each in emitted:
                await runs.run_handlers(each.id)
        return emitted

    emitter = inside(hf).bus.emitter
    with (
        patch.object(inside(hf).enqueuer, "send", send_and_run),
        patch.multiple(emitter, emit=emit_and_run, emit_many=emit_many_and_run),
    ):
        yield runs.ran


class _Runs:
    """What is run within one `inline`, at most so many."""

    def __init__(self, hf: Holdfast, *, raise_dead: bool, most: int) -> None:
        self._hf, self._raise_dead, self._most = hf, raise_dead, most
        self.ran: list[Ran] = []
        self._begun: list[str] = []  # tasks: of a run within a run the outer one is not over
        self._is_endless = False

    async def run_handlers(self, event_id: str) -> None:
        """Of the event and of all that follows from it: also of what had to wait for its turn behind what was run here."""
        event = await self._hf.store.outbox.get(event_id)
        assert event is not None
        tasks = {each.task.name for group in inside(self._hf).bus.groups for each in group.subscribers}
        tried: set[str] = set()
        moved = True
        while moved:
            moved = await move_events(self._hf)
            await promote(self._hf)
            for job in await waiting(self._hf):
                if job.task not in tasks or job.correlation_id != event.correlation_id:
                    continue
                if job.held is None and job.id not in tried:
                    tried.add(job.id)
                    moved = True
                    await self.run(job.id)

    async def run(self, job_id: str) -> None:
        await promote(self._hf)
        if (claim := await _claim(self._hf, job_id)) is None:
            return
        self._is_endless |= len(self._begun) >= self._most
        self._check()
        self._begun.append(claim.task)
        async with Bench(self._hf, raise_dead=self._raise_dead) as bench:
            try:
                await bench.run(claim)
            finally:
                self.ran += bench.ran
        self._check()

    def _check(self) -> None:
        """Also when it was raised before, within a run: that is only an error of that run."""
        if self._is_endless:
            raise AssertionError(endless("inline", self._begun, self._most))


async def _claim(hf: Holdfast, job_id: str) -> Claim | None:
    """This one and no other: a store gives out the first of a queue, so what stands before it is taken and put back."""
    job = await hf.store.jobs.get(job_id)
    if job is None or job.state is not State.QUEUED or job.held is not None:
        return None
    taken = await hf.store.claims.claim({job.queue: _PART}, lease=LEASE, worker=NAME)
    if others := [claim for claim in taken if claim.job_id != job_id]:
        await hf.store.claims.release(others)
    return next((claim for claim in taken if claim.job_id == job_id), None)
