"""What a store can do with events: an outbox that a relay publishes from, and an inbox that handles each event once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.store.event_records import (
    Cursor,
    Delivery,
    Emitted,
    GroupLag,
    NewEvent,
    NewStray,
    OutboxEvent,
    OutboxLag,
    OutboxState,
    Stray,
)
from holdfast.store.records import Lease


class Outbox(Protocol):
    async def emit(
        self, events: Sequence[NewEvent], *, tx: object | None = None, again: bool = False
    ) -> list[Emitted]:
        """Store the events, all or none, in the caller's transaction when one is given.

        The row of a key is locked until that ends: so the order of versions is the order of commits. `again` repeats a call
        whose outcome was unknown. An id that is stored is not stored again, and answers with its version.
        """

    async def waiting(self, lease: Lease, *, limit: int) -> list[OutboxEvent]:
        """What is to be published next, in order: of each key only what nothing before it holds up.

        An event whose last try failed rests until its time, and so do those behind it of the same key, unless it blocks
        nobody. There is no cursor: one whose transaction commits late is not missed. Empty when the lease is lost.
        No more than PORTION bytes of data together, or one event that has more.
        """

    async def stamp(self, lease: Lease, ids: Sequence[str]) -> list[int] | None:
        """They are published: give them positions, in the order given, in one serial commit. None: the lease is lost.

        One that has a position keeps it; 0 is of one that does not exist, since a person has dropped it.
        """

    async def failed(
        self, lease: Lease, event_id: str, error: str, *, rest: float | None, blocks: bool = True
    ) -> bool:
        """A publication failed: try again after `rest` seconds; None: quarantine it. False: the lease is lost.

        Those behind it of the same key wait for it, unless it `blocks` nobody.
        """

    async def log(
        self, *, after: int = 0, before: int | None = None, since: float | None = None, limit: int = 500
    ) -> list[OutboxEvent]:
        """Published events by position, in order: those after one and before another; of data no more than PORTION bytes, or one.

        `since`: only what was published from that moment on.
        """

    async def get(self, event_id: str) -> OutboxEvent | None: ...
    async def find(
        self,
        *,
        state: OutboxState | None = None,
        type: str | None = None,  # noqa: A002  the word of the envelope
        key: str | None = None,
        correlation_id: str | None = None,
        limit: int = 100,
    ) -> list[OutboxEvent]:
        """Newest first."""

    async def version(self, key: str, *, tx: object | None = None) -> int:
        """The newest version of a key; 0: it has none."""

    async def requeue(self, ids: Sequence[str], *, actor: str) -> list[bool]:
        """Publish quarantined events after all; leaves an audit row for each. False: it was not quarantined."""

    async def drop(self, ids: Sequence[str], *, actor: str, reason: str) -> list[bool]:
        """Give quarantined events up: those behind them of the same key go on; leaves an audit row for each."""

    async def lag(self) -> OutboxLag: ...
    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        """Forget events that were published more than `keep` seconds ago, and that no group and no view still has to read."""


class Inbox(Protocol):
    async def subscribe(self, group: str, *, from_start: bool = False) -> Cursor:
        """Make the group known, once: it hears what is published from now on, or all that is kept."""

    async def read(self, group: str, *, after: int, limit: int) -> tuple[list[OutboxEvent], list[str]]:
        """Published events behind a position, as `Outbox.log` has them, and what the group's members say that they hear then.

        Both at one moment: who had said that it hears them before they were published is among them. Without events there is no need to
        know the members, and none may be told.
        """

    async def cursors(self) -> list[Cursor]: ...
    async def unsubscribe(self, group: str, *, actor: str) -> bool:
        """Forget a group that nobody runs any more, so that events need not be kept for it; leaves an audit row."""

    async def deliver(
        self,
        group: str,
        deliveries: Sequence[Delivery],
        *,
        upto: int | None = None,
        seen: Sequence[str] = (),
        lease: Lease | None = None,
    ) -> list[bool] | None:
        """Store the jobs of deliveries that the group has not had, and move its cursor to `upto`, in one transaction.

        `seen`: the ids of the events that were read, up to there. A server that has crashed since may have given their positions to others.
        False: the group has had that event. None: the lease is lost, or other events are there now, and nothing was stored.
        A cursor never goes back.
        """

    async def handled(self, group: str, event_id: str, *, tx: object | None = None) -> bool:
        """In the handler's transaction: the group has handled it. False: it had before."""

    async def job_of(self, event_id: str) -> str | None:
        """The job by which a group has this event, also when its outbox is another's or has forgotten it; of several, any."""

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        """Forget deliveries that came more than `keep` seconds ago and are handled, or whose job is gone.

        A message that comes again after that is handled again.
        """


class Groups(Protocol):
    """What runs for the groups now."""

    async def announce(self, group: str, member: str, hears: str | None, *, ttl: float) -> None:
        """A member says what it hears (JSON text), for `ttl` seconds; None: it leaves."""

    async def announced(self, group: str) -> list[str]:
        """What the group's members that have not left, and are heard of in time, say that they hear; each text once."""

    async def waiting(self, tasks: Sequence[str], *, limit: int) -> int:
        """How many jobs of these tasks are queued, counted up to `limit`: of those that have a `max_waiting`.

        Of those that wait behind another of their ordering key one in BEHIND counts: what holds one key up is no reason to
        let the others wait.
        """

    async def lag(self, group: str, tasks: Sequence[str], *, limit: int) -> GroupLag:
        """What is before the group, whose deliveries are jobs of these tasks: each counted up to `limit`. It reads no more rows than that."""


class Strays(Protocol):
    async def keep(self, transport: str, group: str, messages: Sequence[NewStray]) -> list[int]:
        """Keep messages as they came, up to RAW_LIMIT each; the same one of a group and transport once. Their ids, in order."""

    async def find(
        self,
        *,
        type: str | None = None,  # noqa: A002  the word of the envelope
        before: int | None = None,
        limit: int = 100,
    ) -> list[Stray]:
        """Newest first, from the one behind `before`, each with the beginning of its message; `get` has all that was kept."""

    async def get(self, stray_id: int) -> Stray | None: ...
    async def drop(self, ids: Sequence[int], *, actor: str, reason: str) -> list[bool]:
        """Give them up; leaves an audit row for each."""
