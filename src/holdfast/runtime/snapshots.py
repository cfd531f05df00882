"""What a snapshot must have: the event that somebody has just emitted."""

from __future__ import annotations

from typing import Any, TypeAlias

from holdfast.events.event import Event
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.store.event_records import Emitted
from holdfast.store.records import is_id

AtLeast: TypeAlias = Emitted | Event[Any]


def event_id_of(at_least: AtLeast | None) -> str | None:
    if at_least is None:
        return None
    if not isinstance(at_least, Emitted | Event):
        raise UsageError(
            f"at_least= is what hf.emit returned, or an event; not {show(at_least)} ({type(at_least).__name__})."
        )
    if not is_id(at_least.id):
        raise UsageError(
            f"Event {at_least.id!r} is not of this database: its id is no UUID. Leave at_least= out."
        )
    return at_least.id
