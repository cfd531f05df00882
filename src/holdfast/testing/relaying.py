"""Moves events for tests: publishes what waits in the outbox, stores the jobs of those who hear it, and brings views up to date."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.events.consumer import LEASE_NAME as GROUP_LEASE
from holdfast.events.relay import LEASE_NAME as RELAY_LEASE
from holdfast.runtime.app import Holdfast
from holdfast.runtime.inside import inside
from holdfast.sagas.listening import LEASE_NAME as SAGA_LEASE
from holdfast.store.records import Lease
from holdfast.testing.running import LEASE, NAME
from holdfast.views.projector import LEASE_NAME as VIEW_LEASE


async def subscribe(hf: Holdfast) -> None:
    """Make the program's groups known: a group hears what is published after that."""
    await inside(hf).bus.make_known(NAME)


async def move_events(hf: Holdfast) -> bool:
    """As the services of a worker would; whether there was anything to move. What a worker of another process does is left to it."""
    if inside(hf).bus.catalog.is_empty and hf.sagas.is_empty:
        return False
    if not hf.sagas.is_empty:
        await _leased(hf, SAGA_LEASE, hf.sagas.listener(NAME).turn)  # before its first event it has to begin
    inside(hf).bus.check()
    await subscribe(hf)
    relay = inside(hf).bus.relay(NAME)

    async def publish(lease: Lease) -> bool:
        found = False
        while await relay.turn(lease):
            found = True
        return found

    moved = await _leased(hf, RELAY_LEASE, publish)
    for group in inside(hf).bus.groups:
        consumer = inside(hf).bus.consumer(group, NAME)
        moved |= await _leased(hf, GROUP_LEASE.format(group.name), consumer.catch_up)
    for view in hf.views:
        moved |= await _leased(hf, VIEW_LEASE.format(view.name), hf.views.projector(view, NAME).catch_up)
    if not hf.sagas.is_empty:
        moved |= await _leased(hf, SAGA_LEASE, hf.sagas.listener(NAME).turn)
    return moved


async def _leased(hf: Holdfast, name: str, act: Callable[[Lease], Awaitable[bool]]) -> bool:
    lease = await hf.store.leases.acquire(name, owner=NAME, ttl=LEASE)
    if lease is None:
        return False
    try:
        return await act(lease)
    finally:
        await hf.store.leases.release(lease)
