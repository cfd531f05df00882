"""What a program sees of its events on their way: what waits, what is set aside, and what a person does about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from holdfast.events import joining, pressure, wires
from holdfast.events.bus import Bus
from holdfast.events.redriving import redrive
from holdfast.events.replaying import replay_stray
from holdfast.jobs.options import moment
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.store.event_records import LAG_COUNTED, Cursor, OutboxEvent, OutboxLag, OutboxState, Stray
from holdfast.store.event_verdicts import broker_forgotten, forgotten
from holdfast.store.ports import Store


@must_await_all("hf.outbox")
class OutboxView:
    """`hf.outbox`."""

    def __init__(self, store: Store, bus: Bus) -> None:
        self._store, self._bus = store, bus

    async def lag(self) -> OutboxLag:
        """How far publishing is behind."""
        return await self._store.outbox.lag()

    async def get(self, event_id: str) -> OutboxEvent | None:
        """The event as it is stored, or None."""
        return await self._store.outbox.get(event_id)

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
        return await self._store.outbox.find(
            state=state, type=type, key=key, correlation_id=correlation_id, limit=limit
        )

    async def groups(self) -> list[Cursor]:
        """How far each group has read, where the database carries the events."""
        return await self._store.inbox.cursors()

    async def behind(self, group: str) -> int:
        """How many events the group hears and has not begun to handle: not published, not read, or waiting as jobs; counted up to 100,000.

        With a broker it counts what that has not given to the group yet, whatever its type.
        """
        return await pressure.behind(self._store, self._bus, check_name("group", group))

    async def room(self, group: str, *, most: int, wait: float | None = None) -> int:
        """Wait until fewer than `most` events are before the group; returns how many more there is room for.

        0: there was none within `wait` seconds. Several who ask at once are told the same.
        """
        most = check_int("most", most, 1, LAG_COUNTED)
        wait = None if wait is None else check_seconds("wait", wait)
        return await pressure.room(self._store, self._bus, check_name("group", group), most=most, wait=wait)

    async def backlogs(self) -> dict[str, int | None]:
        """The groups that the broker knows, and how many messages each has not acknowledged; None: it cannot tell."""
        if self._bus.wire is None:
            return {}
        transport = await self._bus.wire.ready()
        return {group: await transport.backlog(group) for group in await transport.groups()}

    async def unsubscribe(self, group: str, *, by: str = "code") -> bool:
        """Forget a group that nobody runs any more, here and on the broker, so that nothing is kept for it. False: there is none."""
        done = await self._store.inbox.unsubscribe(group, actor=by)
        if self._bus.wire is None:
            return done
        backlogs = await self.backlogs()
        await joining.forget(self._store, self._bus.wire, group)
        if group not in backlogs:
            return done
        transport = await self._bus.wire.ready()
        entry = forgotten(group, transport=transport.name, backlog=backlogs[group], actor=by)
        await self._store.audit.write(entry)
        await transport.forget(group)
        return True

    async def brokers(self) -> list[str]:
        """Through which brokers programs on this database publish; programs without one leave events to those."""
        return await wires.known(self._store)

    async def forget_broker(self, name: str, *, by: str = "code") -> bool:
        """Programs here do not publish through it any more: those without a broker, or with another, go on. False: there is none."""
        if name not in await self.brokers():
            return False
        await self._store.audit.write(broker_forgotten(name, actor=by))
        await wires.forget(self._store, name)
        return True

    async def requeue(self, ids: Sequence[str], *, by: str = "code") -> list[bool]:
        """Publish quarantined events after all. False: it was not quarantined."""
        return await self._store.outbox.requeue(ids, actor=by)

    async def drop(self, ids: Sequence[str], *, reason: str, by: str = "code") -> list[bool]:
        """Give quarantined events up: those behind them of the same key go on."""
        return await self._store.outbox.drop(ids, actor=by, reason=reason)

    async def redrive(
        self,
        *,
        since: float | datetime | None = None,
        after: int = 0,
        told: Callable[[int, int], None] | None = None,
    ) -> int:
        """Publish again what was published from the moment `since`, or behind a position: for a broker that has lost it.

        Ids and bytes are the same, so groups that had an event ignore it. `told` hears the number so far and the position.
        """
        known = partial(self._bus.make_known, "redrive")
        return await redrive(
            self._store, self._bus.wire, make_known=known, since=moment(since), after=after, told=told
        )

    async def strays(
        self,
        *,
        type: str | None = None,  # noqa: A002  the word of the envelope
        before: int | None = None,
        limit: int = 100,
    ) -> list[Stray]:
        """Messages that no group could understand, and events of types that nobody knew, as they came; newest first."""
        return await self._store.strays.find(type=type, before=before, limit=limit)

    async def replay_stray(self, stray_id: int, *, message: bytes | None = None, by: str = "code") -> bool:
        """Read a stray once more, such as after an update, or `message` in its place, and deliver it to its group.

        False: there is no such stray. Raises PayloadError when it is still no event, and UsageError when nobody hears it: then it stays.
        """
        return await replay_stray(self._store, self._bus, stray_id, message=message, actor=by)
