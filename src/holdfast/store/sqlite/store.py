"""The store on one SQLite file: opens it, gives each verb to the right thread, and answers truthfully."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar

import apsw

from holdfast.kernel.errors import CommitUnknown, UnsupportedStore, UsageError, WrongConnection
from holdfast.kernel.forks import keep, tell_child
from holdfast.kernel.loops import new_lock
from holdfast.kernel.spawn import Reply, ThreadReply
from holdfast.store.sqlite import refusals, schema
from holdfast.store.sqlite.alerts import Alerts
from holdfast.store.sqlite.audit import Audit
from holdfast.store.sqlite.blobs import Blobs
from holdfast.store.sqlite.cache import Cache
from holdfast.store.sqlite.carriers import adopt, lent_by
from holdfast.store.sqlite.claims import Claims
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.dead import Dead
from holdfast.store.sqlite.diagnosis import Diagnosis
from holdfast.store.sqlite.flags import Flags
from holdfast.store.sqlite.groups import Groups
from holdfast.store.sqlite.guards import Guards
from holdfast.store.sqlite.history import History
from holdfast.store.sqlite.holds import Holds
from holdfast.store.sqlite.inbox import Inbox
from holdfast.store.sqlite.jobs import Jobs
from holdfast.store.sqlite.keys import Keys
from holdfast.store.sqlite.leases import Leases
from holdfast.store.sqlite.outbox import Outbox
from holdfast.store.sqlite.queues import Queues
from holdfast.store.sqlite.reader import Reader
from holdfast.store.sqlite.sagas import Sagas
from holdfast.store.sqlite.schedules import Schedules
from holdfast.store.sqlite.served import Work
from holdfast.store.sqlite.sessions import Sessions
from holdfast.store.sqlite.snapshot import Snapshot, Snapshots
from holdfast.store.sqlite.steps import Steps
from holdfast.store.sqlite.strays import Strays
from holdfast.store.sqlite.tenants import Tenants
from holdfast.store.sqlite.transaction import SqliteTx
from holdfast.store.sqlite.versions import Versions
from holdfast.store.sqlite.views import Views
from holdfast.store.sqlite.visits import Visits
from holdfast.store.sqlite.wakeups import Wakeups
from holdfast.store.sqlite.workers import Workers
from holdfast.store.sqlite.writer import Session, Writer
from holdfast.store.unknown import still_unknown

T = TypeVar("T")


class SqliteStore:
    """Everything that is kept, in one file. No I/O until `open`."""

    def __init__(self, path: str | os.PathLike[str], *, synchronous: str = "FULL") -> None:
        if synchronous not in ("FULL", "NORMAL", "OFF"):
            raise UsageError(f"synchronous is FULL, NORMAL or OFF; got {synchronous!r}.")
        self.path = os.fspath(path)
        self._opened = partial(Db, self.path, synchronous=synchronous)
        self._make()
        tell_child(self)

    def forked(self) -> None:
        """In a child: it is closed, whatever the parent was doing with it, and can be opened."""
        was_open = self._writer.is_forked or (self._writer.is_begun and not self._writer.is_spent)
        keep([self._writer, self._reader, self._snapshots])
        self._make()
        self._writer.is_forked = self._reader.is_forked = was_open

    def _make(self) -> None:
        """All that it consists of, not open yet."""
        self._lock = new_lock()  # who opens: several loops may do so at once
        self._writer, self._reader = self._new_threads()
        self._snapshots: Snapshots | None = None
        self.wakeups = Wakeups(self.path, partial(self._opened, reading=True), self.check)
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
        self.diagnosis = Diagnosis(self.path)

    async def open(self) -> None:
        """Check that this file can keep the promises, and bring its tables up to date."""
        await self._leave_behind()
        writer, reader = self._begin()
        try:
            await writer.ready()
            await self._migrate()
            await reader.start()
        except BaseException:
            await self._end(writer, reader)
            raise

    async def _leave_behind(self) -> None:
        """Wait for the end of the last time: a close may be under way, given up even, or a thread has died."""
        if self._writer.is_spent:
            await self.close()

    def _begin(self) -> tuple[Writer, Reader]:
        with self._lock:
            if self._writer.is_begun and not self._writer.is_spent:
                raise UsageError("The store is open already. Open it once; tasks and requests share it.")
            self._refuse()
            self._writer, self._reader = self._new_threads()
            self._writer.begin()
            return self._writer, self._reader

    def _refuse(self) -> None:
        refusals.check_library(apsw.sqlitelibversion())
        refusals.check_file_system(self.path)
        refusals.check_fork(self.path)
        if (found := refusals.foreign_descriptor(self.path)) is not None:
            raise UnsupportedStore(found)

    def _new_threads(self) -> tuple[Writer, Reader]:
        return Writer(self._opened), Reader(partial(self._opened, reading=True))

    async def close(self) -> None:
        """What was asked before is still done. Whoever gives up waiting for it has closed it all the same."""
        # Those of now: the next open may come before this has ended.
        writer, reader = self._writer, self._reader
        writer.leaving = True
        try:
            await self.jobs.rest()
            await self.outbox.rest()
        except BaseException:
            self._dismiss(writer, reader)
            raise
        await self._end(writer, reader)

    async def _end(self, writer: Writer, reader: Reader) -> None:
        """One after the other: who leaves a file last tidies it up, and that is the writer's."""
        writer.leaving = True
        try:
            if (snapshots := self._take_snapshots()) is not None:
                await snapshots.stop()
            reading = reader.dismiss()
            self.wakeups.stop()  # not before: from now on whoever wants to wait is refused
            await reading
            await writer.stop()
        except BaseException:
            self._dismiss(writer, reader)
            raise

    def _dismiss(self, writer: Writer, reader: Reader) -> None:
        """Whoever waited was cancelled. They end without it."""
        if (snapshots := self._take_snapshots()) is not None:
            snapshots.dismiss()
        reader.dismiss()
        self.wakeups.stop()
        writer.dismiss()

    def _take_snapshots(self) -> Snapshots | None:
        with self._lock:
            found, self._snapshots = self._snapshots, None
        return found

    async def migrate(self) -> list[str]:
        """A SQLite store does this when it opens; so this opens it, when it is not open yet."""
        if self._writer.running:
            return await self._migrate()
        before = await self.pending()
        await self.open()
        await self.close()
        return before

    async def _migrate(self) -> list[str]:
        if not await self.write(schema.find_pending):
            return []  # an open of tables that are up to date writes nothing
        return await self.write(schema.apply)

    async def pending(self) -> list[str]:
        if self._writer.running:
            missing = await self.write(schema.find_pending)
        elif not os.path.exists(self.path):  # noqa: ASYNC240, PTH110  asking must not create the file
            missing = schema.MIGRATIONS
        else:
            reader = Reader(partial(Db, self.path, reading=True))
            try:
                await reader.start()
                missing = await reader.run(schema.find_pending)
            finally:
                await reader.stop()
        return [migration.name for migration in missing]

    def transaction(self) -> SqliteTx:
        return SqliteTx(self.open_session, self.path, self.wakeups.hint)

    async def open_session(
        self, reply: type[Reply[Any]], session: Session | None = None, first: Work[Any] | None = None
    ) -> Session:
        """Of the writer that is there when the block begins."""
        return await self._writer.open_session(reply, session, first)

    def ask_session(self, reply: type[Reply[Any]]) -> Session:
        return self._writer.ask_session(reply)

    async def write_from_thread(self, call: Callable[[Db], T]) -> T:
        """For a thread without a loop, which stands still meanwhile."""
        return await self._writer.run(call, kind=ThreadReply)

    def new_reader(self) -> Db:
        """A connection for reading, whose owner closes it. The store is open."""
        return self._opened(reading=True)

    def snapshot(self, *, at_least: str | None = None, wait: float = 2.0) -> Snapshot:  # noqa: ARG002
        """Everything that was committed before is there."""
        return Snapshot(self._serving_snapshots)

    def _serving_snapshots(self) -> Snapshots:
        self.check()
        self.check_free()
        with self._lock:
            if self._snapshots is None or self._snapshots.is_spent:
                self._snapshots = Snapshots(partial(self._opened, reading=True))
                self._snapshots.begin()
            return self._snapshots

    def twin(self) -> SqliteStore:
        """Itself: its threads answer on the loop of whoever asks."""
        return self

    async def now(self) -> float:
        return await self.read(lambda db: db.now)

    async def raise_epoch(self) -> int:
        return await self.write(_raise_epoch)

    # How the subjects below reach the file.

    async def write(
        self,
        call: Callable[[Db], T],
        *,
        tx: object | None = None,
        urgent: bool = False,
        repeatable: bool = False,
        hasty: bool = False,
    ) -> T:
        if tx is None:
            return await self._write(call, urgent=urgent, repeatable=repeatable, hasty=hasty)
        return await (await self.joined(tx)).run(call)

    async def joined(self, tx: object) -> SqliteTx:
        """The transaction itself, or the one that a session of SQLAlchemy carries, when it is of this file."""
        if isinstance(tx, SqliteTx):
            if tx.path != self.path and not _is_same_file(tx.path, self.path):
                raise WrongConnection(f"This transaction is of {tx.path!r}, and the store is {self.path!r}.")
            return tx
        lent = await adopt(tx)
        if not _is_same_file(lent.path, self.path):
            raise WrongConnection(f"This session is of {lent.path!r}, and the store is {self.path!r}.")
        return lent

    async def _write(self, call: Callable[[Db], T], *, urgent: bool, repeatable: bool, hasty: bool) -> T:
        try:
            return await self._writer.run(call, urgent=urgent, hasty=hasty)
        except CommitUnknown as unknown:
            if not repeatable:
                raise
            return await still_unknown(unknown, self._writer.run(call, urgent=urgent, hasty=hasty))

    def check(self) -> None:
        """Raise unless it is open, and in this process."""
        self._reader.check()

    def check_free(self) -> None:
        self._writer.check_free()

    def hint(self, queues: Collection[str], *, tx: object | None = None) -> None:
        """After the commit: now, or when the transaction has ended well."""
        if tx is None:
            self.wakeups.tell(queues)
        else:
            (tx if isinstance(tx, SqliteTx) else lent_by(tx)).news.update(queues)

    @property
    def is_open_here(self) -> bool:
        """In this process: a forked child has none of its parent's threads."""
        return self._writer.running and self._writer.is_of_this_process

    async def read(self, call: Callable[[Db], T]) -> T:
        return await self._reader.run(call)


def _is_same_file(one: str, other: str) -> bool:
    """By another path. It asks for each folder of both, which takes longer than to write a row."""
    return os.path.realpath(one) == os.path.realpath(other)


def _raise_epoch(db: Db) -> int:
    sql = "UPDATE holdfast_counter SET value = ((value >> 40) + 1) << 40 WHERE name = 'token' RETURNING value >> 40"
    epoch: int = db.value(sql)
    return epoch
