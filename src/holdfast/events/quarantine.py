"""What a group cannot handle is kept as it came, for a person: a message that is no event, or an event of a type that nobody knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.events.reading import as_it_came, telling
from holdfast.events.routes import Route, Telling
from holdfast.kernel.clock import now
from holdfast.kernel.errors import PayloadError
from holdfast.kernel.telemetry import note
from holdfast.store.event_records import NewStray
from holdfast.store.ports import Store
from holdfast.transport.port import Received

_TOLD = 1_000  # unknown types of which it is said, once each: others may make up types without end


class Quarantine:
    """Of one group on one transport. What it keeps is stored before the messages are acknowledged."""

    def __init__(self, store: Store, transport: str, group: str) -> None:
        self._store, self._transport, self._group = store, transport, group
        self._told: set[str] = set()
        self.is_known: Callable[[str], bool] = lambda _: True

    def read(self, received: Sequence[Received]) -> tuple[list[tuple[Received, Telling]], list[NewStray]]:
        """The events among them, and what is none."""
        events, broken = [], []
        for each in received:
            try:
                events.append((each, telling(each.body, at=now())))
            except PayloadError as error:
                broken.append(NewStray(as_it_came(each), str(error)))
        return events, broken

    def unknown(
        self, found: Sequence[tuple[Received, Telling]], routes: Sequence[Route | None]
    ) -> list[NewStray]:
        """Nobody in the group hears them, and nobody in the program knows of them: a pattern may be mistyped, or this version too old.

        What is declared, or heard by others of the program, is passed over: it is for them.
        """
        return [
            NewStray(as_it_came(message), f"Nobody here hears or declares {event.type}.", event.type)
            for (message, event), route in zip(found, routes, strict=True)
            if route is None and not self.is_known(event.type)
        ]

    async def keep(self, messages: Sequence[NewStray]) -> None:
        if not messages:
            return
        ids = await self._store.strays.keep(self._transport, self._group, messages)
        for stray, message in zip(ids, messages, strict=True):
            if message.type is None:
                note("group.stray", group=self._group, stray=stray, error=message.reason)
            elif message.type not in self._told and len(self._told) < _TOLD:
                self._told.add(message.type)
                note("group.unknown_type", group=self._group, stray=stray, type=message.type)
