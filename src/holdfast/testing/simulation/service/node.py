"""What runs in each process: the production worker service, until it is asked to leave, has done its share, or is stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.guards.guard import Guard
from holdfast.jobs.blocking import Portal
from holdfast.jobs.ends import Ends
from holdfast.jobs.ends_by_hand import EndsByHand
from holdfast.jobs.enqueue import Enqueuer
from holdfast.jobs.hooks import Hooks
from holdfast.jobs.options import Options
from holdfast.jobs.registry import Registry
from holdfast.jobs.releases import Ahead, unknown
from holdfast.jobs.service import WorkerService
from holdfast.kernel.clock import sleep
from holdfast.kernel.context import Context, become
from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.ids import new_id
from holdfast.kernel.randomness import jittered
from holdfast.kernel.service import Service
from holdfast.store.records import NewJob
from holdfast.testing.simulation.callers import traced
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.history import REFUSALS
from holdfast.testing.simulation.plan import KEEP, LEASE, POLL, JobSpec, Op
from holdfast.testing.simulation.process import Killed
from holdfast.testing.simulation.service.tasks import NEWER, declare

_ARGS = '{"nominal": "2026-01-01T00:00:00Z"}'


class Program:
    """What a worker service is made of, as Holdfast wires it."""

    def __init__(self, life: Life, share: Callable[[Guard[Any]], None] = lambda _: None) -> None:
        self.hooks = Hooks()
        self.registry = Registry(self.hooks, share)
        self.portal = Portal(life.store)
        self.enqueuer = Enqueuer(self.hooks)
        self.ends = EndsByHand(life.store, Ends(life.store, self.registry, self.portal))
        self.enqueuer.send_to(life.store, self.portal, self.ends)


class App(Program):
    """A program, as Holdfast wires it."""

    def __init__(self, life: Life) -> None:
        super().__init__(life)
        declare(self.registry, self.enqueuer, life)
        self.service = new_service(life, self)


def furnish(life: Life) -> None:
    life.app = App(life)
    life.leave = lambda: leave_service(life.app.service)


def begin_story(life: Life, op: Op, place: int) -> None:
    """What a caller's jobs carry along."""
    story = traced(life.fleet.plan.epoch, op.number, place)
    become(
        Context(
            correlation_id=story["correlation_id"],
            job_id=story["causation_id"],
            trace=story["trace"],
            deadline=story["deadline"],
        )
    )


def new_job(life: Life, op: Op, place: int, spec: JobSpec) -> NewJob:
    """Built as an enqueue of the task builds it, by a caller with a story of its own."""
    begin_story(life, op, place)
    key = spec.lock or spec.concurrency or ""
    app: App = life.app
    given = Options(
        queue=spec.queue,
        priority=spec.priority,
        delay=spec.delay,
        at=None if spec.at is None else life.fleet.plan.epoch + spec.at,
        expires=spec.expires,
        unique=spec.unique,
        ordered=spec.ordered,
        tenant=spec.tenant,
    )
    arguments = {"op": op.number, "place": place, "script": list(spec.script)}
    arguments |= {"acts": list(spec.acts)} if spec.acts else {"key": key}
    task = app.registry.get(spec.task)
    if task is not None:
        return app.enqueuer.build(task, arguments, given)
    # Someone whose program is newer than the one that runs here.
    stand_in = app.enqueuer.build(app.registry.task("plain"), arguments, given)
    return msgspec.structs.replace(stand_in, task=spec.task)


async def upgrade(life: Life) -> None:
    """The program of whoever deploys, after the heal: processes with the old code leave, one after the other."""
    while not life.process.draining:
        await sleep(jittered(6.0))
        if life.fleet.healed and life.app.registry.get(NEWER) is None:
            await life.fleet.drain(life)


async def serve(life: Life) -> None:
    """The program."""
    await _remember_schedules(life)
    if life.process.draining:
        return
    service: WorkerService = life.app.service
    await service.start()
    if (most := life.fleet.plan.max_tasks[life.fleet.nodes.index(life.process.node)]) is not None:
        assert service.worker is not None
        done = asyncio.Event()
        service.worker.leave_after(most, done.set)
        await done.wait()
        life.history.event("has done its share", life.name)
        await life.fleet.drain(life)


async def leave_service(service: WorkerService) -> None:
    """As the command line does: what still runs goes back when the process is about to end."""
    await service.stop()
    await service.let_go()


def new_service(
    life: Life,
    app: Program,
    beside: Callable[[str, float], Sequence[Service]] | None = None,
    ahead: Ahead = unknown,
) -> WorkerService:
    plan = life.fleet.plan
    service = WorkerService(
        life.store,
        app.registry,
        app.enqueuer,
        dict.fromkeys(plan.queues, plan.slots),
        app.portal,
        lease=LEASE,
        grace=plan.grace,
        poll=POLL,
        keep=KEEP,
        stuck=lambda why: _end_process(life, why),
        beside=beside,
        ahead=ahead,
    )
    service.name = life.name
    return service


def _end_process(life: Life, why: str) -> None:
    """What the command line does with a run that cannot be stopped."""
    life.history.event("stuck", why)
    life.fleet.kill(life.process)
    raise Killed


async def _remember_schedules(life: Life) -> None:
    """The fleet has been down for a while: each schedule was last seen before that."""
    plan = life.fleet.plan
    for each in plan.schedules if plan.downtime else ():
        while not life.process.draining:
            try:
                if await life.store.schedules.last(each.name) is None:
                    task = life.app.registry.schedules[each.name].task
                    job = NewJob(id=new_id(), task=task.name, args=_ARGS, queue=plan.queues[0])
                    await life.store.schedules.tick(each.name, plan.epoch - plan.downtime, job)
                break
            except (*REFUSALS, CommitUnknown):
                await sleep(0.5)
