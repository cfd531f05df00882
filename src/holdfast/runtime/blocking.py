"""`hf.blocking`: every verb of `hf` for code without an event loop. Each is made of its async form, so it takes and returns the same."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from holdfast.events.catalog import EventType
from holdfast.events.emitting import Item
from holdfast.fleet.locks import Lock
from holdfast.jobs.blocking import BlockingReadTx, BlockingTx, Blocks, Portal
from holdfast.jobs.handle import Handle
from holdfast.jobs.task import Bound, Call, Task
from holdfast.kernel.awaits import block_around
from holdfast.runtime.inside import inside
from holdfast.runtime.snapshots import AtLeast
from holdfast.store.event_records import Emitted
from holdfast.store.records import Lease

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Engine
    from sqlalchemy.orm import Session

    from holdfast.events.versions import Versions
    from holdfast.jobs.dead import DeadLetters
    from holdfast.jobs.unknown import UnknownJobs
    from holdfast.runtime.alerting import ProgramAlerts
    from holdfast.runtime.app import Holdfast
    from holdfast.runtime.blobs.program import ProgramBlobs
    from holdfast.runtime.flags import ProgramFlags
    from holdfast.runtime.guarding import GuardsView
    from holdfast.runtime.logins import Logins
    from holdfast.runtime.mailing import ProgramMail
    from holdfast.runtime.outbox import OutboxView
    from holdfast.runtime.tenants import TenantsView
    from holdfast.runtime.vaulting import ProgramVault
    from holdfast.runtime.views import JobsView, QueuesView
    from holdfast.runtime.workers import WorkersView
    from holdfast.sagas.sagas import Sagas
    from holdfast.views.cache import Caches

P = ParamSpec("P")
R = TypeVar("R")


class Blocking:
    """The engine for sync code: it waits until a thing is done. An error on a running loop."""

    def __init__(self, hf: Holdfast) -> None:
        portal = inside(hf).portal
        self._hf, self._portal = hf, portal
        self.jobs = BlockingJobs(portal, hf.jobs)
        self.queues = BlockingQueues(portal, hf.queues)
        self.tenants = BlockingTenants(portal, hf.tenants)
        self.workers = BlockingWorkers(portal, hf.workers)
        self.guards = BlockingGuards(portal, hf.guards)
        self.dead = BlockingDead(portal, hf.dead)
        self.unknown = BlockingUnknown(portal, hf.unknown)
        self.outbox = BlockingOutbox(portal, hf.outbox)
        self.sagas = BlockingSagas(portal, hf.sagas)
        self.versions = BlockingVersions(portal, hf.versions)
        self.cache = BlockingCache(portal, hf.cache)
        self.flags = BlockingFlags(portal, hf.flags)
        self.alerts = BlockingAlerts(portal, hf.alerts)
        self.flag = Blocks(portal, "hf")(hf.flag)
        self.logins = BlockingLogins(portal, hf.logins)
        self.vault = BlockingVault(portal, hf.vault)
        self.mail = BlockingMail(portal, hf.mail)
        self.blobs = BlockingBlobs(portal, hf.blobs)
        self.migrate = Blocks(portal, "hf")(hf.migrate)
        self.now = Blocks(portal, "hf")(hf.now)

    def emit(
        self,
        type_: EventType[Any] | str,
        data: Any = None,
        *,
        key: str | None = None,
        tx: Any = None,
        expect: int | None = None,
    ) -> Emitted:
        """Store an event, in the transaction `tx` when one is given."""
        return self._hf.emit_sync(type_, data, key=key, tx=tx, expect=expect)

    def emit_many(self, events: Iterable[Item], *, tx: Any = None) -> list[Emitted]:
        """Store many events, all or none: each is (type, data) or (type, data, key)."""
        return self._hf.emit_many_sync(events, tx=tx)

    def enqueue(self, task: Task[P, R] | Call[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Store a job, and return when it is stored for good."""
        return task.enqueue_sync(*args, **kwargs)

    def enqueue_many(
        self, task: Task[P, R] | Call[P, R], calls: Iterable[Mapping[str, Any] | Bound], /
    ) -> list[Handle[R]]:
        """Store many jobs, all or none."""
        return task.enqueue_many_sync(calls)

    def result(self, handle: Handle[R], timeout: float | None = None) -> R:
        """Wait for a job's result."""
        return handle.result_sync(timeout)

    def transaction(self) -> AbstractContextManager[BlockingTx]:
        """A transaction of the store's database for this thread: `tx` is also what `enqueue_sync` takes."""
        block = self._hf.transaction()
        return self._portal.entered(block, instead="`async with hf.transaction() as tx`")

    def snapshot(
        self, *, at_least: AtLeast | None = None, wait: float = 2.0
    ) -> AbstractContextManager[BlockingReadTx]:
        """`with hf.blocking.snapshot() as tx:` read what was committed up to now, and write nothing."""
        block = self._hf.snapshot(at_least=at_least, wait=wait)
        return self._portal.reading(block, instead="`async with hf.snapshot() as tx`")

    def lock(self, name: str, *, lease: float = 30.0, wait: float = 0.0) -> AbstractContextManager[Lease]:
        """`with hf.blocking.lock("report") as lease:` a lock that the whole fleet respects.

        A thread cannot be interrupted when the lock is lost meanwhile: it hears of it at the end of the block, as LockLost.
        """
        asked = block_around("with", "lease", "hf.blocking.lock", name)
        block = Lock(self._hf.store, name, lease=lease, wait=wait, block=asked)
        return self._portal.lent(block, instead=f"`async with hf.lock({name!r}) as lease`")

    def sqlalchemy(self) -> Engine:
        """SQLAlchemy's sync engine over this database: on SQLite over Holdfast's own connections, on PostgreSQL over psycopg."""
        return inside(self._hf).engines.blocking()

    def session(self, **options: Any) -> Session:
        """`with hf.blocking.session() as session:` SQLAlchemy's session, which is also what `tx=` takes. You commit it."""
        return inside(self._hf).engines.blocking_session(**options)

    def close(self) -> None:
        """Close the store, when sync code has opened it. Not needed at the end of a program."""
        inside(self._hf).engines.close_blocking()
        self._portal.close()


