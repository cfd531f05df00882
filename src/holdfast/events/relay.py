"""The relay: publishes what the outbox keeps, in order, under a lease. One process at a time; every mark names its token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from holdfast.events.publishing import Failure, Published, TakesNothing, publish
from holdfast.events.settings import EventSettings, may_come_again
from holdfast.events.wire import Wire
from holdfast.events.wires import Wires
from holdfast.fleet.leading import TTL, Leading
from holdfast.guards.backoff import Backoff
from holdfast.jobs.upkeep import Duty
from holdfast.kernel.clock import monotonic, recover
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import TROUBLE, LeaseLost, TransportUnavailable
from holdfast.kernel.randomness import jittered
from holdfast.kernel.telemetry import note
from holdfast.kernel.tracing import tracer
from holdfast.store.bell import LOG, OUTBOX
from holdfast.store.event_records import OutboxEvent
from holdfast.store.ports import Store
from holdfast.store.records import Lease
from holdfast.transport.port import Transport

LEASE_NAME = "holdfast:relay"
BATCH = 500
TRIES = 5  # publications of one event that may fail, while others succeed, before it is quarantined
_POLL = 1.0  # seconds between looks without a hint
_LAG_EVERY, _PRUNE_EVERY, _TELL_EVERY = 10.0, 600.0, 3_600.0  # seconds
_PART = 1_000  # rows of one turn of pruning
_REST = Backoff(attempts=TRIES, first=2.0, ceiling=60.0)
_AWAY = Backoff(first=0.5, ceiling=15.0)  # between tries while the broker is away


class Relay(Leading):
    """A service of every worker whose program has events, and of `holdfast relay`. Without a broker, publishing is the stamp."""

    def __init__(
        self,
        store: Store,
        wire: Wire | None,
        settings: EventSettings,
        *,
        make_known: Callable[[], Awaitable[None]],
        owner: str,
        ttl: float = TTL,
    ) -> None:
        super().__init__("relay", store, lease=LEASE_NAME, owner=owner, ttl=ttl)
        self._wire, self._settings, self._wires = wire, settings, Wires(store, wire)
        self._make_known, self._are_known = make_known, False  # the groups of this program
        self._published, self._since = 0, monotonic()
        self._batch = BATCH  # events of the next turn: fewer after a failure, for a slow broker may never answer for many
        self._duties = [
            Duty("lag", _LAG_EVERY, self._tell_lag),
            Duty("prune", _PRUNE_EVERY, self._prune),
            Duty("wire", _TELL_EVERY, self._tell_wire),
        ]

    async def start(self) -> None:
        """Others leave events to this broker from now on, whoever publishes just now."""
        try:
            await self._wires.tell()
        except TROUBLE as error:
            self._failed(error)
        await super().start()

    async def _taken(self) -> Lease | None:
        return None if await self._wires.has_better() else await super()._taken()

    async def _serve(self, lease: Lease) -> None:
        away, looked = 0, monotonic()
        while True:
            if monotonic() - looked > _POLL:
                if await self._wires.has_better():
                    return
                looked = monotonic()
            is_busy = False
            try:
                is_busy = await self.turn(lease)
                away, self._trouble = 0, None
            except TransportUnavailable as error:
                away += 1
                self._are_known = False  # it may come back without them
                self._failed(error)
            for duty in self._duties:  # also while the broker is away: then the lag grows
                await duty.perform()
            if away:
                await recover(jittered(_AWAY.longest(away)))
            elif not is_busy:
                await self._store.wakeups.wait((OUTBOX,), jittered(_POLL))

    async def turn(self, lease: Lease) -> bool:
        """Publish one batch; whether there was any."""
        most = self._batch
        events = await self._store.outbox.waiting(lease, limit=most)
        if not events:
            return False
        self._batch = max(1, most // 4)  # unless this goes well
        if not self._are_known:  # or they would never hear what is published now
            await self._make_known()
            self._are_known = True
        crashpoint("relay.before_publish")
        if (tracing := tracer()) is None:
            await self._send(lease, events)
        else:
            broker = None if self._wire is None else self._wire.name
            with tracing.publishes([event.trace for event in events], broker):
                await self._send(lease, events)
        self._batch = min(BATCH, most * 2)
        return True

    # --- steps ---

    async def _send(self, lease: Lease, events: Sequence[OutboxEvent]) -> None:
        if self._wire is None:
            await self._stamp(lease, events)
        else:
            await self._publish(lease, await self._wire.ready(), events)

    async def _publish(self, lease: Lease, transport: Transport, events: Sequence[OutboxEvent]) -> None:
        found = await publish(transport, events)
        if found.events:
            crashpoint("relay.after_publish")
        await self._settle(lease, found)
        if isinstance(found.unavailable, TakesNothing):
            self._batch = BATCH
        if found.unavailable is not None:
            raise found.unavailable

    async def _settle(self, lease: Lease, found: Published) -> None:
        """Failures first: they hold up their keys. Then what the broker has, in the order of the outbox."""
        for failure in found.failures:
            await self._fail(lease, failure)
        if found.events:
            await self._stamp(lease, sorted(found.events, key=lambda event: event.seq))

    async def _fail(self, lease: Lease, failure: Failure) -> None:
        event = failure.event
        is_over = failure.is_final or event.tries + 1 >= TRIES
        rest = None if is_over else _REST.longest(event.tries + 1)
        blocks = not is_over or self._settings.poison == "wait"  # one that may still succeed is not overtaken
        if not await self._store.outbox.failed(lease, event.id, failure.error, rest=rest, blocks=blocks):
            raise LeaseLost("the relay's lease is another's")
        note(
            "relay.quarantined" if is_over else "relay.event_failed",
            event=event.id,
            type=event.type,
            key=event.key,
            error=failure.error,
        )

    async def _stamp(self, lease: Lease, events: Sequence[OutboxEvent]) -> None:
        if await self._store.outbox.stamp(lease, [event.id for event in events]) is None:
            raise LeaseLost("the relay's lease is another's")
        self._store.wakeups.hint((LOG,))
        self._published += len(events)
        note("relay.published", count=len(events))

    # --- duties; each says whether there is more ---

    async def _tell_lag(self) -> bool:
        lag, now = await self._store.outbox.lag(), monotonic()
        rate = self._published / max(now - self._since, 0.001)
        self._published, self._since = 0, now
        note(
            "relay.lag",
            waiting=lag.waiting, oldest=lag.oldest, quarantined=lag.quarantined, position=lag.position, rate=rate,
        )  # fmt: skip
        return False

    async def _tell_wire(self) -> bool:
        await self._wires.tell()
        return False

    async def _prune(self) -> bool:
        """What nobody will ask for again; never below what a group or a view still has to read."""
        events = await self._store.outbox.prune(keep=self._settings.keep, limit=_PART)
        if self._wire is not None:
            await (await self._wire.ready()).trim(keep=self._settings.keep)
        deliveries = await self._store.inbox.prune(keep=await self._remembered(), limit=_PART)
        if events or deliveries:
            note("events.pruned", events=events, deliveries=deliveries)
        return events >= _PART or deliveries >= _PART

    async def _remembered(self) -> float:
        """Seconds for which it is known what groups had: as long as the broker has it, whatever the settings say."""
        if self._wire is None:
            return self._settings.inbox
        return may_come_again(self._settings, await (await self._wire.ready()).oldest())
