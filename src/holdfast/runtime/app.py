"""Holdfast: the one object that wires everything. It does no I/O until it is entered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from types import TracebackType
from typing import Any, Concatenate, Never, ParamSpec, Protocol, Self, TypeVar, Unpack, overload
from weakref import WeakSet

from holdfast.fleet.guards import GuardFleet
from holdfast.fleet.locks import Lock
from holdfast.guards.fallback import Degraded, Fallback
from holdfast.guards.guard import Guard
from holdfast.guards.guard import Options as GuardOptions
from holdfast.jobs.blocking import Portal
from holdfast.jobs.dead import DeadLetters
from holdfast.jobs.enqueue import Enqueuer
from holdfast.jobs.hooks import Hooks, Middleware
from holdfast.jobs.job import Job
from holdfast.jobs.registry import OnDead, Registry
from holdfast.jobs.resources import Factory
from holdfast.jobs.schedule import Cron, Interval, Missed, Schedule
from holdfast.jobs.service import GRACE, LEASE, WorkerService
from holdfast.jobs.task import Task
from holdfast.jobs.unknown import UnknownJobs
from holdfast.jobs.upkeep import KEEP
from holdfast.kernel.errors import StoreUnavailable, UsageError
from holdfast.kernel.spawn import over, spawn, to_its_end
from holdfast.runtime.config import Location, guards_at, locate, open_store
from holdfast.runtime.views import Blocking, JobsView, QueuesView
from holdfast.sagas.saga import Saga
from holdfast.sagas.sagas import Sagas
from holdfast.store.ports import Store, Tx

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F")
DEFAULT_QUEUES = {"default": 50}


class Declare(Protocol):
    """A decorator that makes a function a task; the job that a first parameter takes is no argument of `enqueue`."""

    @overload
    def __call__(self, function: Callable[Concatenate[Job, P], Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


class Holdfast:
    """Work that must not be lost and must not be done twice.

    `Holdfast()` uses HOLDFAST_URL, else DATABASE_URL, else `sqlite:///holdfast.db`. Enter it with `async with`:
    that opens the store, and leaving closes it. `guards="redis://…"`, or HOLDFAST_GUARDS_URL, is where guards meet when the
    database shall not be troubled by them. A SQLite file brings its tables up to date by itself; on PostgreSQL
    that is done by `migrate`, once for each version.
    """

    def __init__(self, url: str | None = None, *, guards: str | None = None) -> None:
        self.hooks = Hooks()
        self.registry = Registry(self.hooks)
        self.enqueuer = Enqueuer(self.hooks)
        self.sagas = Sagas(self.registry, self.enqueuer)
        self.fleet = GuardFleet()
        self._guards = guards_at(guards)
        self._entered = False
        self._leaving: asyncio.Task[None] | None = None
        self._workers: WeakSet[WorkerService] = WeakSet()
        self.point_at(url)

    def point_at(self, where: str | Location | None) -> None:
        """Use another database from now on, with the same tasks; not while this is open. Tests do so."""
        if self._entered:
            raise UsageError("This Holdfast is open. Leave it before you point it at another database.")
        self.location = where if isinstance(where, Location) else locate(where)
        self.store: Store = open_store(self.location)
        self.portal = Portal(self.store)
        if self._guards is None:
            self.fleet.meet_at(self.store.guards)
        else:
            self.fleet.meet_at(self._guards, people=self.store.guards)
        self.enqueuer.send_to(self.store, self.portal)
        self.sagas.keep_in(self.store)
        self.jobs = JobsView(self.store)
        self.queues = QueuesView(self.store)
        self.dead = DeadLetters(self.store, self.registry)
        self.unknown = UnknownJobs(self.store)
        self.blocking = Blocking(self.portal)

    async def __aenter__(self) -> Self:
        await self._end_of_leaving()
        if self._entered:
            raise UsageError("This Holdfast is open already. Enter it once; tasks and requests share it.")
        self._entered = True
        try:
            await to_its_end(self.portal.take_over())
            await self.store.open()
            await self._meet()
        except BaseException:
            self._entered, self.portal.home = False, None
            raise
        return self

    async def _meet(self) -> None:
        """Guards go on by themselves when where they meet does not answer, and say so."""
        if self._guards is not None:
            with suppress(StoreUnavailable):
                await self._guards.open()
        await self.fleet.start()

    async def _end_of_leaving(self) -> None:
        """An exit may still be under way, when whoever waited for it was cancelled."""
        if self._leaving is None:
            return
        loop = self._leaving.get_loop()
        if loop is asyncio.get_running_loop():
            await over(self._leaving)
        elif loop.is_closed():  # with the exit in the middle of it, and all that ran there
            for service in [each for each in self._workers if each.is_active]:
                self._workers.discard(service)
            await self._close()
        else:
            raise UsageError("This Holdfast is being left on another event loop. Wait for that first.")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """It goes on when whoever waits for it is cancelled: jobs that still run need the store."""
        if self._leaving is None:
            self._leaving = spawn(self._leave(), name="holdfast-leave")
        await asyncio.shield(self._leaving)

    async def _leave(self) -> None:
        """Workers that still run leave first, as at the end of their own blocks: they need the store for that."""
        async with AsyncExitStack() as leaving:  # each of them, also when one fails
            leaving.push_async_callback(self._close)
            for service in [each for each in self._workers if each.is_active]:
                leaving.push_async_callback(service.stop)

    async def _close(self) -> None:
        try:
            await self.fleet.stop()
            if self._guards is not None:
                await self._guards.close()
            await self.store.close()
        finally:  # not before: a thread would open the store again while it is being closed
            self._entered, self.portal.home, self._leaving = False, None, None

    async def migrate(self) -> list[str]:
        """Bring the tables up to date; returns the names of the migrations that were applied."""
        return await self.store.migrate()

    def transaction(self) -> AbstractAsyncContextManager[Tx]:
        """A transaction of the store's database: the block's end commits, an exception rolls back."""
        return self.store.transaction()

    def lock(self, name: str, *, lease: float = 30.0, wait: float = 0.0) -> Lock:
        """A lock that the whole fleet respects: `async with hf.lock("report") as lease:`; `lease.token` fences."""
        return Lock(self.store, name, lease=lease, wait=wait)

    # --- declaring ---

    @overload
    def guard(
        self, name: str, /, *, fallback: None = None, **options: Unpack[GuardOptions]
    ) -> Guard[Never]: ...
    @overload
    def guard(
        self, name: str, /, *, fallback: Fallback[F] | Callable[..., F], **options: Unpack[GuardOptions]
    ) -> Guard[Degraded[F]]: ...
    def guard(self, name: str, /, **options: Any) -> Any:
        """A guard around the calls to one service, shared by the fleet: `stripe = hf.guard("stripe", timeout=5, …)`.

        Options: timeout, deadline, retry, budget, breaker, limiter, bulkhead, fallback, classify, repeatable. Its limiter's rate
        and its breaker's state are those of all processes on this database; without it each goes on by itself.
        """
        guard: Guard[Any] = Guard(name, **options)
        self.fleet.add(guard)
        return guard

    @overload
    def task(self, function: Callable[Concatenate[Job, P], Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(self, /, **options: Any) -> Declare: ...
    def task(self, function: Any = None, /, **options: Any) -> Any:
        """Make a function a task: `@hf.task`, or `@hf.task(queue="mail", retry=Backoff(attempts=8), timeout=30)`.

        Options: name, aliases, queue, retry, timeout, priority, expires, max_waiting, process, guard, and the templates lock, unique,
        ordered, tenant and concurrency=(template, limit), rendered from the arguments. The function stays callable as it is.
        """
        if function is None:
            return lambda function: self.registry.add(function, self.enqueuer, options)
        return self.registry.add(function, self.enqueuer, options)

    def cron(
        self,
        expression: str,
        *,
        tz: str = "UTC",
        missed: Missed = "latest",
        schedule: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Declare:
        """Enqueue the task at these times: one job for each nominal time, however many schedulers run.

        On a task it adds a schedule, so one task may have several: each has its name, `schedule`, and its `arguments`.
        """
        declare: Declare = self._scheduled(Cron(expression, tz), missed, schedule, arguments, options)
        return declare

    def every(
        self,
        seconds: float,
        *,
        missed: Missed = "latest",
        schedule: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Declare:
        """Enqueue the task every so many seconds; the rest as for `cron`."""
        declare: Declare = self._scheduled(Interval(seconds), missed, schedule, arguments, options)
        return declare

    def _scheduled(
        self,
        times: Cron | Interval,
        missed: Missed,
        name: str | None,
        arguments: Mapping[str, Any] | None,
        options: dict[str, Any],
    ) -> Any:
        def declared(function: Any) -> Task[Any, Any]:
            is_task = isinstance(function, Task) and not options
            task = function if is_task else self.registry.add(function, self.enqueuer, options)
            made = Schedule(task, times, name=name or task.name, missed=missed, arguments=arguments)
            self.registry.add_schedule(made)
            return task

        return declared

    def saga(self, name: str, /, **options: Any) -> Callable[[Callable[..., Any]], Saga]:
        """Make an `async def (saga, …)` a saga: `@hf.saga("battle.create")`; start it with `.start(…, id=…)`.

        Options: queue, priority, aliases, timeout, undo_retry and undo_timeout.
        """
        return lambda function: self.sagas.declare(name, function, options)

    def undo(self, name: str, function: Callable[..., F]) -> Callable[..., F]:
        """Give a function a name by which undos are stored, so that it can be moved, or made while the program runs."""
        self.sagas.refs.add(name, function)
        return function

    def on_dead(self, task: str | Task[Any, Any]) -> Callable[[OnDead], OnDead]:
        """Call this, `(job, tx)`, in the transaction that makes a job of the task dead."""

        def declared(handler: OnDead) -> OnDead:
            self.registry.add_on_dead(task.name if isinstance(task, Task) else task, handler)
            return handler

        return declared

    def resource(self, factory: Factory) -> Factory:
        """A generator that opens a resource, yields it and closes it: tasks get it by the type it yields."""
        return self.registry.add_resource(factory)

    def use(self, middleware: Middleware) -> None:
        """Add code around every run, and hooks for what happens to jobs."""
        self.hooks.use(middleware)

    # --- running ---

    def worker(
        self,
        queues: Mapping[str, int] | None = None,
        *,
        name: str | None = None,
        lease: float = LEASE,
        grace: float = GRACE,
        poll: float = 1.0,
        keep: float = KEEP,
        stuck: Callable[[str], None] | None = None,
    ) -> WorkerService:
        """A worker in this process: `async with hf.worker(queues={"mail": 10}):`. It installs no signal handlers.

        `queues` are slots for each queue; `lease` is how long a claim outlives its last sign of life, `grace` how long
        running jobs have at the end, `keep` how long finished jobs and their results are kept, all in seconds.
        """
        service = WorkerService(
            self.store,
            self.registry,
            self.enqueuer,
            DEFAULT_QUEUES if queues is None else queues,
            self.portal,
            name=name,
            lease=lease,
            grace=grace,
            poll=poll,
            keep=keep,
            stuck=stuck,
        )
        self._workers.add(service)
        return service

    def __repr__(self) -> str:
        return f"Holdfast({self.location!r})"
