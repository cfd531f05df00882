"""Which groups a broker has known, kept in the store: one that it has lost hears all that the broker has, and not only what comes.

The broker is a member of the group that stays for ever and hears nothing. Nobody has to run when it forgets: a process that
starts later still knows that the group is no new one.
"""

from __future__ import annotations

import msgspec

from holdfast.events.wire import Wire
from holdfast.kernel.names import HUNDRED_YEARS
from holdfast.store.ports import Store


async def was_known(store: Store, wire: Wire, group: str) -> bool:
    return group in wire.joined or _words(wire) in await store.groups.announced(group)


async def is_known(store: Store, wire: Wire, group: str) -> None:
    """From now on."""
    if group not in wire.joined:
        await store.groups.announce(group, _member(wire), _words(wire), ttl=HUNDRED_YEARS)
        wire.joined.add(group)


async def forget(store: Store, wire: Wire, group: str) -> None:
    """When it comes back, it is new."""
    await store.groups.announce(group, _member(wire), None, ttl=HUNDRED_YEARS)
    wire.joined.discard(group)


def _member(wire: Wire) -> str:
    return f"transport:{wire.name}"


def _words(wire: Wire) -> str:
    """No route: whoever reads what members hear passes over it."""
    return msgspec.json.encode([_member(wire)]).decode()
