"""Bugs on an event's way: from its transaction to the outbox, the broker, the inbox and the handler."""
# ruff: noqa: ARG001, ARG005, SLF001  a planted function takes what the true one takes, and reaches what it reaches

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec

from holdfast.events import consumer, publishing, routes
from holdfast.events.consumer import BrokerConsumer, StoreConsumer
from holdfast.events.members import Members
from holdfast.events.publishing import Failure, Published
from holdfast.events.quarantine import Quarantine
from holdfast.events.relay import Relay
from holdfast.events.settings import EventSettings
from holdfast.events.subscribers import Subscribers
from holdfast.kernel.errors import TransportUnavailable
from holdfast.kernel.ids import new_id
from holdfast.store.event_records import Cursor, Delivery, Emitted, NewEvent, NewStray, OutboxEvent, Stored
from holdfast.store.records import Lease, NewJob
from holdfast.store.sqlite import inbox, jobs, outbox, relaying
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.jobs import enqueue
from holdfast.store.sqlite.leases import is_held
from holdfast.store.sqlite.transaction import SqliteTx
from holdfast.store.states import Held
from holdfast.testing.simulation.mutants.planting import beside, mutant, replace, rewrite, unkeyed

of_events = partial(mutant, kind="events")
_INBOX = unkeyed("holdfast_inbox", "group_name TEXT, event_id TEXT, job_id TEXT, at REAL, handled_at REAL")

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


# --- delivering ---


@of_events("acknowledged before it is stored")
def _acknowledged_before_it_is_stored(stack: ExitStack) -> None:
    """a message is off the broker before the group has it"""

    async def turn(self: BrokerConsumer, lease: Lease, source: Any, wait: float = 1.0) -> bool:
        received = await source.fetch(consumer.BATCH, wait=wait)
        await source.ack([each.mark for each in received])
        if received:
            await self._take_in(lease, received)
        return bool(received)

    replace(stack, BrokerConsumer, "turn", turn)


@of_events("broken messages are dropped")
def _broken_messages_are_dropped(stack: ExitStack) -> None:
    """what cannot be understood is acknowledged into nothing"""

    original = Quarantine.keep

    async def keep(self: Quarantine, messages: Sequence[NewStray]) -> None:
        await original(self, [each for each in messages if each.type is not None])

    replace(stack, Quarantine, "keep", keep)


@of_events("unknown types are passed over")
def _unknown_types_are_passed_over(stack: ExitStack) -> None:
    """an event of a type that nobody knows is acknowledged into nothing"""
    replace(stack, Quarantine, "unknown", lambda *_: [])


@of_events("types of others are set aside")
def _types_of_others_are_set_aside(stack: ExitStack) -> None:
    """what is said to be none of the program's fills the quarantine"""
    replace(stack, EventSettings, "is_others", lambda *_: False)


@of_events("all of an order have their turn")
def _all_of_an_order_have_their_turn(stack: ExitStack) -> None:
    """deliveries behind the first of their order are ready together with it"""
    original = jobs._held

    def held(job: NewJob, turn: bool | None, *, is_due: bool) -> Held | None:
        return original(job, None if turn is None else True, is_due=is_due)

    replace(stack, jobs, "_held", held)


@of_events("the cursor goes first")
def _the_cursor_goes_first(stack: ExitStack) -> None:
    """a group's cursor is moved in a commit of its own, before the deliveries are stored"""

    def deliver(
        db: Db, group: str, *, deliveries: Sequence[Delivery], upto: int | None, **options: Any
    ) -> Stored | None:
        if upto is not None:
            beside(lambda own: own.run(inbox._MOVE, group, upto, own.now))(db)
        return original(db, group, deliveries=deliveries, upto=upto, **options)

    original = inbox.deliver
    replace(stack, inbox, "deliver", deliver)


