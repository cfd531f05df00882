"""What holds now: each question to the store is bounded, and one that fails ends no alert."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from holdfast.kernel.telemetry import note
from holdfast.observe.alerts.settings import AlertSettings
from holdfast.store.alert_records import CAUSES, Kind, Looked, Seen
from holdfast.store.breakers import BreakerState, GuardRecord
from holdfast.store.ports import Store
from holdfast.store.saga_records import SagaState
from holdfast.views.lag import lag_at

_OUTBOX = "outbox"


class Looker:
    def __init__(
        self, store: Store, settings: AlertSettings, guards: Callable[[], Awaitable[Sequence[GuardRecord]]]
    ) -> None:
        self._store, self._settings, self._guards = store, settings, guards
        self._sources: dict[Kind, Callable[[], Awaitable[list[Seen]]]] = {
            Kind.NEEDS_OPERATOR: self._sagas,
            Kind.BREAKER: self._breakers,
            Kind.OUTBOX_LAG: self._outbox,
            Kind.VIEW_LAG: self._views,
            Kind.WAITING: self._queues,
        }

    async def look(self) -> Looked:
        found = await self._store.alerts.look(patience=self._settings.waiting)
        seen, cut = [*found.seen], set(found.cut)
        for kind, ask in self._sources.items():
            try:
                its = await ask()
            except Exception as error:  # noqa: BLE001  the others are told all the same
                note("alerts.not_looked", kind=kind, error=repr(error))
                cut.add(str(kind))
                continue
            seen += its[:CAUSES]
            if len(its) > CAUSES:
                cut.add(str(kind))
        return Looked(tuple(seen), frozenset(cut))

    async def _sagas(self) -> list[Seen]:
        counts = await self._store.sagas.count()
        return [
            Seen(str(Kind.NEEDS_OPERATOR), each.name, each.number)
            for each in counts
            if each.state is SagaState.NEEDS_OPERATOR
        ]

    async def _breakers(self) -> list[Seen]:
        """Half open is not closed yet, and goes on as it was: seen as long as any node is not closed."""
        now = await self._store.now()
        return [
            Seen(str(Kind.BREAKER), guard.name, max(1, number))
            for guard in await self._guards()
            if (number := _not_closed(guard)) or _is_open_for_all(guard, now)
        ]

    async def _outbox(self) -> list[Seen]:
        oldest = (await self._store.outbox.lag()).oldest or 0.0
        return [Seen(str(Kind.OUTBOX_LAG), _OUTBOX, int(oldest))] if oldest > self._settings.lag else []

    async def _views(self) -> list[Seen]:
        checkpoints = await self._store.views.checkpoints(limit=CAUSES + 1)
        lags = [await lag_at(self._store, each) for each in checkpoints if each.state == "serving"]
        return [
            Seen(str(Kind.VIEW_LAG), lag.view, int(lag.seconds))
            for lag in lags
            if lag.seconds > self._settings.lag
        ]

    async def _queues(self) -> list[Seen]:
        waits = await self._store.queues.waits(limit=CAUSES + 1)
        return [
            Seen(str(Kind.WAITING), queue, int(age))
            for queue, age in waits.items()
            if age > self._settings.waiting
        ]


def _not_closed(guard: GuardRecord) -> int:
    return sum(node.state is not BreakerState.CLOSED for node in guard.nodes)


def _is_open_for_all(guard: GuardRecord, now: float) -> bool:
    is_held = guard.held is not None and guard.held.state is BreakerState.OPEN
    return is_held or (guard.opened_until or 0.0) > now
