"""Bugs on the second half of an event's way: from the broker or the log to the inbox and the handler."""
# ruff: noqa: ARG001, ARG005, SLF001  a planted function takes what the true one takes, and reaches what it reaches

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec

from holdfast.events import consumer, routes
from holdfast.events.consumer import BrokerConsumer, StoreConsumer
from holdfast.events.members import Members
from holdfast.events.quarantine import Quarantine
from holdfast.events.settings import EventSettings
from holdfast.events.subscribers import Subscribers
from holdfast.store.event_records import Delivery, NewStray, Stored
from holdfast.store.records import Lease, NewJob
from holdfast.store.sqlite import inbox, jobs
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.jobs import enqueue
from holdfast.store.sqlite.leases import is_held
from holdfast.store.states import Held
from holdfast.testing.simulation.mutants.planting import beside, mutant, replace, unkeyed

of_events = partial(mutant, kind="events")
_INBOX = unkeyed("holdfast_inbox", "group_name TEXT, event_id TEXT, job_id TEXT, at REAL, handled_at REAL")

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
        self._position, self._passed = position, ()

    replace(stack, StoreConsumer, "subscribe", subscribe)


@of_events("deliveries are not fenced")
def _deliveries_are_not_fenced(stack: ExitStack) -> None:
    """who has lost a group's lease still delivers, from where it was"""
    replace(stack, inbox, "is_held", lambda db, lease: True)


@of_events("messages are stored without the lease")
def _messages_are_stored_without_the_lease(stack: ExitStack) -> None:
    """who has lost a group's lease still stores what a broker has given him"""
    original = inbox.deliver

    def deliver(db: Db, group: str, *, lease: Lease | None, **how: Any) -> Stored | None:
        return original(db, group, lease=None if how["upto"] is None else lease, **how)

    replace(stack, inbox, "deliver", deliver)


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


@of_events("groups wait for each other")
def _groups_wait_for_each_other(stack: ExitStack) -> None:
    """events of one key have one order in all groups"""
    replace(stack, routes, "ordering", lambda group, key: f"on:{key}")


@of_events("the trace ends with the delivery")
def _the_trace_ends_with_the_delivery(stack: ExitStack) -> None:
    """what a handler emits does not carry the trace of its event on"""
    original = routes.delivery

    def delivery(group: str, route: routes.Route, event: routes.Telling, **how: Any) -> Delivery:
        return original(group, route, msgspec.structs.replace(event, trace=None), **how)

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


@of_events("handled before it is called")
def _handled_before_it_is_called(stack: ExitStack) -> None:
    """the group has handled an event, and then the handler that does something elsewhere is called"""
    original = Subscribers._handle

    async def handle(
        self: Subscribers, group: str, handler: Any, job: Any, envelope: Any, others: Any
    ) -> None:
        if handler.takes_tx:
            return await original(self, group, handler, job, envelope, others)
        async with job.commit() as tx:
            await self._store.inbox.handled(group, envelope.identity, tx=tx)
        await handler.call(handler.event(envelope), job, None, others)
        return None

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
