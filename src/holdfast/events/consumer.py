"""Reads events for one group, and stores a job for each that it hears. One process at a time does so, under a lease."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from math import inf

from holdfast.events import envelope, joining
from holdfast.events.quarantine import Quarantine
from holdfast.events.relay import LEASE_NAME as RELAY_LEASE
from holdfast.events.routes import Route, Telling, delivery, routes_in
from holdfast.events.settings import EventSettings
from holdfast.events.subscribers import Group
from holdfast.events.wire import Wire
from holdfast.events.wires import Wires
from holdfast.fleet.leading import TTL, Leading
from holdfast.guards.backoff import Backoff
from holdfast.kernel.clock import look_after, monotonic, recover
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import TROUBLE, LeaseLost, PayloadError, TransportUnavailable
from holdfast.kernel.randomness import jittered
from holdfast.kernel.telemetry import note
from holdfast.store.bell import LOG
from holdfast.store.event_records import Delivery, NewStray, OutboxEvent
from holdfast.store.ports import Store
from holdfast.store.records import Lease
from holdfast.transport import port

LEASE_NAME = "holdfast:group:{}"
BATCH = 500
# A reader's lease is that much longer than the time after which a broker gives again what it held: also when it dies just
# before it would have renewed, its successor gets that first, and no newer events of the same keys.
OUTLIVES = 5 / 3
_POLL = 1.0  # seconds between looks without a hint
_FULL = 0.2  # seconds between looks while enough deliveries wait
_SEEN_EVERY = 3_600.0  # seconds after which an idle group says that it is still there
_TOLD = 10.0  # seconds after which every relay knows of a broker, and leaves events to who has it
_MOVE_EVERY = 1.0  # seconds for which a cursor may stand before events that nobody in its group hears
_MOST_PASSED = 5_000  # of them
_AWAY = Backoff(first=0.5, ceiling=15.0)  # between tries while the broker is away


class Consumer(Leading):
    """A service of every worker that has the group."""

    def __init__(
        self, store: Store, group: Group, settings: EventSettings, *, owner: str, ttl: float = TTL
    ) -> None:
        lease = LEASE_NAME.format(group.name)
        super().__init__(f"consumer {group.name}", store, lease=lease, owner=owner, ttl=ttl)
        self._group, self._settings = group, settings
        self.quarantine = Quarantine(store, "store", group.name)
        self.is_secret: Callable[[str], bool] = lambda _: False

    async def start(self) -> None:
        """The group is known before anything is published by this worker: so it hears all that is."""
        try:
            await self.subscribe()
        except (*TROUBLE, TransportUnavailable) as error:
            self._failed(error)
        await super().start()

    @abstractmethod
    async def subscribe(self) -> None:
        """Make the group known, once; who knows it already changes nothing."""

    @abstractmethod
    async def catch_up(self, lease: Lease) -> bool:
        """Deliver all that there is; whether there was any."""

    async def has_room(self) -> bool:
        """Capacity comes before the fetch: what is taken out of the log or off the wire has a place to wait."""
        most = self._settings.waiting
        tasks = [route.task for route in self._group.routes]
        return await self._store.groups.waiting(tasks, limit=most) < most

    async def _routes(self, events: Sequence[Telling]) -> list[Route | None]:
        """Where each of them goes. What only another version of the program hears is stored for it all the same.

        Its members are asked after the events were read: who hears an event that was published after it had said so is known.
        """
        found = self._own_routes(events)
        if all(found):
            return found
        return _with_others(found, events, await self._store.groups.announced(self._group.name))

    def _own_routes(self, events: Sequence[Telling]) -> list[Route | None]:
        own = self._group.routes
        return [_hearing(own, event.type) for event in events]

    async def _deliver(
        self,
        lease: Lease,
        events: Sequence[Telling],
        routes: Sequence[Route | None],
        upto: int | None = None,
        seen: Sequence[str] = (),
    ) -> None:
        """As jobs; what nobody in the group hears has none. `upto`: what was `seen` is all that the store's own log has up to there."""
        group, deliveries, broken = self._group.name, list[Delivery](), list[NewStray]()
        for event, route in zip(events, routes, strict=True):
            if route is None:
                continue
            try:
                deliveries.append(delivery(group, route, event, secret=self.is_secret(event.type)))
            except PayloadError as error:  # a row that somebody has changed: it must not hold up the others
                broken.append(NewStray(event.body, str(error)))
        await self.quarantine.keep(broken)
        answers = await self._store.inbox.deliver(group, deliveries, upto=upto, seen=seen, lease=lease)
        if answers is None:
            raise LeaseLost(f"the lease of the group {group!r} is another's, or the log has changed")
        if deliveries:
            note("group.delivered", group=group, count=sum(answers), again=answers.count(False))


