"""What a doctor looks at in events: the broker, a relay that stands still, what was set aside, groups that nobody reads for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.events import wires
from holdfast.events.relay import LEASE_NAME
from holdfast.events.settings import DAY, EventSettings
from holdfast.events.wire import Wire
from holdfast.kernel.errors import TransportUnavailable
from holdfast.store.event_records import Cursor, OutboxLag
from holdfast.store.findings import Finding, bad, named, ok, warn
from holdfast.store.ports import Store
from holdfast.store.records import Lease

LATE = 60.0  # seconds that an event may wait for its publication
LEFT = 86_400.0  # seconds after which a group that is behind, and that nobody reads for, is worth a word


async def examine(store: Store) -> list[Finding]:
    """Changes nothing."""
    lag, holder = await store.outbox.lag(), await store.leases.get(LEASE_NAME)
    strays = len(await store.strays.find(limit=100))
    brokers = await wires.known(store)
    return [
        *_relay(lag, holder, brokers),
        *_brokers(brokers),
        _quarantine(lag, strays),
        _groups(lag, await store.inbox.cursors(), await store.now()),
    ]


async def examine_broker(wire: Wire | None, settings: EventSettings) -> list[Finding]:
    """Whether it answers, what it may lose, and whether it keeps messages for longer than groups remember them by the settings."""
    if wire is None:
        return []
    try:
        transport = await wire.ready()
        oldest = await transport.oldest()
    except TransportUnavailable as error:
        todo = "Events wait in the outbox until it is back."
        return [warn("broker", str(error), todo)]
    return [
        ok("broker", f"{transport.name} answers. What it may lose: {transport.loss}."),
        _retention(settings, oldest or 0.0),
    ]


def _retention(settings: EventSettings, oldest: float) -> Finding:
    found = f"The oldest message on the broker is {oldest / DAY:.1f} days old; groups remember what they had for {settings.inbox / DAY:.1f} days"
    if oldest <= settings.inbox:
        return ok("retention", f"{found}.")
    return warn(
        "retention",
        f"{found} by the settings, and longer as long as it is there.",
        "Find the group that does not read: holdfast outbox groups; or raise EventSettings(inbox=…).",
    )


def _brokers(names: Sequence[str]) -> Iterator[Finding]:
    if len(names) > 1:
        yield bad(
            "brokers",
            f"Programs on this database publish through {', '.join(names)}: each event goes to the broker of whoever publishes it.",
            f"Give all of them the same, and say which is given up: holdfast outbox forget-broker {names[0]}. "
            "Then publish again what groups have not heard: holdfast outbox redrive --since 2h.",
        )


def _relay(lag: OutboxLag, holder: Lease | None, brokers: Sequence[str]) -> Iterator[Finding]:
    if not lag.waiting or lag.oldest is None or lag.oldest < LATE:
        yield ok("relay", f"Events that wait for their publication: {lag.waiting:,}; none for long.")
    elif holder is None:
        yield bad(
            "relay",
            f"Events wait for their publication: {lag.waiting:,}, the oldest for {lag.oldest:.0f} s; nobody publishes them.",
            "Start a worker of a program that has events, or: holdfast relay module:hf."
            + "".join(
                f" It needs the broker, {name}; when that is given up for good: holdfast outbox forget-broker {name}."
                for name in brokers
            ),
        )
    else:
        yield warn(
            "relay",
            f"Events wait for their publication: {lag.waiting:,}, the oldest for {lag.oldest:.0f} s, though {holder.owner} "
            "is there to publish them.",
            "Does the broker answer? What the relay meets is in its log; holdfast outbox list --state quarantined shows keys that wait.",
        )


def _quarantine(lag: OutboxLag, strays: int) -> Finding:
    if not lag.quarantined and not strays:
        return ok("quarantine", "No event is set aside, and every message was understood.")
    found = f"Events that could not be published: {lag.quarantined:,}; messages that nobody understood or knew the type of: {strays:,}"
    return warn(
        "quarantine",
        f"{found}{' or more' if strays >= 100 else ''}.",
        "See them: holdfast outbox list --state quarantined, holdfast outbox strays; then requeue, replay or drop. "
        "Types of other programs are named in EventSettings(others=…).",
    )


def _groups(lag: OutboxLag, cursors: Sequence[Cursor], now: float) -> Finding:
    left = [
        (cursor.group, lag.position - cursor.position)
        for cursor in cursors
        if cursor.position < lag.position and now - cursor.seen_at > LEFT
    ]
    if not left:
        return ok("groups", "Somebody reads for every group of subscribers that is behind.")
    return warn(
        "groups",
        f"Nobody has read for a day for groups that have events to hear: {named(left)}.",
        f"Start a worker that has them, or forget one for good: holdfast outbox unsubscribe {left[0][0]}.",
    )
