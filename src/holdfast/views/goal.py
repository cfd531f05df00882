"""How far a view must have read, for whoever wants to see what he has just written."""

from __future__ import annotations

from typing import Any, TypeAlias

from holdfast.events.envelope import SOURCE
from holdfast.events.event import Event
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int
from holdfast.store.event_records import Emitted, OutboxEvent
from holdfast.store.ports import Store
from holdfast.store.view_records import ViewRow
from holdfast.views.rebuilding import first_position

AtLeast: TypeAlias = Emitted | Event[Any] | int
_LOOKED_AT = 10  # newest events of a key, for the first that reaches a version


class Goal:
    """An event is reached by the checkpoint, whatever the function made of it; a version by the row, or by its event."""

    def __init__(
        self, store: Store, view: str, key: str, at_least: AtLeast, source: str | None = None
    ) -> None:
        """`source` is the key of the events, where that is known without a row."""
        self._store, self._view, self._key, self._source = store, view, key, source
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
        row = self.row = await self._store.views.get(self._view, self._key)
        if row is not None and row.version is None:
            raise UsageError(
                f"The row {self._key!r} of the view {self._view!r} is made of events of several keys, so it has no version. "
                "Give at_least= what hf.emit returned."
            )
        version, source = (0, self._source) if row is None else (row.version or 0, row.source)
        if version >= self._version:
            return True
        has = "there is no such row" if row is None else f"its row has version {version}"
        if source is not None and await self._has_passed(source):
            return True
        self.why = f"{has}, and {self.why}" if source is not None else has
        return False

    async def _has_passed(self, source: str) -> bool:
        """Whether it has read that version, although it is in no row: it may not hear such an event."""
        if self._position == 0:
            newest = await self._store.outbox.find(key=source, limit=_LOOKED_AT)
            reaching = [event for event in newest if (event.version or 0) >= self._version]
            if reaching:
                self._place(reaching[-1])
            elif await self._store.outbox.version(source) >= self._version:
                await self._place_before_all()
            else:
                self.why = "there is no such version yet"
        return await self._is_read()

    async def _has_read(self, event_id: str) -> bool:
        if self._position == 0:
            event = await self._store.outbox.get(event_id)
            if event is None and self._was_published:
                await self._place_before_all()
            elif event is None:
                self.why = "there is no such event yet"
            else:
                self._place(event)
        return await self._is_read()

    # --- where in the log it is ---

    def _place(self, event: OutboxEvent) -> None:
        self._position, self.why = event.position or 0, "the event is not published yet"

    async def _place_before_all(self) -> None:
        """It was pruned, after all views had read it: whoever knows of it may have known it for long."""
        self._position = await first_position(self._store)

    async def _is_read(self) -> bool:
        """The row is read last: so it is at least as new as the checkpoint, and as what is no longer set aside."""
        reached = self._position > 0 and await self._is_behind_checkpoint() and not await self._is_set_aside()
        self.row = await self._store.views.get(self._view, self._key)
        return reached

    async def _is_behind_checkpoint(self) -> bool:
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