class StoreConsumer(Consumer):
    """The store itself is the transport: events are read from the outbox's log, by position.

    A type that nobody here knows is nothing strange there: another program on the same database has declared it, to emit it.
    """

    _position = 0  # read up to there
    _passed: Sequence[
        str
    ] = ()  # the last of what was read: nobody here hears it, and the cursor stands before it
    _moved = -inf  # when it was moved

    async def subscribe(self) -> None:
        cursor = await self._store.inbox.subscribe(self._group.name, from_start=self._group.from_start)
        self._position, self._passed = cursor.position, ()

    async def _serve(self, lease: Lease) -> None:
        await self.subscribe()  # others may have read on meanwhile
        seen, is_busy = monotonic(), True
        while True:
            if is_busy and not await self.has_room():
                await look_after(jittered(_FULL))
                continue
            is_busy = await self.turn(lease)
            self._trouble = None
            if monotonic() - seen > _SEEN_EVERY:
                await self.subscribe()
                seen = monotonic()
            if not is_busy:
                await self._store.wakeups.wait((LOG,), jittered(_POLL))

    async def catch_up(self, lease: Lease) -> bool:
        await self.subscribe()
        found = False
        while await self.turn(lease):
            found = True
        if self._passed:
            await self._move(lease)
        return found

    async def turn(self, lease: Lease) -> bool:
        """Deliver one batch; whether there was any. What nobody hears is passed over, and the cursor follows within a second."""
        group = self._group.name
        events, members = await self._store.inbox.read(group, after=self._position, limit=BATCH)
        if events:
            told = [_told(event) for event in events]
            routes = _with_others(self._own_routes(told), told, members)
            position = events[-1].position
            assert position is not None
            passed = [*self._passed, *(event.id for event in events)]
            if any(routes):
                await self._move(lease, told, routes, upto=position, seen=passed)
            else:
                self._position, self._passed = position, passed
        if self._passed and (len(self._passed) >= _MOST_PASSED or monotonic() - self._moved >= _MOVE_EVERY):
            await self._move(lease)
        return bool(events)

    async def _move(
        self,
        lease: Lease,
        events: Sequence[Telling] = (),
        routes: Sequence[Route | None] = (),
        upto: int | None = None,
        seen: Sequence[str] = (),
    ) -> None:
        """All that was read since it was moved before must be there still: a server's crash may have given positions to others."""
        position = self._position if upto is None else upto
        await self._deliver(lease, events, routes, upto=position, seen=seen or self._passed)
        self._position, self._passed, self._moved = position, (), monotonic()


