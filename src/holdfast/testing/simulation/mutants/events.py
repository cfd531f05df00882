"""Bugs on the first half of an event's way: from its transaction to the outbox and the broker."""
# ruff: noqa: ARG001, ARG005, SLF001  a planted function takes what the true one takes, and reaches what it reaches

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec

from holdfast.events import publishing
from holdfast.events.publishing import Failure, Published
from holdfast.events.relay import Relay
from holdfast.kernel.errors import TransportUnavailable
from holdfast.kernel.ids import new_id
from holdfast.store.event_records import Emitted, NewEvent, OutboxEvent
from holdfast.store.records import Lease
from holdfast.store.sqlite import outbox, relaying
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.transaction import SqliteTx
from holdfast.testing.simulation.mutants.planting import beside, mutant, replace, rewrite

of_events = partial(mutant, kind="events")

# --- emitting ---


@of_events("emit ignores tx")
def _emit_ignores_tx(stack: ExitStack) -> None:
    """an event is stored beside its caller's transaction, not in it"""
    original = outbox.Outbox.emit

    async def emit(self: outbox.Outbox, events: Sequence[NewEvent], **how: Any) -> list[Emitted]:
        tx = how.get("tx")
        if isinstance(tx, SqliteTx):
            return await tx.run(beside(partial(outbox.emit, events=events)))
        return await original(self, events, **how)

    replace(stack, outbox.Outbox, "emit", emit)


@of_events("emitted again with a new id")
def _emitted_again_with_a_new_id(stack: ExitStack) -> None:
    """an emit of unknown outcome is repeated as another event"""
    original = outbox.emit

    def emit(db: Db, events: Sequence[NewEvent]) -> list[Emitted]:
        return original(db, [msgspec.structs.replace(event, id=new_id()) for event in events])

    replace(stack, outbox, "emit", emit)


@of_events("versions are counted beside")
def _versions_are_counted_beside(stack: ExitStack) -> None:
    """the version of a key is drawn in a transaction of its own: who rolls back leaves a gap"""
    original = outbox._next

    def next_of(db: Db, key: str, number: int) -> int:
        return beside(lambda own: original(own, key, number))(db)

    replace(stack, outbox, "_next", next_of)


# --- publishing ---


@of_events("the id is minted at publish")
def _the_id_is_minted_at_publish(stack: ExitStack) -> None:
    """every publication of an event has an id of its own"""
    original = publishing._message

    def message(event: OutboxEvent) -> Any:
        return original(msgspec.structs.replace(event, id=new_id()))

    replace(stack, publishing, "_message", message)


@of_events("the time is that of publishing")
def _the_time_is_that_of_publishing(stack: ExitStack) -> None:
    """the body of an event tells how often it was tried"""
    original = publishing._message

    def message(event: OutboxEvent) -> Any:
        made = original(event)
        return msgspec.structs.replace(made, body=made.body[:-1] + f',"id2":"{new_id()}"}}'.encode())

    replace(stack, publishing, "_message", message)


@of_events("marked before it is sent")
def _marked_before_it_is_sent(stack: ExitStack) -> None:
    """events are marked as published, and then published"""

    async def publish(self: Relay, lease: Lease, transport: Any, events: Sequence[OutboxEvent]) -> None:
        await self._stamp(lease, events)
        found = await publishing.publish(transport, events)
        if found.unavailable is not None:
            raise found.unavailable

    replace(stack, Relay, "_publish", publish)


@of_events("marks are not fenced")
def _marks_are_not_fenced(stack: ExitStack) -> None:
    """who has lost the relay's lease still marks events"""
    replace(stack, relaying, "is_held", lambda db, lease: True)


@of_events("positions are drawn beside")
def _positions_are_drawn_beside(stack: ExitStack) -> None:
    """positions are drawn in one commit, and given in another: who reads in between misses one"""
    original = Db.draw

    def draw(self: Db, name: str, number: int = 1) -> int:
        if name != "position":
            return original(self, name, number)
        return beside(lambda db: original(db, name, number))(self)

    replace(stack, Db, "draw", draw)


@of_events("who fails holds up nobody")
def _who_fails_holds_up_nobody(stack: ExitStack) -> None:
    """what stands behind a failed event of its key is published before it"""
    replace(stack, Published, "stops", lambda self, event: False)
    rewrite(stack, ("b.key = o.key AND o.version >= b.version", "b.key = o.key AND o.version = b.version"))


@of_events("the relay reads behind a cursor")
def _the_relay_reads_behind_a_cursor(stack: ExitStack) -> None:
    """what failed once is behind the newest that was published, and is never looked at again"""

    def look(db: Db, lease: Lease, *, limit: int) -> list[OutboxEvent]:
        last = db.value("SELECT coalesce(max(seq), 0) FROM holdfast_outbox WHERE state <> 'waiting'")
        found = db.rows(
            "SELECT seq FROM holdfast_outbox WHERE state = 'waiting' AND seq > ? ORDER BY seq", last
        )
        return relaying._events(db, [seq for (seq,) in found][:limit])

    replace(stack, relaying, "look", look)


@of_events("a cursor on the sequence")
def _a_cursor_on_the_sequence(stack: ExitStack) -> None:
    """readers go by the order of the inserts, in which one that was published late stands far back"""

    def log(db: Db, *, after: int, before: int | None, since: float | None, limit: int) -> list[OutboxEvent]:
        sql = f"SELECT {relaying.COLUMNS} FROM holdfast_outbox WHERE position IS NOT NULL AND seq > ? ORDER BY seq LIMIT ?"  # noqa: S608
        found = [relaying.to_event(row) for row in db.rows(sql, after, limit)]
        return [msgspec.structs.replace(event, position=event.seq) for event in found]

    replace(stack, outbox, "log", log)


@of_events("refused for ever")
def _refused_for_ever(stack: ExitStack) -> None:
    """what the broker refuses is tried again and again"""
    original = Relay._fail

    async def fail(self: Relay, lease: Lease, failure: Failure) -> None:
        event = msgspec.structs.replace(failure.event, tries=0)
        await original(self, lease, Failure(event, failure.error, is_final=False))

    replace(stack, Relay, "_fail", fail)


@of_events("one that fails stops all")
def _one_that_fails_stops_all(stack: ExitStack) -> None:
    """the relay begins anew with the event that cannot be published, and comes to no other"""

    async def settle(self: Relay, lease: Lease, found: Published) -> None:
        if found.failures:
            raise TransportUnavailable(found.failures[0].error)
        await self._stamp(lease, sorted(found.events, key=lambda event: event.seq))

    replace(stack, Relay, "_settle", settle)


@of_events("one that rests is overtaken")
def _one_that_rests_is_overtaken(stack: ExitStack) -> None:
    """with the policy that a key goes on without its poison, it goes on without one that has failed once"""
    original = outbox.Outbox.failed

    async def failed(self: outbox.Outbox, lease: Lease, event_id: str, error: str, **how: Any) -> bool:
        return await original(self, lease, event_id, error, **(how | {"blocks": False}))

    replace(stack, outbox.Outbox, "failed", failed)


@of_events("set aside without its reason")
def _set_aside_without_its_reason(stack: ExitStack) -> None:
    """nobody can tell why an event is in quarantine"""
    original = relaying.failed
    replace(stack, relaying, "failed", lambda db, lease, **how: original(db, lease, **(how | {"error": ""})))