@of_events("a cursor begins at the end")
def _a_cursor_begins_at_the_end(stack: ExitStack) -> None:
    """who takes over a group goes on with what is published from then on"""

    async def subscribe(self: StoreConsumer) -> None:
        position = (await self._store.outbox.lag()).position
        self._cursor = Cursor(self._group.name, position, 0.0)

    replace(stack, StoreConsumer, "subscribe", subscribe)


@of_events("deliveries are not fenced")
def _deliveries_are_not_fenced(stack: ExitStack) -> None:
    """who has lost a group's lease still delivers, from where it was"""
    replace(stack, inbox, "is_held", lambda db, lease: True)


@of_events("delivered twice", _INBOX)
def _delivered_twice(stack: ExitStack) -> None:
    """nobody looks whether the group has had the event, when it comes and when it is handled"""

    def deliver(
        db: Db,
        group: str,
        *,
        deliveries: Sequence[Delivery],
        upto: int | None,
        seen: Sequence[str] = (),
        lease: Lease | None,
    ) -> Stored | None:
        if lease is not None and not is_held(db, lease):
            return None
        for each in deliveries:
            db.run(inbox._DELIVER, group, each.event_id, each.job.id, db.now)
        enqueue(db, [each.job for each in deliveries])
        if upto is not None:
            db.run(inbox._MOVE, group, upto, db.now)
        return Stored([True] * len(deliveries), arrived=True)

    def handled(db: Db, group: str, event_id: str) -> bool:
        sql = "UPDATE holdfast_inbox SET handled_at = ? WHERE group_name = ? AND event_id = ?"
        return bool(db.run(sql, db.now, group, event_id))

    replace(stack, inbox, "deliver", deliver)
    replace(stack, inbox, "handled", handled)


@of_events("deliveries have no order")
def _deliveries_have_no_order(stack: ExitStack) -> None:
    """events of one key are handled side by side"""
    original = routes.delivery

    def delivery(group: str, route: routes.Route, event: routes.Telling, **how: Any) -> Delivery:
        return original(group, msgspec.structs.replace(route, ordered=False), event, **how)

    replace(stack, consumer, "delivery", delivery)


@of_events("members are silent")
def _members_are_silent(stack: ExitStack) -> None:
    """what only a newer program of a group hears is passed over by an older one"""

    async def announce(self: Members) -> None:
        return None

    replace(stack, Members, "announce", announce)


# --- handling ---


@of_events("the inbox is beside the transaction")
def _the_inbox_is_beside_the_transaction(stack: ExitStack) -> None:
    """that an event is handled is committed before its handler has written"""

    async def handle(
        self: Subscribers, group: str, handler: Any, job: Any, envelope: Any, others: Any
    ) -> None:
        event = handler.event(envelope)
        is_first = await self._store.inbox.handled(group, envelope.identity)
        if not handler.takes_tx:
            await handler.call(event, job, None, others)
        async with job.commit() as tx:
            if is_first and handler.takes_tx:
                await handler.call(event, job, tx, others)

    replace(stack, Subscribers, "_handle", handle)


@of_events("the job succeeds by itself")
def _the_job_succeeds_by_itself(stack: ExitStack) -> None:
    """a handler's rows and the inbox commit before the success of their job"""

    async def handle(
        self: Subscribers, group: str, handler: Any, job: Any, envelope: Any, others: Any
    ) -> None:
        event = handler.event(envelope)
        async with self._store.transaction() as tx:
            if await self._store.inbox.handled(group, envelope.identity, tx=tx):
                await handler.call(event, job, tx, others)

    replace(stack, Subscribers, "_handle", handle)


@of_events("handled is always new")
def _handled_is_always_new(stack: ExitStack) -> None:
    """a handler is called although its group has handled the event, and its job only does not know"""

    async def handle(
        self: Subscribers, group: str, handler: Any, job: Any, envelope: Any, others: Any
    ) -> None:
        event = handler.event(envelope)
        async with self._store.transaction() as tx:
            await self._store.inbox.handled(group, envelope.identity, tx=tx)
            await handler.call(event, job, tx, others)

    replace(stack, Subscribers, "_handle", handle)
