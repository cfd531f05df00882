"""How much is before a group, so that whoever makes more of it can wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.events.bus import Bus
from holdfast.events.routes import Route, routes_in
from holdfast.kernel.clock import look_after, monotonic
from holdfast.kernel.errors import UsageError
from holdfast.kernel.randomness import jittered
from holdfast.store.event_records import LAG_COUNTED
from holdfast.store.ports import Store

_LOOK = 0.2  # seconds between looks while there is no room


async def behind(store: Store, bus: Bus, group: str, *, limit: int = LAG_COUNTED) -> int:
    """Events that it hears and has not begun to handle: not published yet, not read yet, or waiting as jobs. Counted up to `limit`."""
    routes = await _routes(store, bus, group)
    found = await store.groups.lag(group, [route.task for route in routes], limit=limit)
    count = found.queued + _heard(found.waiting, routes)
    if bus.wire is not None:
        count += await _on_the_broker(bus, group)
    elif found.unread is not None:
        count += _heard(found.unread, routes)
    else:
        raise await _unknown(store, group)
    return min(count, limit)


async def room(store: Store, bus: Bus, group: str, *, most: int, wait: float | None) -> int:
    give_up = None if wait is None else monotonic() + wait
    while (free := most - await behind(store, bus, group, limit=most)) <= 0:
        if give_up is not None and monotonic() >= give_up:
            return 0
        await look_after(jittered(_LOOK))
    return free


async def _routes(store: Store, bus: Bus, group: str) -> list[Route]:
    """Those of this program, and what its members say, of whichever program they are."""
    own = [each.routes for each in bus.groups if each.name == group]
    return [*(own[0] if own else ()), *routes_in(await store.groups.announced(group))]


def _heard(counts: Mapping[str, int], routes: Sequence[Route]) -> int:
    """Where nobody is there to say what the group hears, it may be all of them."""
    return sum(
        number
        for type_, number in counts.items()
        if not routes or any(route.hears(type_) for route in routes)
    )


async def _on_the_broker(bus: Bus, group: str) -> int:
    assert bus.wire is not None
    transport = await bus.wire.ready()
    found = await transport.backlog(group)
    if found is None:
        known = ", ".join(await transport.groups()) or "none"
        raise UsageError(
            f"{transport.name} cannot tell how far the group {group!r} is. The groups that it knows: {known}. Start its worker first."
        )
    return found


async def _unknown(store: Store, group: str) -> UsageError:
    known = ", ".join(each.group for each in await store.inbox.cursors()) or "none"
    return UsageError(
        f"No group {group!r} has read from this database yet; known: {known}. Start its worker first, or mend the name."
    )
