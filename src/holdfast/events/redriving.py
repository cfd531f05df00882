"""Publish again what a broker has lost: the same ids and bytes, in the order of their positions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from holdfast.events.publishing import Failure, TakesNothing, publish
from holdfast.events.wire import Wire
from holdfast.guards.backoff import Backoff
from holdfast.kernel.clock import recover
from holdfast.kernel.errors import TransportUnavailable, UsageError
from holdfast.kernel.telemetry import note
from holdfast.store.event_records import OutboxEvent
from holdfast.store.ports import Store
from holdfast.transport.port import Transport

_PART = 500
_PATIENCE = Backoff(attempts=8, first=0.5, ceiling=15.0)


async def redrive(
    store: Store,
    wire: Wire | None,
    *,
    make_known: Callable[[], Awaitable[None]],
    since: float | None = None,
    after: int = 0,
    upto: int | None = None,
    told: Callable[[int, int], None] | None = None,
) -> int:
    """How many were published: those from the moment `since`, or behind the position `after`, up to `upto`.

    `told` hears the number so far and the position. Groups that had them ignore them: so more than was lost may be sent.
    What the broker does not take, such as one that is larger than it takes now, is left out, and the note `redrive.failed` says so.
    Raises TransportUnavailable, with the position to go on after, when the broker stays away.
    """
    if wire is None:
        raise UsageError(
            "There is no broker to publish to: the database itself carries the events of this program, and loses none."
        )
    number, part, are_known = 0, _PART, False
    before = 1 + (
        (await store.outbox.lag()).position if upto is None else upto
    )  # not what the relay publishes meanwhile
    while events := await store.outbox.log(after=after, before=before, since=since, limit=part):
        tries = 0
        while True:
            try:
                if not are_known:  # it may have lost the groups too
                    await make_known()
                    are_known = True
                published, failures = await _publish(await wire.ready(), events)
                break
            except TransportUnavailable as error:
                tries, are_known = tries + 1, False
                if not _PATIENCE.allows(tries, error):
                    raise TransportUnavailable(
                        f"{error} Published again so far: {number:,}; go on with after={after}."
                    ) from error
                if not isinstance(error, TakesNothing):
                    events = events[: max(1, len(events) // 4)]  # a slow broker may never answer for many
                await recover(_PATIENCE.longest(tries))
        for failure in failures:
            note("redrive.failed", event=failure.event.id, type=failure.event.type, error=failure.error)
        number, part = number + published, min(_PART, 2 * len(events))
        assert events[-1].position is not None
        after = events[-1].position
        if told is not None:
            told(number, after)
    note("redrive.done", count=number, position=after)
    return number


async def _publish(transport: Transport, events: Sequence[OutboxEvent]) -> tuple[int, list[Failure]]:
    """How many, and what failed. Those behind one of their key that failed go all the same: each was published before, in its order."""
    number, failures, left = 0, list[Failure](), events
    while left:
        found = await publish(transport, left)
        if found.unavailable is not None:
            raise found.unavailable
        number += len(found.events)
        failures += found.failures
        answered = {event.id for event in found.events} | {failure.event.id for failure in found.failures}
        left = [event for event in left if event.id not in answered]
    return number, failures
