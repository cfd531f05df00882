"""Two programs on one database, of which one has a broker: whatever is emitted reaches it, whoever else could publish."""

from __future__ import annotations

import asyncio

import pytest
from waiting import heard, until

from holdfast import Event, Holdfast
from holdfast.events import consumer, findings
from holdfast.events.relay import LEASE_NAME
from holdfast.kernel.errors import StoreUnavailable
from holdfast.testing.memory import MemoryBroker, MemoryTransport


class Other(MemoryTransport):
    name = "other"


@pytest.fixture
def broker():
    return MemoryBroker()


@pytest.fixture
async def stock(url):
    """It has no broker: the database carries its events."""
    async with Holdfast(url) as hf:
        hf.heard = []

        @hf.on("stock.*", "order.*", group="stock", queue="stock")
        async def count(event: Event) -> None:
            hf.heard.append(event.type)

        yield hf


@pytest.fixture
async def shop(url, broker):
    async with Holdfast(url, transport=MemoryTransport(broker)) as hf:
        hf.event("order.placed", unheard=True)
        yield hf


def types(broker):
    return [message.type for message in broker.messages]


def stocktaker(hf):
    return hf.worker({"stock": 5}, lease=1.5)


async def test_who_has_no_broker_leaves_events_to_who_has_one(shop, stock, broker):
    with heard("relay.left_to_others") as notes:
        async with stocktaker(stock):
            await stock.emit("stock.counted")
            await until(lambda: stock.heard == ["stock.counted"])
            async with shop.worker({"shop": 5}, lease=1.5):
                await until(lambda: notes)
                await shop.emit("order.placed")
                await stock.emit("stock.counted")
                await until(lambda: len(types(broker)) == 2)
                await until(lambda: len(stock.heard) == 3)  # it reads them in the database
    assert types(broker) == ["order.placed", "stock.counted"]
    assert {note["brokers"] for note in notes} == {"memory"}


async def test_a_broker_that_could_not_be_told_at_the_start_is_told_later(shop, stock, monkeypatch):
    announce, failed = shop.store.groups.announce, []

    async def away(*given, **named):
        if not failed:
            failed.append(given)
            raise StoreUnavailable("the database is away")
        await announce(*given, **named)

    async with stocktaker(stock):
        await stock.emit("stock.counted")
        await until(lambda: stock.heard)  # it publishes, and has the lease
        monkeypatch.setattr(shop.store.groups, "announce", away)
        async with shop.worker({"shop": 5}, lease=1.5):

            async def is_told():
                return await stock.outbox.brokers() == ["memory"]

            await until(is_told)
    assert len(failed) == 1


async def test_a_broker_is_remembered_while_its_program_is_away(shop, stock, broker):
    """Else what it emits meanwhile would be marked as published, and never reach it."""
    async with shop.worker():
        pass
    await shop.emit("order.placed")
    with heard("relay.left_to_others") as notes:
        async with stocktaker(stock):
            await until(lambda: notes)
            await asyncio.sleep(1.0)  # as long as it takes for the lease to be asked for once more
            assert (await stock.outbox.lag()).waiting == 1
    async with shop.worker():
        await until(lambda: types(broker) == ["order.placed"])


async def test_a_person_gives_a_broker_up(shop, stock, broker):
    async with shop.worker():
        pass
    await shop.emit("order.placed")
    assert await stock.outbox.brokers() == ["memory"]
    assert not await stock.outbox.forget_broker("redis", by="test")
    assert await stock.outbox.forget_broker("memory", by="test")
    [entry] = await stock.store.audit.find(subject="broker:memory")
    assert (entry.actor, entry.action) == ("test", "broker.forget")
    async with stocktaker(stock):
        await until(lambda: stock.heard == ["order.placed"])
    assert types(broker) == []


def billing(url, transport=None):
    hf = Holdfast(url, transport=transport)
    hf.got = []

    @hf.on("order.*", group="billing", queue="billing")
    async def bill(event: Event) -> None:
        hf.got.append(event.data)

    return hf


async def test_what_a_group_had_not_read_in_the_database_it_gets_when_there_is_a_broker(url, broker):
    """A program begins to use one: what it has published before that, no broker has."""
    before, after = billing(url), billing(url, MemoryTransport(broker))
    async with before as hf:
        await hf._inside.bus.make_known("w")
        lease = await hf.store.leases.acquire(LEASE_NAME, owner="w", ttl=60)
        for number in range(3):
            await hf.emit("order.placed", number, key="order:1")
        assert await hf._inside.bus.relay("w").turn(lease)
        await hf.store.leases.release(lease)
        await hf.emit("order.placed", 3, key="order:1")
    async with after as hf, hf.worker({"billing": 5}):
        await until(lambda: len(hf.got) >= 4)
        await hf.emit("order.placed", 4, key="order:1")
        await until(lambda: len(hf.got) >= 5)
        assert await hf.outbox.groups() == []  # nothing is kept for who reads elsewhere
    assert hf.got == [0, 1, 2, 3, 4]


async def test_what_another_publishes_before_it_knows_of_the_broker_is_not_lost(url, stock, broker):
    """It marks events as published, which no broker has, for a second or so after a group has begun to read elsewhere."""
    async with billing(url) as before:
        await before._inside.bus.make_known("w")
    async with stocktaker(stock), billing(url, MemoryTransport(broker)) as hf:
        await stock.emit("order.placed", 0)
        await until(lambda: stock.heard)  # it publishes, and has the lease
        with heard("relay.left_to_others") as notes:
            async with hf.worker({"billing": 5}, lease=1.5):
                number = 0
                while not notes:
                    number += 1
                    await stock.emit("order.placed", number, key="order:1")
                    await asyncio.sleep(0.01)
                await until(lambda: len(hf.got) > number)
    assert hf.got == list(range(number + 1))


async def test_a_group_that_reads_from_a_broker_leaves_no_place_in_the_log_behind(url, broker, monkeypatch):
    """A worker without the broker made one: read weeks later, after the inbox has forgotten, all behind it would be handled again."""
    monkeypatch.setattr(consumer, "_SEEN_EVERY", 0.1)
    async with billing(url, MemoryTransport(broker)) as hf, hf.worker({"billing": 5}, lease=1.5):
        await hf.emit("order.placed", 0)
        await until(lambda: hf.got)
        async with billing(url) as without:
            await without._inside.bus.make_known("w")
        await hf.emit("order.placed", 1)

        async def is_gone():
            return await hf.outbox.groups() == []

        await until(is_gone)
        await until(lambda: len(hf.got) == 2)
        await hf.emit("order.placed", 2)
        await until(lambda: len(hf.got) == 3)
    assert hf.got == [0, 1, 2]


async def test_two_brokers_on_one_database_are_told(url, shop, monkeypatch):
    monkeypatch.setattr(findings, "LATE", 0.0)
    async with Holdfast(url, transport=Other(MemoryBroker())) as other:
        other.event("bill.paid", unheard=True)
        async with other.worker(), shop.worker():
            pass
        await other.emit("bill.paid")
        told = {each.check: each for each in await findings.examine(other.store)}
    assert told["brokers"].level == "bad" and "memory, other" in told["brokers"].found
    assert "forget-broker memory" in told["relay"].todo