class BlockingJobs:
    """`hf.jobs`."""

    def __init__(self, portal: Portal, jobs: JobsView) -> None:
        made = Blocks(portal, "hf.jobs")
        self.get, self.find, self.handle = made(jobs.get), made(jobs.find), jobs.handle
        self.story, self.cancel, self.move = made(jobs.story), made(jobs.cancel), made(jobs.move)


class BlockingQueues:
    """`hf.queues`."""

    def __init__(self, portal: Portal, queues: QueuesView) -> None:
        made = Blocks(portal, "hf.queues")
        self.pause, self.resume = made(queues.pause), made(queues.resume)
        self.paused, self.count = made(queues.paused), made(queues.count)


class BlockingTenants:
    """`hf.tenants`."""

    def __init__(self, portal: Portal, tenants: TenantsView) -> None:
        made = Blocks(portal, "hf.tenants")
        self.pause, self.resume, self.paused = made(tenants.pause), made(tenants.resume), made(tenants.paused)


class BlockingWorkers:
    """`hf.workers`."""

    def __init__(self, portal: Portal, workers: WorkersView) -> None:
        self.list = Blocks(portal, "hf.workers")(workers.list)


class BlockingGuards:
    """`hf.guards`."""

    def __init__(self, portal: Portal, guards: GuardsView) -> None:
        made = Blocks(portal, "hf.guards")
        self.look, self.find = made(guards.look), made(guards.find)


class BlockingDead:
    """`hf.dead`."""

    def __init__(self, portal: Portal, dead: DeadLetters) -> None:
        made = Blocks(portal, "hf.dead")
        self.find, self.replay, self.discard = made(dead.find), made(dead.replay), made(dead.discard)
        self.replay_edited = made(dead.replay_edited)


class BlockingUnknown:
    """`hf.unknown`."""

    def __init__(self, portal: Portal, unknown: UnknownJobs) -> None:
        made = Blocks(portal, "hf.unknown")
        self.find, self.steps, self.resolve = made(unknown.find), made(unknown.steps), made(unknown.resolve)


