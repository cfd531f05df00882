"""The store on PostgreSQL: opens it, checks that it can keep the promises, and wires the subjects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from holdfast.kernel.errors import UnsupportedStore, WrongConnection
from holdfast.kernel.forks import keep, tell_child
from holdfast.kernel.spawn import over, spawn
from holdfast.kernel.telemetry import note
from holdfast.store.ports import PoolUse, Tx
from holdfast.store.postgres import schema
from holdfast.store.postgres.alerts import Alerts
from holdfast.store.postgres.audit import Audit
from holdfast.store.postgres.blobs import Blobs
from holdfast.store.postgres.cache import Cache
from holdfast.store.postgres.claims import Claims
from holdfast.store.postgres.connection import Database, connect
from holdfast.store.postgres.dead import Dead
from holdfast.store.postgres.diagnosis import OLDEST_SERVER, Diagnosis
from holdfast.store.postgres.endings import Endings
from holdfast.store.postgres.failures import FAILURES, translate
from holdfast.store.postgres.flags import Flags
from holdfast.store.postgres.groups import Groups
from holdfast.store.postgres.guards import Guards
from holdfast.store.postgres.history import History
from holdfast.store.postgres.holds import Holds
from holdfast.store.postgres.inbox import Inbox
from holdfast.store.postgres.jobs import Jobs
from holdfast.store.postgres.keys import Keys
from holdfast.store.postgres.leases import Leases
from holdfast.store.postgres.outbox import Outbox
from holdfast.store.postgres.queues import Queues
from holdfast.store.postgres.sagas import Sagas
from holdfast.store.postgres.schedules import Schedules
from holdfast.store.postgres.sessions import Sessions
from holdfast.store.postgres.snapshot import Snapshot
from holdfast.store.postgres.steps import Steps
from holdfast.store.postgres.strays import Strays
from holdfast.store.postgres.tenants import Tenants
from holdfast.store.postgres.transaction import Executor, PostgresTx
from holdfast.store.postgres.url import Target, parse
from holdfast.store.postgres.versions import Versions
from holdfast.store.postgres.views import Views
from holdfast.store.postgres.visits import Visits
from holdfast.store.postgres.wakeups import Wakeups
from holdfast.store.postgres.workers import Workers
from holdfast.store.statements import Procedure, Statement

T = TypeVar("T")


class PostgresStore:
    """Everything that is kept, in the schema `holdfast` of one database. No I/O until `open`."""

    def __init__(
        self,
        url: str | Target,
        *,
        listen_url: str | None = None,
        read_url: str | Target | None = None,
    ) -> None:
        """`listen_url` leads to the same server without a pooler in between, for the one connection that listens.

        `read_url` leads to a replica of it, which snapshots read.
        """
        self._target = url if isinstance(url, Target) else parse(url)
        self._reads_at = parse(read_url) if isinstance(read_url, str) else read_url
        self._listens_at = parse(listen_url) if listen_url else self._target
        self._make()
        tell_child(self)

    def forked(self) -> None:
        """In a child: it is closed, whatever the parent was doing with it, and can be opened."""
        pool = self.database.pool
        keep([self.database, self.replica, self.wakeups])
        self._make()
        self.database.pool.is_forked = pool.is_open or pool.is_forked

    def _make(self) -> None:
        """All that it consists of, not open yet."""
        self.database = Database(self._target)
        self.replica = None if self._reads_at is None else Database(self._reads_at)
        self._is_replica_known = False
        self.wakeups = Wakeups(self.database, self._listens_at)
        self.endings = Endings(self.database)
        self._id: str | None = None
        self._closing: asyncio.Task[None] | None = None  # the last close
        self.jobs = Jobs(self)
        self.claims = Claims(self)
        self.holds = Holds(self)
        self.dead = Dead(self)
        self.steps = Steps(self)
        self.queues = Queues(self)
        self.tenants = Tenants(self)
        self.history = History(self)
        self.leases = Leases(self)
        self.sessions = Sessions(self)
        self.workers = Workers(self)
        self.schedules = Schedules(self)
        self.views = Views(self)
        self.versions = Versions(self)
        self.keys = Keys(self)
        self.visits = Visits(self)
        self.flags = Flags(self)
        self.alerts = Alerts(self)
        self.guards = Guards(self)
        self.outbox = Outbox(self)
        self.inbox = Inbox(self)
        self.groups = Groups(self)
        self.strays = Strays(self)
        self.blobs = Blobs(self)
        self.cache = Cache(self)
        self.sagas = Sagas(self)
        self.audit = Audit(self)
        self.diagnosis = Diagnosis(self.database.target)

    async def open(self) -> None:
        """Check that the server can keep the promises, and that its tables fit. Missing ones are `migrate`'s business."""
        await self._leave_behind()
        self.database.pool.start()
        if self.replica is not None:
            self.replica.pool.start()  # it need not be there yet
        try:
            _check(await self.database.read(_settings))
            self.database.missing = await self.pending()
        except BaseException:
            await self.close()
            raise

    async def _leave_behind(self) -> None:
        """Wait for a close that is under way, and forget what a loop that is gone has left open."""
        if self._is_closing_here():
            assert self._closing is not None
            await over(self._closing)
        elif self.database.pool.is_forsaken:
            await self.close()

    async def close(self) -> None:
        """In a task of its own: whoever gives up waiting for it has closed it all the same. All wait for the same end."""
        if not self._is_closing_here():
            self.database.pool.check_end()
            self._closing = spawn(self._close(), name="store:close")
        assert self._closing is not None
        await asyncio.shield(self._closing)

    def _is_closing_here(self) -> bool:
        task = self._closing
        return task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop()

    async def _close(self) -> None:
        try:
            await self.wakeups.stop()
        finally:
            if self.replica is not None:
                await self.replica.pool.stop()
            await self.database.pool.stop()

    async def migrate(self) -> list[str]:
        if not self.database.pool.is_open:
            return await self._opened_for(self.migrate)
        # An index over many rows takes as long as it takes.
        patient = msgspec.structs.replace(self.database.target, command_timeout=None)
        applied = await self._directly(schema.apply, patient)
        self.database.missing = []
        await self.history.prepare()
        return applied

    async def pending(self) -> list[str]:
        return [migration.name for migration in await self._directly(schema.find_pending)]

    async def _opened_for(self, action: Callable[[], Awaitable[T]]) -> T:
        await self.open()
        try:
            return await action()
        finally:
            await self.close()

    def transaction(self) -> PostgresTx:
        return PostgresTx(self.database, self.wakeups.hint)

    def snapshot(self, *, at_least: str | None = None, wait: float = 2.0) -> Snapshot:
        """On the primary everything that was committed before is there."""
        if self.replica is None:
            return Snapshot(self.database, check=self._check_snapshot, at_least=None, wait=wait)
        return Snapshot(self.replica, check=self._check_replica, at_least=at_least, wait=wait)

    async def _check_snapshot(self) -> None:
        self.database.blocks.check_free()

    async def _check_replica(self) -> None:
        """Once: that it is a copy of this database, and not of another."""
        await self._check_snapshot()
        assert self.replica is not None
        if self._is_replica_known:
            return
        if await _identify(self.replica) != await self.id():
            raise UnsupportedStore(
                "read_url leads to another database than that of this Holdfast. Name a replica of it."
            )
        self._is_replica_known = True

    def twin(self) -> PostgresStore:
        """With few connections of its own: those of asyncpg belong to one loop."""
        small = msgspec.structs.replace(self.database.target, pool_size=2)
        reads = None if self._reads_at is None else msgspec.structs.replace(self._reads_at, pool_size=2)
        return PostgresStore(small, read_url=reads)

    def pool_use(self) -> PoolUse:
        return self.database.pool.use()

    async def now(self) -> float:
        """Inside a transaction it asks there: tasks that hold all connections and want one more would wait for each other."""
        mine = self.database.blocks.mine()
        if isinstance(mine, PostgresTx) and mine.standing.failure is None:
            return await mine.run(_now())
        return await self.database.read(_now)

    async def raise_epoch(self) -> int:
        return await self.database.write(_raise_epoch)

    async def adopt(self, tx: object) -> Executor:
        """Our own transaction as it is; a caller's connection or session when it leads to this store's database."""
        if not isinstance(tx, PostgresTx):
            from holdfast.store.postgres.adapters import adopt  # noqa: PLC0415  only who has such a driver needs it

            return await adopt(tx, store_id=await self.id())
        if tx.database is not self.database and await _identify(tx.database) != await self.id():
            raise WrongConnection(
                "This transaction is of another store. Use a transaction of the store that is written to."
            )
        return tx

    async def joined(self, tx: object) -> Tx:
        return cast(Tx, await self.adopt(tx))  # of every kind: our own, and what adapters make of others'

    def check_free(self) -> None:
        self.database.blocks.check_free()

    def hint(self, queues: Collection[str], *, tx: object | None = None) -> None:
        """After the commit: now, or when our own transaction has ended well. A caller's own connection tells nobody."""
        if isinstance(tx, PostgresTx):
            tx.news.update(queues)
        elif tx is None:
            self.wakeups.tell(queues)

    async def id(self) -> str:
        """Which store this is: a caller's connection that shows another id leads elsewhere."""
        if self._id is None:
            self._id = await _identify(self.database)
        return self._id

    async def _directly(self, action: Callable[[Any], Awaitable[T]], target: Target | None = None) -> T:
        """On a connection of its own: DDL may take longer than a verb, and must not take one from the pool."""
        if self.database.pool.is_open:
            self.database.pool.check()
        try:
            connection = await connect(target or self.database.target)
            try:
                return await action(connection)
            finally:
                await connection.close()
        except FAILURES as error:
            raise translate(error) from error


