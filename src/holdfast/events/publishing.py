"""Publish a batch on a broker: in order, none behind one of its key that failed, and the one that fails found among many."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.events.envelope import encode
from holdfast.kernel.errors import TransportUnavailable
from holdfast.store.event_records import OutboxEvent
from holdfast.transport.port import Message, Transport

_SUSPICIOUS = (
    10  # events that fail by themselves while none succeeds: then it is the broker's trouble, and not theirs
)


class Failure(msgspec.Struct, frozen=True):
    event: OutboxEvent
    error: str
    is_final: bool  # the broker has refused it


class Published:
    """What became of a batch. Events that are in neither list were not sent."""

    def __init__(self) -> None:
        self.events: list[OutboxEvent] = []
        self.failures: list[Failure] = []
        self.unavailable: TransportUnavailable | None = None  # nobody knows of the rest

    def stops(self, event: OutboxEvent) -> bool:
        return event.key is not None and any(event.key == each.event.key for each in self.failures)


async def publish(transport: Transport, events: Sequence[OutboxEvent]) -> Published:
    found = Published()
    await _send(transport, events, found)
    return found


async def _send(transport: Transport, batch: Sequence[OutboxEvent], found: Published) -> None:
    """When a call fails as a whole, its halves are tried: so one event that cannot be sent stops only its own key."""
    if found.failures:
        batch = [event for event in batch if not found.stops(event)]
    if not batch or found.unavailable is not None:
        return
    try:
        answers = await transport.publish([_message(event) for event in batch])
    except TransportUnavailable as error:
        found.unavailable = error
        return
    except Exception as error:  # noqa: BLE001  whatever an adapter does with a message that it cannot send
        await _send_halves(transport, batch, found, error)
        return
    for event, refused in zip(batch, answers, strict=True):
        if refused is None:
            found.events.append(event)
        elif not refused.behind:
            found.failures.append(Failure(event, refused.reason, is_final=True))


async def _send_halves(
    transport: Transport, batch: Sequence[OutboxEvent], found: Published, error: Exception
) -> None:
    if len(batch) > 1:
        middle = len(batch) // 2
        await _send(transport, batch[:middle], found)
        await _send(transport, batch[middle:], found)
        return
    found.failures.append(Failure(batch[0], f"{type(error).__name__}: {error}", is_final=False))
    if not found.events and len(found.failures) >= _SUSPICIOUS:
        found.unavailable = TransportUnavailable(f"{transport.name} takes no message: {error!r}")
        found.failures = [each for each in found.failures if each.is_final]


def _message(event: OutboxEvent) -> Message:
    return Message(event.id, event.type, event.key, encode(event))