class BlockingOutbox:
    """`hf.outbox`."""

    def __init__(self, portal: Portal, outbox: OutboxView) -> None:
        made = Blocks(portal, "hf.outbox")
        self.lag, self.get, self.find = made(outbox.lag), made(outbox.get), made(outbox.find)
        self.groups, self.backlogs = made(outbox.groups), made(outbox.backlogs)
        self.behind, self.room = made(outbox.behind), made(outbox.room)
        self.unsubscribe = made(outbox.unsubscribe)
        self.brokers, self.forget_broker = made(outbox.brokers), made(outbox.forget_broker)
        self.requeue, self.drop, self.redrive = made(outbox.requeue), made(outbox.drop), made(outbox.redrive)
        self.strays, self.replay_stray = made(outbox.strays), made(outbox.replay_stray)


class BlockingSagas:
    """`hf.sagas`. A saga itself has `start_sync`, and its handle `status_sync`, `signal_sync` and the others."""

    def __init__(self, portal: Portal, sagas: Sagas) -> None:
        made = Blocks(portal, "hf.sagas")
        self.get, self.find, self.history = made(sagas.get), made(sagas.find), made(sagas.history)
        self.cancel, self.retry, self.settle = made(sagas.cancel), made(sagas.retry), made(sagas.settle)
        self.run = sagas.run


class BlockingVersions:
    """`hf.versions`."""

    def __init__(self, portal: Portal, versions: Versions) -> None:
        made = Blocks(portal, "hf.versions")
        self.current, self.expect, self.advance = (
            made(versions.current),
            made(versions.expect),
            made(versions.advance),
        )


class BlockingCache:
    """`hf.cache`."""

    def __init__(self, portal: Portal, cache: Caches) -> None:
        made = Blocks(portal, "hf.cache")
        self.invalidate, self.invalidate_tags = made(cache.invalidate), made(cache.invalidate_tags)


class BlockingFlags:
    """`hf.flags`."""

    def __init__(self, portal: Portal, flags: ProgramFlags) -> None:
        made = Blocks(portal, "hf.flags")
        self.set, self.unset, self.list = made(flags.set), made(flags.unset), made(flags.list)


class BlockingAlerts:
    """`hf.alerts`."""

    def __init__(self, portal: Portal, alerts: ProgramAlerts) -> None:
        made = Blocks(portal, "hf.alerts")
        self.raise_, self.over = made(alerts.raise_), made(alerts.over)
        self.expires, self.list = made(alerts.expires), made(alerts.list)


class BlockingLogins:
    """`hf.logins`."""

    def __init__(self, portal: Portal, logins: Logins) -> None:
        made = Blocks(portal, "hf.logins")
        self.list, self.end = made(logins.list), made(logins.end)


class BlockingVault:
    """`hf.vault`; what seals and opens needs no waiting, and is there under the same names."""

    def __init__(self, portal: Portal, vault: ProgramVault) -> None:
        made = Blocks(portal, "hf.vault")
        self.rotate, self.counts = made(vault.rotate), made(vault.counts)
        self.seal, self.open, self.column = vault.seal, vault.open, vault.column


class BlockingMail:
    """`hf.mail`."""

    def __init__(self, portal: Portal, mail: ProgramMail) -> None:
        self.send = Blocks(portal, "hf.mail")(mail.send)


class BlockingBlobs:
    """`hf.blobs`. What `open` gives is read on a loop: threads take `read`, in ranges."""

    def __init__(self, portal: Portal, blobs: ProgramBlobs) -> None:
        made = Blocks(portal, "hf.blobs")
        self.stage, self.commit, self.put = made(blobs.stage), made(blobs.commit), made(blobs.put)
        self.discard, self.receive = made(blobs.discard), made(blobs.receive)
        self.get, self.read, self.open = made(blobs.get), made(blobs.read), made(blobs.open)
        self.list, self.usage = made(blobs.list), made(blobs.usage)
        self.link_get, self.link_put = made(blobs.link_get), made(blobs.link_put)
        self.delete, self.restore, self.purge = made(blobs.delete), made(blobs.restore), made(blobs.purge)
        self.quarantine, self.release = made(blobs.quarantine), made(blobs.release)
        self.sweep, self.check = made(blobs.sweep), made(blobs.check)