def _settings() -> Procedure[dict[str, str]]:
    names = ["server_version_num", "fsync", "synchronous_commit", "full_page_writes"]
    sql = "SELECT name, setting FROM pg_settings WHERE name = ANY($1::text[])"
    return {row[0]: row[1] for row in (yield Statement(sql, (names,)))}


def _check(settings: dict[str, str]) -> None:
    if int(settings["server_version_num"]) < OLDEST_SERVER:
        raise UnsupportedStore(
            f"PostgreSQL {settings['server_version_num']} is too old; Holdfast needs version {OLDEST_SERVER // 10_000} or newer."
        )
    if settings["synchronous_commit"] == "off":
        raise UnsupportedStore(
            "synchronous_commit is off here: an acknowledged job could be lost in a crash. "
            "Set it to on, at least for the role that Holdfast uses (ALTER ROLE … SET synchronous_commit = on)."
        )
    for name in ("fsync", "full_page_writes"):
        if settings[name] == "off":
            note("store.not_durable", store="postgres", setting=name)


def _now() -> Procedure[float]:
    rows = yield Statement("SELECT date_part('epoch', holdfast.now())")
    now: float = rows[0][0]
    return now


def _raise_epoch() -> Procedure[int]:
    sql = "SELECT setval('holdfast.token', ((last_value >> 40) + 1) << 40) >> 40 FROM holdfast.token"
    rows = yield Statement(sql)
    epoch: int = rows[0][0]
    return epoch


def _identity() -> Procedure[str]:
    rows = yield Statement("SELECT id::text FROM holdfast.store")
    found: str = rows[0][0]
    return found


async def _identify(database: Database) -> str:
    return await database.read(partial(_identity))
