"""A store: everything that is kept, one small Protocol for each subject; here are the transaction and the whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, runtime_checkable

import msgspec

from holdfast.store.alert_ports import Alerts
from holdfast.store.blob_ports import Blobs
from holdfast.store.cache_ports import Cache
from holdfast.store.event_ports import Groups, Inbox, Outbox, Strays
from holdfast.store.findings import Finding
from holdfast.store.flag_ports import Flags
from holdfast.store.fleet_ports import Guards, Keys, Leases, Schedules, Sessions
from holdfast.store.job_ports import Claims, Dead, History, Holds, Jobs, Queues, Steps, Tenants, Wakeups
from holdfast.store.reading import ReadTx
from holdfast.store.records import (
    AuditEntry,
)
from holdfast.store.saga_ports import Sagas
from holdfast.store.view_ports import Versions, Views
from holdfast.store.visit_ports import Visits
from holdfast.store.worker_ports import Workers


class Tx(Protocol):
    """A transaction of the store's database: `$1`, `$2` on both stores, rows are tuples."""

    async def execute(self, sql: str, /, *params: Any) -> int:
        """Run one statement; returns how many rows it changed."""

    async def execute_many(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run one statement for each of these rows of values, in their order."""

    async def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]: ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """`async with tx.savepoint():` an exception takes back what the block has done, and the transaction goes on."""


class Audit(Protocol):
    async def write(self, entry: AuditEntry, *, tx: object | None = None) -> None: ...
    async def find(self, *, subject: str | None = None, limit: int = 100) -> list[AuditEntry]:
        """Newest first."""


class Diagnosis(Protocol):
    async def examine(self, *, processes: int = 1) -> tuple[Finding, ...]:
        """Look for whatever could break a promise, for so many worker processes. Changes nothing; needs no open store."""


class PoolUse(msgspec.Struct, frozen=True):
    """Connections of this process to the database."""

    used: int
    allowed: int
    waiting: int  # callers that wait for one


@runtime_checkable
class HasPool(Protocol):
    """A store that has connections, and tells how many are in use."""

    def pool_use(self) -> PoolUse: ...


class Store(Protocol):
    """Everything that is kept. `open` checks that the database can keep the promises."""

    @property
    def jobs(self) -> Jobs: ...
    @property
    def claims(self) -> Claims: ...
    @property
    def holds(self) -> Holds: ...
    @property
    def dead(self) -> Dead: ...
    @property
    def steps(self) -> Steps: ...
    @property
    def wakeups(self) -> Wakeups: ...
    @property
    def queues(self) -> Queues: ...
    @property
    def tenants(self) -> Tenants: ...
    @property
    def history(self) -> History: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def views(self) -> Views: ...
    @property
    def versions(self) -> Versions: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def visits(self) -> Visits: ...
    @property
    def flags(self) -> Flags: ...
    @property
    def alerts(self) -> Alerts: ...
    @property
    def guards(self) -> Guards: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def groups(self) -> Groups: ...
    @property
    def strays(self) -> Strays: ...
    @property
    def blobs(self) -> Blobs: ...
    @property
    def cache(self) -> Cache: ...
    @property
    def sagas(self) -> Sagas: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def diagnosis(self) -> Diagnosis: ...

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def migrate(self) -> list[str]:
        """Bring the tables up to date; returns the names of the migrations that were applied."""

    async def pending(self) -> list[str]:
        """The names of the migrations that are still to be applied; raises when the tables are newer or changed."""

    def transaction(self) -> AbstractAsyncContextManager[Tx]:
        """A transaction of our own; the block's end commits, an exception rolls back."""

    def snapshot(
        self, *, at_least: str | None = None, wait: float = 2.0
    ) -> AbstractAsyncContextManager[ReadTx]:
        """What was committed up to now, to be read only: it waits for nobody, and nobody for it.

        `at_least`: the id of an event that was committed. A replica that has not got it is waited for, and after `wait` seconds ReplicaBehind is raised.
        """

    async def joined(self, tx: object) -> Tx:
        """The caller's transaction, of whichever kind, for statements of others beside those of the verbs."""

    def check_free(self) -> None:
        """Raise inside a transaction of the same task, where `tx=` was forgotten."""

    def twin(self) -> Store:
        """The same store for another event loop: itself when it serves any, else one to be opened and closed there."""

    async def now(self) -> float:
        """The database's clock."""

    async def raise_epoch(self) -> int:
        """After a restore or a fail-over that may have lost commits: make every later token larger than any before."""
