"""A whole worker as one service: resources, claims, renewals, upkeep and schedules, started and stopped in order."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from holdfast.jobs.blocking import Portal
from holdfast.jobs.deaths import Deaths
from holdfast.jobs.enqueue import Enqueuer
from holdfast.jobs.executor import Executor
from holdfast.jobs.lookups import EVERY as LOOK_EVERY
from holdfast.jobs.lookups import Lookups
from holdfast.jobs.pace import check_slots
from holdfast.jobs.presence import Presence
from holdfast.jobs.registry import Registry
from holdfast.jobs.releases import TTL as RELEASES_TTL
from holdfast.jobs.releases import Ahead, Releases, unknown
from holdfast.jobs.renewer import Renewer
from holdfast.jobs.run import Run
from holdfast.jobs.scheduler import Scheduler
from holdfast.jobs.strays import Strays
from holdfast.jobs.upkeep import KEEP, Upkeep
from holdfast.jobs.upkeep import TTL as UPKEEP_TTL
from holdfast.jobs.worker import Worker
from holdfast.jobs.working import Work
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import TROUBLE, UsageError
from holdfast.kernel.here import host, version
from holdfast.kernel.ids import new_id
from holdfast.kernel.logged import flush
from holdfast.kernel.names import check_name, check_seconds
from holdfast.kernel.service import Periodic, Service, Services
from holdfast.kernel.spawn import spawn
from holdfast.kernel.telemetry import note
from holdfast.kernel.threads import Threads
from holdfast.store.ports import Store
from holdfast.store.states import Held
from holdfast.store.worker_records import NewWorker

LEASE = 30.0  # seconds for which a claim is held without a sign of life
GRACE = 30.0  # seconds that running jobs have to end when the worker leaves
_KNOWN_EVERY = 5.0  # seconds between looks for held jobs whose task is known here
_KNOWN_REST = 100  # times as long as the last look took it rests at least: nobody may know a million of them


class WorkerService:
    """`async with hf.worker(queues={"mail": 10}):` runs jobs until the block ends."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        enqueuer: Enqueuer,
        queues: Mapping[str, int],
        portal: Portal,
        *,
        name: str | None = None,
        lease: float = LEASE,
        grace: float = GRACE,
        poll: float = 1.0,
        keep: float = KEEP,
        stuck: Callable[[str], None] | None = None,
        beside: Callable[[str, float], Sequence[Service]] | None = None,
        ahead: Ahead = unknown,
    ) -> None:
        self._store, self._registry, self._enqueuer, self._portal = store, registry, enqueuer, portal
        self._ahead = ahead  # what fleets have left of their quota
        self._beside = beside  # by its name and lease, what else it runs: that of the layers above jobs
        self._slots = check_slots(queues)
        # Claims are held by this name, so no other worker may ever have it: neither a twin nor the one after a restart.
        self.name = check_name("worker", f"{name or 'worker'}-{new_id()}")
        self._lease = check_seconds("lease", lease, minimum=1.0, maximum=86_400)
        self._grace = check_seconds("grace", grace)
        self._poll = check_seconds("poll", poll, minimum=0.01)
        self._keep = check_seconds("keep", keep)
        self._stuck = stuck
        self._stack = AsyncExitStack()
        self._troubles: list[Callable[[], str | None]] = []
        self._turn = asyncio.Lock()  # who stops waits for who starts
        self._stopping: asyncio.Task[None] | None = None
        self._has_begun = self.is_running = False
        self._process = 0
        self._known_again = 0.0
        self.worker: Worker | None = None

    @property
    def is_active(self) -> bool:
        """From its start until its end; it may be starting or stopping."""
        return self._is_ours() and not (self._stopping is not None and self._stopping.done())

    async def start(self) -> None:
        """Raises SchemaError when the tables do not fit: no waiting would help."""
        if self._has_begun:
            raise UsageError(f"The worker {self.name} was started already. Make another with hf.worker(…).")
        self._has_begun, self._process = True, os.getpid()
        try:
            async with self._turn, AsyncExitStack() as stack:
                await check_tables(self._store)
                await self._start(stack)
                self._stack, self.is_running = stack.pop_all(), True
        except BaseException:
            self._has_begun, self._stopping = False, None  # a stop that waited has nothing to do
            raise
        note("worker.started", worker=self.name, queues=self._slots)

    async def _start(self, stack: AsyncExitStack) -> None:
        """In this order, and stopped in reverse: renewals go on until the last job has ended, and what it used is closed."""
        runs: dict[tuple[str, int], Run] = {}
        presence = Presence(self._description(), ttl=self._lease, is_draining=self._is_draining)
        stack.push_async_callback(presence.end, self._store)
        renewer = Renewer(self._store, runs, lease=self._lease, stuck=self._stuck, presence=presence)
        await renewer.start()
        stack.push_async_callback(renewer.stop)
        resources = await stack.enter_async_context(self._registry.resources.opened())
        threads = Threads(sum(self._slots.values()))
        stack.callback(threads.close)
        executor = Executor(
            self._store, self._registry, threads,
            worker=self.name, lease=self._lease, portal=self._portal, resources=resources,
        )  # fmt: skip
        worker = self.worker = Worker(
            self._store, self._registry, executor, self._slots, runs,
            name=self.name, lease=self._lease, poll=self._poll,
        )  # fmt: skip
        worker.on_hint = renewer.nudge
        deaths = Deaths(self._store, self._registry, self._portal)
        upkeep = Upkeep(
            self._store, deaths,
            owner=self.name, window=max(self._slots.values(), default=1), keep=self._keep,
            ttl=min(UPKEEP_TTL, self._lease),  # or rescue would wait longer for a dead upkeeper than for its claims
        )  # fmt: skip
        scheduler = Scheduler(self._store, self._enqueuer, self._registry.schedules)
        known = Periodic("known-tasks", self._let_known_go, every=_KNOWN_EVERY)
        strays = Strays(self._store, worker)
        looks = Periodic("strays", strays.look, every=self._lease / 6)
        # Also without guards: jobs of a guard that the last version had are let go.
        releases = Releases(
            self._store, self._registry.guards_by_now, self._registry.names,
            owner=self.name, ttl=min(RELEASES_TTL, self._lease), ahead=self._ahead,
        )  # fmt: skip
        beside = [] if self._beside is None else self._beside(self.name, self._lease)
        lookups = Lookups(self._store, executor, lambda: self._registry.names, list(self._slots))
        looking = Periodic("look-ups", lookups.look, every=LOOK_EVERY)
        services = Services([upkeep, scheduler, known, looks, looking, releases, *beside])
        await services.start()
        stack.push_async_callback(services.stop)
        self._troubles = [worker.trouble, renewer.trouble, services.trouble]
        await presence.begin(self._store)
        await worker.start()
        stack.push_async_callback(self._stop_worker)

    def _description(self) -> NewWorker:
        return NewWorker(
            name=self.name, host=host(), pid=os.getpid(), version=version(),
            queues=self._slots, tasks=tuple(self._registry.names),
        )  # fmt: skip

    def _is_draining(self) -> bool:
        return self._stopping is not None

    async def _let_known_go(self) -> None:
        """Jobs that another worker did not know, and this one does: such as those of the newer version during a deploy."""
        began = monotonic()
        if began < self._known_again or not (names := self._registry.names):
            return
        while await self._store.holds.unhold(Held.UNKNOWN_TASK, tasks=names) > 0:
            pass
        self._known_again = began + _KNOWN_REST * (monotonic() - began)

    async def _stop_worker(self) -> None:
        assert self.worker is not None
        await self.worker.stop(self._grace)

    async def stop(self, grace: float | None = None) -> None:
        """Claim nothing more; running jobs have `grace` seconds to end, the rest go back uncharged.

        It goes on when whoever waits for it is cancelled: half stopped, jobs would run on without renewals.
        """
        if grace is not None:
            self._grace = grace
        if not self._is_ours():
            return
        if self._stopping is None:
            if self.worker is not None:
                self.worker.drain()  # at once, whenever the task below has its turn
            self._stopping = spawn(self._stop(), name="worker-stop")
        elif grace is not None and self.worker is not None:
            self.worker.hurry(grace)
        await asyncio.shield(self._stopping)

    def _is_ours(self) -> bool:
        """A forked child has neither its threads nor its loop: there is nothing to stop, and nobody who would answer."""
        return self._has_begun and self._process == os.getpid()

    async def _stop(self) -> None:
        async with self._turn:
            if not self.is_running:
                return  # it could not be started
            try:
                await self._stack.aclose()
            finally:
                self.is_running = False
                flush()
                note("worker.stopped", worker=self.name)

    async def let_go(self) -> bool:
        """For a process that ends now: put back what still runs, and with it what threads do that did not listen."""
        return self.worker is not None and await self.worker.let_go()

    def trouble(self) -> str | None:
        """What is wrong, for a person; None when all is well."""
        return "; ".join(found for ask in self._troubles if (found := ask())) or None

    @property
    def work(self) -> Work:
        """What it does now."""
        takes = self.is_running and self._stopping is None
        why = self.trouble() if takes else "it is leaving" if self._stopping is not None else "it is starting"
        return Work(running=takes, jobs=0 if self.worker is None else len(self.worker.runs), trouble=why)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


async def check_tables(store: Store) -> None:
    """Raise SchemaError now and not, again and again, from every part of a worker. A store in trouble may recover."""
    try:
        await store.queues.paused()
    except TROUBLE as error:
        note("worker.trouble", error=repr(error))
