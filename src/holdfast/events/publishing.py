"""Publish a batch on a broker: in order, none behind one of its key that failed, and the one that fails found among many."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.events.envelope import encode
from holdfast.kernel.errors import TransportUnavailable
from holdfast.store.event_records import OutboxEvent
from holdfast.transport.port import Message, Transport

# Events that fail by themselves while none succeeds: then others are tried, from all over the batch. When none of so many
# succeeds either, it is the broker's trouble, and not theirs.
_SUSPICIOUS = 10


class TakesNothing(TransportUnavailable):
    """It answers, and not one of many could be sent. Given fewer at a time, it would not be known from events that cannot be."""


class Failure(msgspec.Struct, frozen=True):
    event: OutboxEvent
    error: str
    is_final: bool  # the broker has refused it


class Published:
    """What became of a batch. Events that are in neither list were not sent."""

    def __init__(self, batch: Sequence[OutboxEvent] = ()) -> None:
        self.batch = batch
        self.events: list[OutboxEvent] = []
        self.failures: list[Failure] = []
        self.unavailable: TransportUnavailable | None = None  # nobody knows of the rest
        self.early: set[str] | None = (
            None  # ids of those that were tried before their turn; None: none had to
        )

    def stops(self, event: OutboxEvent) -> bool:
        return event.key is not None and any(event.key == each.event.key for each in self.failures)

    @property
    def is_suspicious(self) -> bool:
        """Whether the broker has not taken, or refused, a single one of many. What failed before, while others did not, tells nothing."""
        answered = bool(self.events) or any(each.is_final for each in self.failures)
        return not answered and sum(not each.event.tries for each in self.failures) >= _SUSPICIOUS


async def publish(transport: Transport, events: Sequence[OutboxEvent]) -> Published:
    found = Published(events)
    await _send(transport, events, found)
    return found


async def _send(transport: Transport, batch: Sequence[OutboxEvent], found: Published) -> None:
    """When a call fails as a whole, its halves are tried: so one event that cannot be sent stops only its own key."""
    if found.failures:
        early = found.early or ()
        batch = [event for event in batch if not found.stops(event) and event.id not in early]
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
    if found.is_suspicious and found.early is None:
        await _try_others(transport, found)
        if found.is_suspicious:
            found.unavailable = TakesNothing(f"{transport.name} takes no message: {error!r}")
            found.failures.clear()


async def _try_others(transport: Transport, found: Published) -> None:
    """Until the broker takes one. Only the first of a key: none is sent before those ahead of it."""
    others, found.early = _firsts(found), set()
    for event in others[:: max(1, len(others) // _SUSPICIOUS)][::-1]:
        if not found.is_suspicious or found.unavailable is not None:
            return
        await _send(transport, [event], found)
        found.early.add(event.id)


def _firsts(found: Published) -> list[OutboxEvent]:
    tried = {each.event.id for each in found.failures}
    keys: set[str] = set()
    firsts = []
    for event in found.batch:
        if event.key not in keys and event.id not in tried:
            firsts.append(event)
        if event.key is not None:
            keys.add(event.key)
    return firsts


def _message(event: OutboxEvent) -> Message:
    return Message(event.id, event.type, event.key, encode(event))
