"""How much is before a group, and the wait for room."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Event, Holdfast
from holdfast.errors import UsageError
from holdfast.events.members import Members
from holdfast.testing import drain
from holdfast.testing.memory import MemoryBroker, MemoryTransport
from holdfast.testing.relaying import move_events


def billing(hf):
    @hf.on("order.placed", group="billing")
    async def bill(event: Event) -> None: ...


async def test_each_event_that_it_hears_counts_until_it_is_handled(hf):
    hf.event("order.viewed", unheard=True)
    billing(hf)
    await move_events(hf)
    assert await hf.outbox.behind("billing") == 0
    await hf.emit_many([("order.placed", n, "k") for n in range(150)] + [("order.viewed", 0)] * 3)
    assert await hf.outbox.behind("billing") == 150  # not published
    lease = await hf.store.leases.acquire("holdfast:relay", owner="t", ttl=60)
    while await hf._inside.bus.relay("t").turn(lease):
        pass
    await hf.store.leases.release(lease)
    assert await hf.outbox.behind("billing") == 150  # not read
    await move_events(hf)
    assert await hf.outbox.behind("billing") == 150  # jobs of one key
    await drain(hf)
    assert await hf.outbox.behind("billing") == 0


async def test_who_asks_for_room_waits_until_there_is_some(hf):
    billing(hf)
    await move_events(hf)
    assert await hf.outbox.room("billing", most=5) == 5
    await hf.emit_many([("order.placed", n) for n in range(3)])
    assert await hf.outbox.room("billing", most=5) == 2
    assert await hf.outbox.room("billing", most=3, wait=0) == 0
    assert await hf.outbox.room("billing", most=2, wait=0.01) == 0
    waits = asyncio.create_task(hf.outbox.room("billing", most=3))
    await asyncio.sleep(0)
    assert not waits.done()
    await drain(hf)
    assert await waits >= 1  # as soon as one of them was handled


async def test_of_another_programs_group_what_its_members_say_counts(hf):
    hf.event("order.placed", unheard=True)
    hf.event("order.viewed", unheard=True)
    location = hf._inside.location
    url = f"sqlite:///{location.address}" if location.kind == "sqlite" else location.address
    async with Holdfast(url) as other:
        billing(other)
        await move_events(other)
        await hf.emit_many([("order.placed", 1), ("order.viewed", 2)])
        assert await hf.outbox.behind("billing") == 2, "nobody is there to say what it hears"
        members = Members(other.store, other._inside.bus.groups, member="w1")
        await members.announce()
        assert await hf.outbox.behind("billing") == 1
        await move_events(other)
        assert await hf.outbox.behind("billing") == 1  # as a job


async def test_a_group_that_nobody_has_run_is_an_error(hf):
    billing(hf)
    await move_events(hf)
    for verb in (hf.outbox.behind("biling"), hf.outbox.room("biling", most=5)):
        with pytest.raises(UsageError, match=r"'biling' has read .*known: billing"):
            await verb
    for most in (0, 1.5, 10**9):
        with pytest.raises(UsageError, match="most"):
            await hf.outbox.room("billing", most=most)


async def test_with_a_broker_its_backlog_counts(url):
    broker = MemoryBroker()
    async with Holdfast(url, transport=MemoryTransport(broker)) as hf:
        billing(hf)
        with pytest.raises(UsageError, match="billing"):
            await hf.outbox.behind("billing")
        await move_events(hf)
        await hf.emit_many([("order.placed", n) for n in range(4)])
        assert await hf.outbox.behind("billing") == 4
        lease = await hf.store.leases.acquire("holdfast:relay", owner="t", ttl=60)
        await hf._inside.bus.relay("t").turn(lease)
        await hf.store.leases.release(lease)
        assert await hf.outbox.behind("billing") == 4
        await drain(hf)
        assert await hf.outbox.behind("billing") == 0


def test_from_sync_code(url):
    hf = Holdfast(url)
    hf.blocking.migrate()
    with pytest.raises(UsageError, match="known: none"):
        hf.blocking.outbox.behind("billing")
