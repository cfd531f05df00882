"""Publish a batch on a broker: events of one key in their order, and none behind one that failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    """What became of a batch."""

    def __init__(self) -> None:
        self.events: list[OutboxEvent] = []
        self.failures: list[Failure] = []
        self.unavailable: TransportUnavailable | None = None  # the rest was not sent, or nobody knows

    @property
    def stopped_keys(self) -> set[str | None]:
        return {each.event.key for each in self.failures if each.event.key is not None}


async def publish(
    transport: Transport, events: Sequence[OutboxEvent], *, key_waits: bool = True
) -> Published:
    """`key_waits`: what is behind a failed event of its key is not sent. Then each call has one event of a key at most."""
    found = Published()
    for wave in _waves(events) if key_waits else [list(events)]:
        stopped = found.stopped_keys if key_waits else set()
        if ready := [event for event in wave if event.key not in stopped]:
            await _send(transport, ready, found)
        if found.unavailable is not None:
            break
    return found


def _waves(events: Sequence[OutboxEvent]) -> Iterator[list[OutboxEvent]]:
    """The first of each key, then the second of each, and so on: what one call sends is of different keys."""
    rest = list(events)
    while rest:
        wave: list[OutboxEvent] = []
        behind: list[OutboxEvent] = []
        seen: set[str] = set()
        for event in rest:
            is_first = event.key is None or event.key not in seen
            (wave if is_first else behind).append(event)
            if event.key is not None:
                seen.add(event.key)
        yield wave
        rest = behind


async def _send(transport: Transport, batch: Sequence[OutboxEvent], found: Published) -> None:
    """When a call fails as a whole, its halves are tried: so one event that cannot be sent is found among many that can."""
    try:
        answers = await transport.publish([_message(event) for event in batch])
    except TransportUnavailable as error:
        found.unavailable = error
        return
    except Exception as error:  # noqa: BLE001  whatever an adapter does with a message that it cannot send
        await _send_parts(transport, batch, found, error)
        return
    for event, refused in zip(batch, answers, strict=True):
        if refused is None:
            found.events.append(event)
        else:
            found.failures.append(Failure(event, refused.reason, is_final=True))


async def _send_parts(
    transport: Transport, batch: Sequence[OutboxEvent], found: Published, error: Exception
) -> None:
    if len(batch) == 1:
        found.failures.append(Failure(batch[0], f"{type(error).__name__}: {error}", is_final=False))
        if not found.events and len(found.failures) >= _SUSPICIOUS:
            found.unavailable = TransportUnavailable(f"{transport.name} takes no message: {error!r}")
            found.failures = [each for each in found.failures if each.is_final]
        return
    middle = len(batch) // 2
    for half in (batch[:middle], batch[middle:]):
        if found.unavailable is None:
            await _send(transport, half, found)


def _message(event: OutboxEvent) -> Message:
    return Message(event.id, event.type, event.key, encode(event))
