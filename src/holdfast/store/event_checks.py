"""What the verbs of events are given, checked before any database sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds, check_text
from holdfast.kernel.show import show
from holdfast.store.checks import check_held_lease, check_id, check_reason
from holdfast.store.event_records import Delivery, NewEvent, NewStray, OutboxState
from holdfast.store.records import NewJob

T = TypeVar("T")
_STATES = get_args(OutboxState)
_POSITIONS = 2**63 - 1
HEARS_LIMIT = 256 * 1024  # bytes of what a member hears


def check_events(events: Any) -> tuple[NewEvent, ...]:
    return _all(events, NewEvent, "An event to emit is a NewEvent")


def check_deliveries(deliveries: Any) -> tuple[Delivery, ...]:
    copied = _all(deliveries, Delivery, "A delivery to store is a Delivery")
    for delivery in copied:
        _check_delivery(delivery)
    return copied


def _check_delivery(delivery: Delivery) -> None:
    check_name("event id", delivery.event_id)
    if not isinstance(delivery.job, NewJob):
        raise UsageError(f"The job of a delivery is a NewJob, not {show(delivery.job)}.")
    if delivery.job.unique is not None:
        raise UsageError(
            f"The job of a delivery has no unique key, and this one has {show(delivery.job.unique)}: "
            "the inbox has one delivery of each event already."
        )


def check_event_id(event_id: Any) -> str:
    """On the wire an id is any text: brokers carry events that others have made."""
    return check_name("event id", event_id)


def check_event_ids(ids: Any) -> tuple[str, ...]:
    copied = _listed(ids, "Event ids are UUIDs")
    for event_id in copied:
        check_id(event_id)
    return copied


def check_seen(ids: Any) -> tuple[str, ...]:
    return tuple(check_event_id(each) for each in _listed(ids, "Events that were seen are ids"))


def check_stray_ids(ids: Any) -> tuple[int, ...]:
    copied = _listed(ids, "Ids of strays are numbers")
    return tuple(check_stray_id(stray_id) for stray_id in copied)


def check_stray_id(stray_id: Any) -> int:
    return check_int("The id of a stray", stray_id, 0, _POSITIONS)


def check_stray_id_if_given(stray_id: Any) -> int | None:
    return None if stray_id is None else check_stray_id(stray_id)


def check_new_strays(messages: Any) -> tuple[NewStray, ...]:
    copied = _all(messages, NewStray, "A message to keep is a NewStray")
    return tuple(
        NewStray(check_raw(each.raw), check_reason(each.reason), _type(each.type)) for each in copied
    )


def _type(name: Any) -> str | None:
    return None if name is None else check_name("type", name)


def check_lease_if_given(lease: Any) -> None:
    if lease is not None:
        check_held_lease(lease)


def check_outbox_state(state: Any) -> str | None:
    if state is None:
        return None
    if not isinstance(state, str) or state not in _STATES:
        raise UsageError(f"An event's state is one of {', '.join(_STATES)}; not {show(state)}.")
    return str.__str__(state)


def check_position(position: Any) -> int:
    return check_int("A position", position, 0, _POSITIONS)


def check_position_if_given(position: Any) -> int | None:
    return None if position is None else check_position(position)


def check_rest(rest: Any) -> float | None:
    return None if rest is None else check_seconds("rest", rest)


def check_since(since: Any) -> float | None:
    return None if since is None else check_seconds("since", since)


def check_error(error: Any) -> None:
    """For people: any characters, which the store makes fit."""
    if not isinstance(error, str):
        raise UsageError(f"An error is text, not {show(error)} ({type(error).__name__}).")


def check_raw(raw: Any) -> bytes:
    if not isinstance(raw, bytes | bytearray | memoryview):
        raise UsageError(f"A message is bytes, not {show(raw)} ({type(raw).__name__}).")
    return bytes(raw)


def _all(items: Any, kind: type[T], wanted: str) -> tuple[T, ...]:
    copied = _listed(items, wanted)
    for item in copied:
        if not isinstance(item, kind):
            raise UsageError(f"{wanted}, not {show(item)} ({type(item).__name__}).")
    return copied


def _listed(items: Any, wanted: str) -> tuple[Any, ...]:
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise UsageError(f"{wanted}, in a list; not {show(items)} ({type(items).__name__}).")
    return tuple(items)


def check_hears(text: Any) -> str | None:
    if text is not None:
        check_text("hears", text, HEARS_LIMIT)
    return None if text is None else str(text)


def check_task_names(tasks: Any) -> tuple[str, ...]:
    return tuple(check_name("task", task) for task in _listed(tasks, "Tasks are names"))