class BrokerConsumer(Consumer):
    """A broker is the transport: messages are stored as jobs, and then acknowledged."""

    def __init__(
        self,
        store: Store,
        group: Group,
        settings: EventSettings,
        wire: Wire,
        *,
        owner: str,
        ttl: float = TTL,
    ) -> None:
        super().__init__(store, group, settings, owner=owner, ttl=ttl)
        self._wire = wire
        self.quarantine = Quarantine(store, wire.name, group.name)

    async def subscribe(self) -> None:
        await (await self._joined()).close()

    async def _joined(self) -> port.Consumer:
        """A broker that comes back without the group may have messages already that the group never had."""
        transport, name = await self._wire.ready(), self._group.name
        is_lost = await joining.was_known(self._store, self._wire, name)  # if the broker does not know it
        found = await transport.consumer(
            name,
            self._owner,
            redeliver_after=self._settings.redeliver_after,
            from_start=self._group.from_start or is_lost,
        )
        await joining.is_known(self._store, self._wire, name)
        return found

    async def _read_in_the_database(self, lease: Lease) -> None:
        """What was published before the program had a broker, and the group has not read there: no broker has it."""
        if not any(each.group == self._group.name for each in await self._store.inbox.cursors()):
            return
        await Wires(self._store, self._wire).tell()
        told = monotonic()
        reader = StoreConsumer(self._store, self._group, self._settings, owner=self._owner)
        reader.is_secret = self.is_secret
        await reader.subscribe()
        while True:
            if not await self.has_room():
                await look_after(jittered(_FULL))
                continue
            is_last = monotonic() - told > _TOLD or await self._publishes()
            if await reader.turn(lease):
                continue
            if is_last:
                break
            # A relay without a broker may still publish, until it has looked who has one.
            await self._store.wakeups.wait((LOG,), jittered(_POLL))
        await self._store.inbox.unsubscribe(self._group.name, actor=self._owner)

    async def _publishes(self) -> bool:
        """Whether the relay of this worker does: then nobody without a broker can."""
        held = await self._store.leases.get(RELAY_LEASE)
        return held is not None and held.owner == self._owner

    async def _serve(self, lease: Lease) -> None:
        """A worker without the broker may give the group a cursor at any time: it must not grow older than the inbox."""
        away, looked = 0, -inf
        while True:
            try:
                if monotonic() - looked > _SEEN_EVERY:
                    await self._read_in_the_database(lease)
                    looked = monotonic()
                consumer = await self._joined()
                try:
                    # Not before what the broker has: it may be older.
                    while await self.turn(lease, consumer) or monotonic() - looked <= _SEEN_EVERY:
                        away, self._trouble = 0, None
                finally:
                    await consumer.close()
            except TransportUnavailable as error:
                away += 1
                self._failed(error)
                await recover(jittered(_AWAY.longest(away)))

    async def catch_up(self, lease: Lease) -> bool:
        consumer = await self._joined()
        found = False
        try:
            while await self.turn(lease, consumer, wait=_POLL / 4):
                found = True
        finally:
            await consumer.close()
        return found

    async def turn(self, lease: Lease, consumer: port.Consumer, wait: float = _POLL) -> bool:
        """Store one batch and acknowledge it; whether there was any."""
        if not await self.has_room():
            await look_after(jittered(_FULL))
            return False
        self._must_lead()  # what it would fetch now, its successor gets later than what is newer
        received = await consumer.fetch(BATCH, wait=wait)
        if not received:
            return False
        crashpoint("consumer.fetched")
        marks = [each.mark for each in received]
        try:
            await self._take_in(lease, received)
        except Exception:
            await consumer.give_back(marks)
            raise
        crashpoint("consumer.after_deliver")
        await consumer.ack(marks)
        return True

    async def _take_in(self, lease: Lease, received: Sequence[port.Received]) -> None:
        """Afterwards each of them may be acknowledged: it is stored, or another's."""
        found, broken = self.quarantine.read(received)
        events = [event for _, event in found]
        routes = await self._routes(events)
        await self.quarantine.keep([*broken, *self.quarantine.unknown(found, routes)])
        await self._deliver(lease, events, routes)


def _with_others(
    found: list[Route | None], events: Sequence[Telling], announced: Sequence[str]
) -> list[Route | None]:
    """And what only members of another version hear."""
    if all(found):
        return found
    others = routes_in(announced)
    return [route or _hearing(others, event.type) for route, event in zip(found, events, strict=True)]


def _hearing(routes: Sequence[Route], type_: str) -> Route | None:
    return next((route for route in routes if route.hears(type_)), None)


def _told(event: OutboxEvent) -> Telling:
    return Telling(event.id, event.type, event.key, event.correlation_id, event.trace, envelope.encode(event))
