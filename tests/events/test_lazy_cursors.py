"""A group passes over what it does not hear without writing, and still misses nothing."""

from __future__ import annotations

import pytest

from holdfast import Event, Holdfast
from holdfast.events import consumer as consuming
from holdfast.kernel.errors import LeaseLost
from holdfast.testing import ManualClock, drain


@pytest.fixture
def clock():
    clock = ManualClock()
    with clock:
        yield clock


@pytest.fixture
async def shop(clock, url):
    async with Holdfast(url) as opened:
        opened.event("order.placed", unheard=True)
        opened.event("order.viewed", unheard=True)
        yield opened


def billing(hf, seen=None):
    @hf.on("order.placed", group="billing")
    async def bill(event: Event) -> None:
        if seen is not None:
            seen.append(event.id)


async def reader(hf):
    lease = await hf.store.leases.acquire("holdfast:group:billing", owner="t", ttl=3_600)
    consumer = hf._inside.bus.consumer(hf._inside.bus.groups[0], "t")
    await consumer.subscribe()
    return consumer, lease


async def published(hf, *types):
    emitted = await hf.emit_many([(each, None) for each in types])
    lease = await hf.store.leases.acquire("holdfast:relay", owner="t", ttl=3_600)
    await hf.store.outbox.stamp(lease, [each.id for each in emitted])
    return [each.id for each in emitted]


async def cursor(hf):
    [found] = await hf.store.inbox.cursors()
    return found.position


async def test_what_nobody_hears_moves_the_cursor_once_a_second(shop, clock):
    billing(shop)
    consumer, lease = await reader(shop)
    await published(shop, "order.viewed")
    await consumer.turn(lease)
    assert await cursor(shop) == 1  # the first time
    for number in range(2, 5):
        await published(shop, "order.viewed")
        assert await consumer.turn(lease)
        assert await cursor(shop) == 1, number
    clock.advance(1.01)
    assert not await consumer.turn(lease)
    assert await cursor(shop) == 4


async def test_what_it_hears_is_delivered_at_once_and_moves_the_cursor_over_all(shop, clock):
    seen = []
    billing(shop, seen)
    consumer, lease = await reader(shop)
    await consumer.turn(lease)
    await published(shop, "order.viewed", "order.viewed")
    await consumer.turn(lease)
    await published(shop, "order.viewed")
    await consumer.turn(lease)
    [placed] = await published(shop, "order.placed")
    await consumer.turn(lease)
    assert await cursor(shop) == 4
    await shop.store.leases.release(lease)
    await drain(shop)
    assert seen == [placed]


async def test_many_that_nobody_hears_are_not_remembered_without_end(shop, clock, monkeypatch):
    monkeypatch.setattr(consuming, "_MOST_PASSED", 3)
    billing(shop)
    consumer, lease = await reader(shop)
    await published(shop, "order.viewed")
    await consumer.turn(lease)
    for position in range(2, 8):
        await published(shop, "order.viewed")
        await consumer.turn(lease)
        assert position - await cursor(shop) < 3


async def test_who_takes_over_reads_what_was_passed_again(shop, clock):
    billing(shop)
    consumer, lease = await reader(shop)
    await published(shop, "order.viewed")
    await consumer.turn(lease)
    await published(shop, "order.viewed")
    await consumer.turn(lease)
    await published(shop, "order.placed")
    other, lease = await reader(shop)
    assert await other.catch_up(lease)
    assert await cursor(shop) == 3
    assert len(await shop.store.jobs.find(task="on:billing:bill")) == 1


@pytest.mark.parametrize("heard_next", [True, False])
async def test_positions_that_a_crash_has_given_to_others_are_read_again(shop, clock, heard_next):
    """PostgreSQL may forget the last positions in a crash: what has them now was never looked at."""
    billing(shop)
    consumer, lease = await reader(shop)
    await published(shop, "order.viewed")
    await consumer.turn(lease)
    await published(shop, "order.viewed")
    await consumer.turn(lease)  # read, and not written
    outbox = "holdfast.outbox" if "postgres" in shop._inside.location.kind else "holdfast_outbox"
    [lost] = await published(shop, "order.placed")
    async with shop.transaction() as tx:
        sql = f"UPDATE {outbox} SET position = $1 WHERE position = $2"
        await tx.execute_many(sql, [(1_000, 2), (2, 3), (3, 1_000)])
    if heard_next:
        await published(shop, "order.placed")
    clock.advance(2)
    with pytest.raises(LeaseLost):
        await consumer.turn(lease)
    assert await cursor(shop) == 1
    again, lease = await reader(shop)
    await again.catch_up(lease)
    jobs = await shop.store.jobs.find(task="on:billing:bill")
    assert len(jobs) == 1 + heard_next
    assert any(lost in each.args for each in jobs)
