"""Holdfast: the one object that wires everything. It does no I/O until it is entered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from holdfast.blobs.settings import BlobSettings
from holdfast.blobs.settings import settings_of as blob_settings_of
from holdfast.events.bus import Bus
from holdfast.events.settings import EventSettings
from holdfast.events.versions import Versions
from holdfast.fleet.flags import FlagCopy
from holdfast.fleet.guards import GuardFleet
from holdfast.fleet.leading import TTL
from holdfast.fleet.locks import Lock
from holdfast.jobs.blocking import Portal
from holdfast.jobs.dead import DeadLetters
from holdfast.jobs.ends import Ends
from holdfast.jobs.ends_by_hand import EndsByHand
from holdfast.jobs.enqueue import Enqueuer
from holdfast.jobs.hooks import Hooks
from holdfast.jobs.registry import Registry
from holdfast.jobs.service import GRACE, LEASE, WorkerService
from holdfast.jobs.unknown import UnknownJobs
from holdfast.jobs.upkeep import KEEP
from holdfast.jobs.working import Work
from holdfast.kernel.awaits import block_around, by_context, must_await
from holdfast.kernel.errors import StoreUnavailable, UsageError
from holdfast.kernel.forks import tell_child
from holdfast.kernel.names import check_name, check_seconds
from holdfast.kernel.service import Service
from holdfast.kernel.spawn import over, spawn, to_its_end
from holdfast.mail.settings import MailSettings, settings_of
from holdfast.observe.alerts.settings import AlertSettings
from holdfast.observe.alerts.settings import settings_of as alert_settings_of
from holdfast.observe.traces.starting import trace_if_asked
from holdfast.runtime.alerting import ProgramAlerts
from holdfast.runtime.blobs.program import ProgramBlobs
from holdfast.runtime.blocking import Blocking
from holdfast.runtime.config import (
    Location,
    cache_at,
    guards_at,
    locate,
    open_store,
    sessions_at,
    transport_at,
)
from holdfast.runtime.declaring import Declaring
from holdfast.runtime.declaring_alerts import DeclaringAlerts
from holdfast.runtime.declaring_cache import DeclaresCache
from holdfast.runtime.declaring_ends import DeclaringEnds
from holdfast.runtime.declaring_sagas import DeclaringSagas
from holdfast.runtime.declaring_views import DeclaringViews
from holdfast.runtime.eventing import Eventing
from holdfast.runtime.flags import ProgramFlags
from holdfast.runtime.guarding import GuardsView
from holdfast.runtime.inside import Inside
from holdfast.runtime.logins import Logins
from holdfast.runtime.mailing import ProgramMail
from holdfast.runtime.outbox import OutboxView
from holdfast.runtime.snapshots import AtLeast, event_id_of
from holdfast.runtime.tenants import TenantsView
from holdfast.runtime.vaulting import ProgramVault
from holdfast.runtime.views import JobsView, QueuesView
from holdfast.runtime.workers import WorkersView
from holdfast.sagas.sagas import Sagas
from holdfast.sqlalchemy.engines import Engines
from holdfast.store.ports import Store, Tx
from holdfast.store.reading import ReadTx
from holdfast.transport.port import Transport
from holdfast.views.cache import Caches
from holdfast.views.registry import ViewRegistry

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

    from holdfast.vault.keyring import Keyring

DEFAULT_QUEUES = {"default": 50}


class Holdfast(
    Declaring, DeclaringAlerts, DeclaringEnds, DeclaringSagas, DeclaringViews, DeclaresCache, Eventing
):
    """Work that must not be lost and must not be done twice.

    `Holdfast()` uses HOLDFAST_URL, else DATABASE_URL, else `sqlite:///holdfast.db`. Enter it with `async with`: that opens
    the store, and leaving closes it. A SQLite file brings its tables up to date by itself; on PostgreSQL that is done by
    `migrate`, once for each version. The rest may be said here or in the environment:

    - `read_url="postgresql://…"`, HOLDFAST_READ_URL: a replica of the database, which `hf.snapshot()` reads.
    - `guards="redis://…"`, HOLDFAST_GUARDS_URL: where guards meet when the database shall not be troubled by them.
    - `cache="redis://…"`, HOLDFAST_CACHE_URL: where values of cached functions are kept then.
    - `sessions="redis://…"`, HOLDFAST_SESSIONS_URL: where those of web pages are.
    - `transport="redis://…"` or `"nats://…"`, HOLDFAST_TRANSPORT_URL: the broker that carries events; else the database does.
    - `keys`, HOLDFAST_KEYS: those of `hf.vault`. `mail`, HOLDFAST_MAIL_URL: where `hf.mail` sends to. `blobs`,
      HOLDFAST_BLOBS_URL: where `hf.blobs` keeps files. `alerts`, HOLDFAST_ALERTS_WEBHOOK and HOLDFAST_ALERTS_MAIL: whom
      alerts are told.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        read_url: str | None = None,
        guards: str | None = None,
        cache: str | None = None,
        sessions: str | None = None,
        transport: str | Transport | None = None,
        events: EventSettings | None = None,
        keys: Keyring | str | None = None,
        mail: MailSettings | str | None = None,
        blobs: BlobSettings | str | None = None,
        alerts: AlertSettings | None = None,
    ) -> None:
        trace_if_asked()
        hooks, fleet = Hooks(), GuardFleet()
        registry, enqueuer = Registry(hooks, fleet.add), Enqueuer(hooks)
        bus = Bus(registry, enqueuer, transport_at(transport), events or EventSettings())
        self._inside = Inside(
            hooks, fleet, registry, enqueuer, bus, guards_at(guards), sessions_at(sessions), self._forked
        )
        self.sagas = Sagas(registry, enqueuer)
        self.views, self.versions = ViewRegistry(bus.catalog), Versions()
        self.cache = Caches(cache_at(cache))
        self._inside.beside = [bus.services, self.views.services, self._saga_services]
        self.vault = ProgramVault(self, keys)
        self.mail = ProgramMail(self, settings_of(mail))
        self.blobs = ProgramBlobs(self, blob_settings_of(blobs))
        self.alerts = ProgramAlerts(self, alert_settings_of(alerts))
        self._inside.beside.append(self.alerts.services)
        self._entered = False
        self._leaving: asyncio.Task[None] | None = None
        self._workers: WeakSet[WorkerService] = WeakSet()
        self._point_at(locate(url, read_url=read_url))

    def _point_at(self, where: str | Location | None) -> None:
        """Use another database from now on, with the same tasks; not while this is open."""
        if self._entered:
            raise UsageError("This Holdfast is open. Leave it before you point it at another database.")
        self._inside.location = where if isinstance(where, Location) else locate(where)
        self.store: Store = open_store(self._inside.location)
        self._inside.portal = Portal(self.store, beside=self.cache)
        self._share()
        registry = self._inside.registry
        ends = EndsByHand(self.store, Ends(self.store, registry, self._inside.portal))
        self._inside.enqueuer.send_to(self.store, self._inside.portal, ends)
        self._inside.bus.send_to(self.store, self._inside.portal)
        self.views.send_to(self.store)
        self.versions.send_to(self.store, self._inside.portal)
        self.sagas.keep_in(self.store)
        self.jobs: JobsView = JobsView(self.store, ends)
        self.queues = QueuesView(self.store)
        self.tenants = TenantsView(self.store)
        self.workers = WorkersView(self.store)
        elsewhere, declared = self._inside.guards_elsewhere, self._inside.fleet.guards
        self.guards = GuardsView(self.store, elsewhere, declared)
        self._flags = FlagCopy(self.store.flags)
        self.flags = ProgramFlags(self.store, self._flags)
        self.logins = Logins(self._inside.visits_elsewhere or self.store.visits)
        self.dead = DeadLetters(self.store, registry, ends)
        self.unknown = UnknownJobs(self.store)
        self.outbox = OutboxView(self.store, self._inside.bus)
        self._inside.engines = Engines(
            self._inside.location.kind, self._inside.location.address, self.store, self._inside.portal.open
        )
        self.blocking = Blocking(self)
        tell_child(self._inside)  # after its store

    def _share(self) -> None:
        """Where guards meet, and where values are kept."""
        if self._inside.guards_elsewhere is None:
            self._inside.fleet.meet_at(self.store.guards)
        else:
            self._inside.fleet.meet_at(self._inside.guards_elsewhere, people=self.store.guards)
        self.cache.keep_in(self.store.cache, self._inside.portal)

    def _forked(self) -> None:
        """A child of the process has not entered it, whatever its parent has done."""
        self._entered, self._leaving, self._workers = False, None, WeakSet()
        self._share()

    async def __aenter__(self) -> Self:
        await self._end_of_leaving()
        if self._entered:
            raise UsageError("This Holdfast is open already. Enter it once; tasks and requests share it.")
        self._entered = True
        try:
            await to_its_end(self._inside.portal.take_over())
            await self.store.open()
            await self._meet()
        except BaseException:
            self._entered, self._inside.portal.home = False, None
            raise
        return self

    async def _meet(self) -> None:
        """Guards go on by themselves when where they meet does not answer, and say so."""
        if self._inside.guards_elsewhere is not None:
            with suppress(StoreUnavailable):
                await self._inside.guards_elsewhere.open()
        if self._inside.visits_elsewhere is not None:
            with suppress(StoreUnavailable):  # requests are told, until it is there
                await self._inside.visits_elsewhere.open()
        await self._inside.fleet.start()
        await self.cache.start()

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
            await self._flags.stop()
            await self.cache.stop()
            await self._inside.fleet.stop()
            if self._inside.guards_elsewhere is not None:
                await self._inside.guards_elsewhere.close()
            if self._inside.visits_elsewhere is not None:
                await self._inside.visits_elsewhere.close()
            if self._inside.bus.wire is not None:
                await self._inside.bus.wire.close()
            await self._inside.engines.close()
            await self.store.close()
        finally:  # not before: a thread would open the store again while it is being closed
            self._entered, self._inside.portal.home, self._leaving = False, None, None

    @must_await("hf.migrate", to=by_context)
    async def migrate(self) -> list[str]:
        """Bring the tables up to date; returns the names of the migrations that were applied."""
        return await self.store.migrate()

    @must_await("hf.now", to=by_context)
    async def now(self) -> float:
        """Seconds since 1970 by the database's clock: the same for all machines, and in tests the clock that they turn."""
        return await self.store.now()

    def transaction(self) -> AbstractAsyncContextManager[Tx]:
        """A transaction of the store's database: the block's end commits, an exception rolls back."""
        return self.store.transaction()

    def snapshot(
        self, *, at_least: AtLeast | None = None, wait: float = 2.0
    ) -> AbstractAsyncContextManager[ReadTx]:
        """Read what was committed up to now: `async with hf.snapshot() as tx: await tx.fetch(…)`. All of it is of one moment.

        It never waits for the write lock of a SQLite file. With `read_url` it reads the replica: `at_least` is then an event that must have
        arrived there, such as what `hf.emit` returned, and with it all that its transaction has written. After `wait` seconds ReplicaBehind is raised.
        """
        return self.store.snapshot(at_least=event_id_of(at_least), wait=check_seconds("wait", wait))

    def sqlalchemy(self) -> AsyncEngine:
        """SQLAlchemy's engine over this database: on SQLite over Holdfast's own connections, on PostgreSQL over asyncpg."""
        return self._inside.engines.engine()

    def session(self, **options: Any) -> AsyncSession:
        """`async with hf.session() as session:` SQLAlchemy's session, which is also what `tx=` takes. You commit it.

        Options are those of AsyncSession; `expire_on_commit` is False unless you say otherwise.
        """
        return self._inside.engines.session(**options)

    def _saga_services(self, owner: str, lease: float) -> list[Service]:
        """They wait for events that somebody has to publish, also when the program hears none in other ways."""
        services: list[Service] = [*self.sagas.services(owner, lease)]
        if services and self._inside.bus.catalog.is_empty:
            services.append(self._inside.bus.relay(owner, min(TTL, lease)))
        return services

    @must_await("hf.flag", to=by_context)
    async def flag(self, name: str, *, tenant: str | None = None, default: bool = False) -> bool:
        """Whether this is on: as a person has set it for the tenant, else for everyone, else the default.

        It asks the memory of this process, which is at most two seconds old, so it may stand anywhere.
        """
        check_name("flag", name)
        return await self._flags.ask(name, tenant, default=default)

    def lock(self, name: str, *, lease: float = 30.0, wait: float = 0.0) -> Lock:
        """A lock that the whole fleet respects: `async with hf.lock("report") as lease:`; `lease.token` fences."""
        block = block_around("async with", "lease", "hf.lock", name)
        return Lock(self.store, name, lease=lease, wait=wait, block=block)

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
        self.vault.check()
        service = WorkerService(
            self.store,
            self._inside.registry,
            self._inside.enqueuer,
            self.alerts.queues(DEFAULT_QUEUES if queues is None else queues),
            self._inside.portal,
            name=name,
            lease=lease,
            grace=grace,
            poll=poll,
            keep=keep,
            stuck=stuck,
            beside=self._services,
            ahead=self._inside.fleet.ahead,
        )
        self._workers.add(service)
        return service

    def working(self) -> Work | None:
        """What the workers of this process do now; None: there are none. Probes show it."""
        if self._inside.work_elsewhere is not None:
            return self._inside.work_elsewhere()
        found = [each.work for each in self._workers if each.is_active]
        if not found:
            return None
        troubles = [each.trouble for each in found if each.trouble is not None]
        return Work(
            running=all(each.running for each in found),
            jobs=sum(each.jobs for each in found),
            trouble="; ".join(troubles) or None,
        )

    def _services(self, name: str, lease: float) -> list[Service]:
        return [service for make in self._inside.beside for service in make(name, lease)]

    def __repr__(self) -> str:
        return f"Holdfast({self._inside.location!r})"


def point_at(hf: Holdfast, where: str | Location | None) -> None:
    """Use another database from now on, with the same tasks; not while it is open. Tests do so."""
    hf._point_at(where)  # noqa: SLF001  hidden from programs
