"""Read a stray once more, or what a person has made of it: it goes to its group as any event does."""

from __future__ import annotations

from holdfast.events.bus import Bus
from holdfast.events.reading import body_of, telling
from holdfast.events.routes import delivery, routes_in
from holdfast.kernel.errors import UsageError
from holdfast.store.ports import Store


async def replay_stray(store: Store, bus: Bus, stray_id: int, *, message: bytes | None, actor: str) -> bool:
    """Delivered first, and then no stray any more: whoever dies in between may do it again, and nothing is handled twice."""
    stray = await store.strays.get(stray_id)
    if stray is None:
        return False
    event = telling(body_of(stray.raw) if message is None else message, at=stray.at)
    own = bus.subscribers.groups.get(stray.group)
    routes = [] if own is None else own.routes
    routes += routes_in(await store.groups.announced(stray.group))
    route = next((each for each in routes if each.hears(event.type)), None)
    if route is None:
        raise UsageError(
            f"Nobody in the group {stray.group!r} hears {event.type!r} now: stray {stray_id} stays. Start a worker that does, or drop it."
        )
    secret = bus.catalog.is_secret(event.type)
    await store.inbox.deliver(stray.group, [delivery(stray.group, route, event, secret=secret)])
    await store.strays.drop([stray_id], actor=actor, reason=f"replayed as event {event.id}")
    return True
