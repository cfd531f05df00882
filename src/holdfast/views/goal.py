"""How far a view must have read, for whoever wants to see what he has just written."""

from __future__ import annotations

from typing import Any, TypeAlias

from holdfast.events.envelope import SOURCE
from holdfast.events.event import Event
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int
from holdfast.store.event_records import Emitted
from holdfast.store.ports import Store
from holdfast.store.view_records import ViewRow
from holdfast.views.rebuilding import first_position

AtLeast: TypeAlias = Emitted | Event[Any] | int


class Goal:
    """An event is reached by the checkpoint, whatever the function made of it; a version by the row."""

    def __init__(self, store: Store, view: str, key: str, at_least: AtLeast) -> None:
        self._store, self._view, self._key = store, view, key
        self._event_id: str | None = None
        self._version = self._position = 0
        self._was_published = isinstance(at_least, Event) and at_least.source == SOURCE
        if isinstance(at_least, Emitted | Event):
            self._event_id, self.told = at_least.id, f"event {at_least.id}"
        else:
            self._version = check_int("at_least", at_least, 0, 2**63 - 1)
            self.told = f"version {at_least} of {key!r}"
        self.row: ViewRow | None = None
        self.why = "it has not been looked at"

    async def is_reached(self) -> bool:
        return await (self._has_version() if self._event_id is None else self._has_read(self._event_id))

    async def _has_version(self) -> bool:
        self.row = await self._store.views.get(self._view, self._key)
        if self.row is None:
            self.why = "there is no such row"
            return self._version == 0
        if self.row.version is None:
            raise UsageError(
                f"The row {self._key!r} of the view {self._view!r} is made of events of several keys, so it has no version. "
                "Give at_least= what hf.emit returned."
            )
        self.why = f"its row has version {self.row.version}"
        return self.row.version >= self._version

    async def _has_read(self, event_id: str) -> bool:
        """The checkpoint is read before the row: so the row is at least as new."""
        reached = await self._is_behind_checkpoint(event_id)
        self.row = await self._store.views.get(self._view, self._key)
        return reached and not await self._is_set_aside()

    async def _is_behind_checkpoint(self, event_id: str) -> bool:
        if self._position == 0:
            event = await self._store.outbox.get(event_id)
            if event is None and self._was_published:
                # Whoever was given it may have it for long, and it was pruned: then it is before all that are kept.
                self._position = await first_position(self._store)
            elif event is None or event.position is None:
                self.why = (
                    "the event is not published yet" if event is not None else "there is no such event yet"
                )
                return False
            else:
                self._position = event.position
        found = await self._store.views.checkpoints(view=self._view)
        position = max((each.position for each in found if each.state == "serving"), default=None)
        self.why = (
            "nobody runs it" if position is None else f"it is {self._position - position:,} events behind"
        )
        return position is not None and position >= self._position

    async def _is_set_aside(self) -> bool:
        """Then the row waits, although the checkpoint has gone on."""
        itself = await self._store.views.aside(self._view, after=self._position - 1, limit=1)
        before = await self._store.views.aside(self._view, key=self._key, limit=1)
        waiting = [each for each in before + itself if each.position <= self._position]
        if waiting:
            self.why = f"event {waiting[0].event_id} is set aside: {waiting[0].error}"
        return bool(waiting)
