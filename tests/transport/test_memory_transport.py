"""The broker in memory keeps every promise of a transport, and breaks them only where it is told to."""

from __future__ import annotations

import pytest

from holdfast.kernel.errors import TransportUnavailable
from holdfast.kernel.reality import REALITY
from holdfast.testing.conformance import TransportConformance, TransportFaultsConformance
from holdfast.testing.conformance.transport_kit import (
    HELD,
    bodies,
    marks_of,
    messages,
    publish,
    take,
    texts_of,
)
from holdfast.testing.memory import Faults, MemoryBroker, MemoryTransport
from holdfast.transport.port import Message


class MemoryHarness:
    world = REALITY
    by_partition = False
    largest = 150_001
    keeps_acks = True
    url = None

    def __init__(self):
        self.broker = None

    async def open(self):
        self.broker = MemoryBroker(largest=150_000)
        return await self.second(None)

    async def second(self, transport):
        return await self._client(5.0)

    async def hasty(self, transport):
        return await self._client(0.1)

    async def _client(self, timeout):
        made = MemoryTransport(self.broker, timeout=timeout)
        await made.open()
        return made

    async def freeze(self):
        self.broker.freeze()

    async def thaw(self):
        self.broker.thaw()

    async def kill(self):
        self.broker.stop()

    async def start(self):
        self.broker.start()

    async def cut(self):
        self.broker.hang_up()

    async def wipe(self, transport):
        self.broker.forget_everything()

    async def close(self):
        pass


class TestMemory(TransportConformance):
    @pytest.fixture
    def harness(self):
        return MemoryHarness()


class TestBrokenMemory(TransportFaultsConformance):
    @pytest.fixture
    def harness(self):
        return MemoryHarness()


@pytest.fixture
async def transport():
    made = MemoryTransport(MemoryBroker())
    await made.open()
    return made


async def test_an_answer_that_is_lost_leaves_the_messages(transport):
    transport.broker.faults.lost_answer = 1
    with pytest.raises(TransportUnavailable):
        await transport.publish(messages(bodies(2)))
    assert [made.body for made in transport.broker.messages] == bodies(2)


async def test_duplicates_come_after_the_first_ones(transport):
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    transport.broker.faults.duplicate = 1
    await publish(transport, bodies(3), "k")
    assert texts_of(await take(consumer, 6)) == [*bodies(3), *bodies(3)]


async def test_a_lost_acknowledgement_brings_it_again(transport):
    consumer = await transport.consumer("g", "m", redeliver_after=0.01)
    await publish(transport, bodies(1))
    transport.broker.faults.lost_ack = 1
    await consumer.ack(marks_of(await take(consumer, 1)))
    transport.broker.faults.lost_ack = 0
    (again,) = await take(consumer, 1)
    assert again.redelivered
    await consumer.ack([again.mark])
    assert await transport.backlog("g") == 0


async def test_a_message_may_come_again_though_it_is_held(transport):
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    transport.broker.faults.redelivery = 1
    await publish(transport, bodies(2))
    found = await take(consumer, 4)
    assert texts_of(found) == [*bodies(2), *bodies(2)]
    await consumer.ack(marks_of(found))
    assert await consumer.fetch(5, wait=0) == []


async def test_reordering_leaves_the_order_of_each_key(transport):
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    transport.broker.faults.reordering = 1
    made = messages(bodies(60))
    batch = [Message(each.id, each.type, f"k{number % 3}", each.body) for number, each in enumerate(made)]
    await transport.publish(batch)
    found = texts_of(await take(consumer, 60))
    assert found != bodies(60)
    for number in range(3):
        mine = bodies(60)[number::3]
        assert [text for text in found if text in mine] == mine


async def test_a_lost_tail_is_gone_for_every_group_and_its_numbers_do_not_return(transport):
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    await publish(transport, bodies(5))
    held = await take(consumer, 4)
    lost = transport.broker.lose_tail(2)
    assert [made.body for made in lost] == bodies(2, 4)
    await transport.publish(lost)
    assert texts_of(await take(consumer, 2)) == bodies(2, 4), "they are driven to it again"
    await consumer.ack(marks_of(held))
    assert await transport.backlog("g") == 2, "an old mark acknowledges nothing new"


async def test_faults_are_off_unless_switched_on():
    assert MemoryBroker().faults == Faults()
    assert not any(getattr(Faults(), name) for name in Faults.__struct_fields__)
