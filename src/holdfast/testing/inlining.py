"""`inline`: every enqueue runs its job at once, and every emit those of its handlers, after it was stored."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from holdfast.jobs.handle import Handle
from holdfast.jobs.options import Options
from holdfast.jobs.task import Task
from holdfast.runtime.app import Holdfast
from holdfast.store.event_records import Emitted
from holdfast.store.records import Claim, NewJob
from holdfast.store.states import State
from holdfast.testing.asserting import waiting
from holdfast.testing.draining import promote
from holdfast.testing.relaying import move_events
from holdfast.testing.running import LEASE, NAME, Bench, Ran

_PART = 500


@contextmanager
def inline(hf: Holdfast, *, raise_dead: bool = False) -> Generator[list[Ran], None, None]:
    """`with inline(hf) as ran:` runs each job inside its `enqueue`, and `ran` tells what became of them.

    Inside `hf.emit` run the handlers that hear the event, and those that hear what these emit.
    What is not ready (a delay, a turn, a paused queue) stays queued, and so does a retry. A job that is enqueued with `tx`
    does not exist before the commit: it waits for a later drain, and so does an event. With `raise_dead`, `enqueue` raises when its job dies or is unknown.
    """
    send, emit, ran = hf.enqueuer.send, hf.bus.emitter.emit, list[Ran]()

    async def send_and_run(task: Task[Any, Any], jobs: list[NewJob], given: Options) -> list[Handle[Any]]:
        handles = await send(task, jobs, given)
        if given.tx is None:
            for handle in handles:
                if handle.created:
                    await _run(hf, handle.id, ran, raise_dead=raise_dead)
        return handles

    async def emit_and_run(type_: Any, data: Any, *, tx: object, **options: Any) -> Emitted:
        emitted = await emit(type_, data, tx=tx, **options)
        if tx is None:
            await _run_handlers(hf, emitted.id, ran, raise_dead=raise_dead)
        return emitted

    emitter = hf.bus.emitter
    with patch.object(hf.enqueuer, "send", send_and_run), patch.object(emitter, "emit", emit_and_run):
        yield ran


async def _run_handlers(hf: Holdfast, event_id: str, ran: list[Ran], *, raise_dead: bool) -> None:
    """Of the event and of all that follows from it."""
    event = await hf.store.outbox.get(event_id)
    assert event is not None
    tasks = {each.task.name for group in hf.bus.groups for each in group.subscribers}
    tried: set[str] = set()
    while await move_events(hf):
        for job in await waiting(hf):
            if job.task in tasks and job.correlation_id == event.correlation_id and job.id not in tried:
                tried.add(job.id)
                await _run(hf, job.id, ran, raise_dead=raise_dead)


async def _run(hf: Holdfast, job_id: str, ran: list[Ran], *, raise_dead: bool) -> None:
    await promote(hf)
    if (claim := await _claim(hf, job_id)) is not None:
        async with Bench(hf, raise_dead=raise_dead) as bench:
            try:
                await bench.run(claim)
            finally:
                ran += bench.ran


async def _claim(hf: Holdfast, job_id: str) -> Claim | None:
    """This one and no other: a store gives out the first of a queue, so what stands before it is taken and put back."""
    job = await hf.store.jobs.get(job_id)
    if job is None or job.state is not State.QUEUED or job.held is not None:
        return None
    taken = await hf.store.claims.claim({job.queue: _PART}, lease=LEASE, worker=NAME)
    if others := [claim for claim in taken if claim.job_id != job_id]:
        await hf.store.claims.release(others)
    return next((claim for claim in taken if claim.job_id == job_id), None)
