"""Runs claimed jobs here and now, through the production executor: no worker, no renewals, no waiting."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import msgspec

from holdfast.jobs.executor import Executor
from holdfast.jobs.judge import Ending, Released, Settled, Unknown
from holdfast.jobs.lookups import Lookups
from holdfast.jobs.run import Run, Stop
from holdfast.kernel.clock import monotonic
from holdfast.kernel.codec import decode_stored
from holdfast.kernel.errors import JobDead, JobUnknown
from holdfast.kernel.spawn import start
from holdfast.kernel.threads import Threads
from holdfast.runtime.app import Holdfast
from holdfast.runtime.inside import inside
from holdfast.store.records import Claim, Finish
from holdfast.store.states import Held, State
from holdfast.testing.refusing import remember
from holdfast.testing.waits import part_of
from holdfast.testing.watching import watched

LEASE = 86_400.0  # seconds: nobody renews, and a test may turn its clock
NAME = "holdfast.testing"
_THREADS = 4


class Ran(msgspec.Struct, frozen=True):
    """One run of a job, and what became of it: `state` is `queued` when it will run again, `unknown` when a person must say."""

    id: str
    task: str
    attempt: int
    state: State
    result: Any = None
    error: str | None = None  # of this run; of an unknown job, which effect nobody knows the end of, and why


class Bench:
    """A program's executor with its resources, for as long as the block lasts."""

    def __init__(self, hf: Holdfast, *, raise_dead: bool) -> None:
        self._hf, self._raise_dead = hf, raise_dead
        self._stack = AsyncExitStack()
        self.ran: list[Ran] = []

    async def __aenter__(self) -> Self:
        resources = await self._stack.enter_async_context(inside(self._hf).registry.resources.opened())
        threads = Threads(_THREADS)
        self._stack.callback(threads.close)
        self._executor = Executor(
            self._hf.store, inside(self._hf).registry, threads,
            worker=NAME, lease=LEASE, portal=inside(self._hf).portal, resources=resources,
        )  # fmt: skip
        self.lookups = Lookups(self._hf.store, self._executor, lambda: inside(self._hf).registry.names)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def run(self, claim: Claim) -> Ran:
        ending = await self._ending(claim)
        remember(self._hf.store, ending)
        await self._write(claim, ending)
        ran = await self._told(claim)
        self.ran.append(ran)
        if self._raise_dead:
            _raise_dead(ran)
        return ran

    async def _ending(self, claim: Claim) -> Ending:
        """In a task of its own, as in a worker: its timeout can cancel it, and what it is about stays with it."""
        endings: list[Ending] = []
        run = Run(claim, inside(self._hf).registry.get(claim.task), monotonic() + LEASE)
        work = run.work = start(
            part_of(run, self._executor.run(run, lambda _, ending: endings.append(ending))), name=claim.task
        )
        try:
            await watched(work, run)
        except (
            asyncio.CancelledError,
            AssertionError,
        ):  # it is over: the job goes back, as when a worker leaves
            run.halt(Stop.DRAIN)
            await asyncio.wait([work])
            await self._write(claim, endings[0])
            raise
        return endings[0]

    async def _write(self, claim: Claim, ending: Ending) -> None:
        store, ends = self._hf.store, self._executor.ends
        if isinstance(ending, Released):
            await ends.put_back([claim], lambda some, tx: store.claims.release(some, tx=tx))
        elif isinstance(ending, Unknown):
            await ends.put_back([claim], lambda some, tx: store.holds.hold(some, Held.UNKNOWN_TASK, tx=tx))
        elif not isinstance(ending, Settled):
            item = Finish(msgspec.structs.replace(claim, has_steps=True), ending)  # perhaps by this run
            if ends.concern(item):
                await ends.finish(item)
            else:
                await store.claims.finish([Finish(claim, ending)])

    async def _told(self, claim: Claim) -> Ran:
        record = await self._hf.store.jobs.get(claim.job_id)
        assert record is not None
        task = inside(self._hf).registry.get(claim.task)
        result = None
        if record.result is not None:
            result = decode_stored(record.result, Any if task is None else task.signature.returns)
        errors = [each.error for each in record.errors if each.attempt == claim.attempt]
        error = errors[-1] if errors else record.reason
        return Ran(claim.job_id, claim.task, claim.attempt, record.state, result, error)


def _raise_dead(ran: Ran) -> None:
    """Also for what only a person could go on with: a test has none."""
    told = f"Job {ran.id} of task {ran.task!r}"
    if ran.state is State.DEAD:
        raise JobDead(f"{told} died in attempt {ran.attempt}: {ran.error}")
    if ran.state is State.UNKNOWN:
        raise JobUnknown(f"{told} is unknown after attempt {ran.attempt}: {ran.error}")
