"""What a member of a group gets, gets again, and never gets again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from holdfast.kernel.clock import timeout
from holdfast.kernel.errors import TransportUnavailable
from holdfast.kernel.portions import PORTION
from holdfast.kernel.spawn import end, spawn
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.transport_kit import (
    HELD,
    LONG,
    SOON,
    bodies,
    firsts,
    in_time,
    marks_of,
    publish,
    take,
    take_all,
    texts_of,
)
from holdfast.transport.port import Consumer, Received, Transport


class DeliveryConformance(Conformance):
    async def test_no_more_is_fetched_than_there_is_room_for(self, store: Transport) -> None:
        """What is fetched and not acknowledged is kept from the other members."""
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        await publish(store, bodies(10))
        found: list[bytes] = []
        async with timeout(LONG):
            while len(found) < 9:
                some = await consumer.fetch(3, wait=1)
                assert len(some) <= 3
                found += texts_of(some)
        other = await store.consumer("billing", "other", redeliver_after=HELD)
        if self.bench.by_partition:
            await consumer.close()
            assert set(texts_of(await take_all(other, bodies(10)))) == set(bodies(10))
        else:
            found += texts_of(await take(other, 10 - len(found)))
            assert sorted(found) == sorted(bodies(10))

    async def test_large_messages_come_in_portions(self, store: Transport) -> None:
        """Or many of them would fill the memory of whoever reads."""
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        texts = [b"%d" % number + b"x" * 140_000 for number in range(10, 99)]
        await publish(store, texts, "k")
        assert await _in_portions(consumer, len(texts)) == texts

    async def test_what_comes_again_comes_in_portions_too(self, store: Transport) -> None:
        first = await store.consumer("billing", "first", redeliver_after=HELD)
        texts = [b"%d" % number + b"x" * 140_000 for number in range(10, 99)]
        await publish(store, texts, "k")
        assert texts_of(await take(first, len(texts))) == texts
        await first.close()
        again = await store.consumer("billing", "again", redeliver_after=HELD)
        assert await _in_portions(again, len(texts)) == texts

    async def test_nothing_new_is_an_empty_list(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        assert await in_time(consumer.fetch(5, wait=0)) == []
        assert await in_time(consumer.fetch(5, wait=0.1)) == []

    async def test_what_is_there_comes_without_waiting(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        await publish(store, bodies(2))
        assert texts_of(await take(consumer, 2)) == bodies(2)
        await publish(store, bodies(1, 3))
        found = await in_time(consumer.fetch(100, wait=1000))
        assert texts_of(found) == bodies(1, 3)

    async def test_who_waits_gets_a_message_when_it_comes(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        waiting = spawn(consumer.fetch(100, wait=1000), name="waiting")
        other = await self.second(store)
        await asyncio.sleep(0.05)  # most often it waits by now; it is no matter if not
        await publish(other, bodies(1))
        assert texts_of(await in_time(waiting)) == bodies(1)

    async def test_who_stops_waiting_loses_nothing(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=SOON)
        for number in range(1, 6):
            waiting = spawn(consumer.fetch(100, wait=1000), name="waiting")
            await asyncio.sleep(0.01 * number)
            await publish(store, bodies(1, number))
            await end(waiting)
        assert sorted(firsts(texts_of(await take_all(consumer, bodies(5))))) == bodies(5)

    async def test_what_is_held_too_long_comes_again_to_another(self, store: Transport) -> None:
        first = await store.consumer("billing", "first", redeliver_after=SOON)
        await publish(store, bodies(3), "k")
        assert texts_of(await take(first, 3)) == bodies(3)
        other = await self.second(store)
        second = await other.consumer("billing", "second", redeliver_after=SOON)
        found = await take(second, 3)
        assert sorted(texts_of(found)) == bodies(3)
        assert all(each.redelivered for each in found)

    async def test_what_was_held_too_long_comes_first_and_in_its_order(self, store: Transport) -> None:
        """Else newer messages of a key overtake those that a dead reader held."""
        first = await store.consumer("billing", "first", redeliver_after=SOON)
        await publish(store, bodies(20), "k")
        await take_all(first, bodies(20), ack=False)
        await publish(store, bodies(10, 21), "k")
        await asyncio.sleep(2 * SOON)  # so long it is his
        other = await self.second(store)
        second = await other.consumer("billing", "second", redeliver_after=SOON)
        found = await take_all(second, bodies(30), limit=7)
        assert firsts(texts_of(found)) == bodies(30)

    async def test_what_is_given_back_comes_first_and_in_its_order(self, store: Transport) -> None:
        """By one who cannot store it now, or who leaves."""
        first = await store.consumer("billing", "first", redeliver_after=HELD)
        await publish(store, bodies(20), "k")
        await first.give_back(marks_of(await take(first, 20)))
        await publish(store, bodies(5, 21), "k")
        assert texts_of(await take(first, 25)) == bodies(25)
        await first.close()
        other = await self.second(store)
        second = await other.consumer("billing", "second", redeliver_after=HELD)
        assert texts_of(await take(second, 25, limit=7)) == bodies(25)

    async def test_an_acknowledgement_is_that_of_its_group_alone(self, store: Transport) -> None:
        one = await store.consumer("one", "m", redeliver_after=SOON)
        two = await store.consumer("two", "m", redeliver_after=SOON)
        await publish(store, bodies(3))
        await take_all(two, bodies(3), ack=False)
        await take_all(one, bodies(3))
        assert {each.body for each in await take_all(two, bodies(3))} == set(bodies(3))

    async def test_what_is_acknowledged_never_comes_again(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=SOON)
        await publish(store, bodies(5))
        found = await take_all(consumer, bodies(5), ack=False)
        await consumer.ack(marks_of(found))
        await consumer.ack(marks_of(found))
        await asyncio.sleep(2 * SOON)  # that nothing happens can only be seen in time
        assert await consumer.fetch(100, wait=SOON) == []
        assert await store.backlog("billing") in (0, None)

    async def test_acknowledging_one_leaves_the_others(self, store: Transport) -> None:
        """Where there are offsets, the gap must not be passed over."""
        consumer = await store.consumer("billing", "m", redeliver_after=SOON)
        await publish(store, bodies(3))
        found = {each.body: each.mark for each in await take_all(consumer, bodies(3), ack=False)}
        await consumer.ack([found[bodies(1, 2)[0]]])
        again = await take_all(consumer, [bodies(1)[0], bodies(1, 3)[0]])
        assert {each.body for each in again} >= {bodies(1)[0], bodies(1, 3)[0]}

    async def test_a_late_acknowledgement_counts(self, store: Transport) -> None:
        """It is stored, whoever has it now. A broker that cannot take it any more says so."""
        first = await store.consumer("billing", "first", redeliver_after=SOON)
        second = await store.consumer("billing", "second", redeliver_after=SOON)
        await publish(store, bodies(1))
        (late,) = await take(first, 1)
        await take_all(second, bodies(1), ack=False)
        with suppress(TransportUnavailable):
            await first.ack([late.mark])
            assert await store.backlog("billing") in (0, None)

    async def test_what_is_given_back_comes_at_once(self, store: Transport) -> None:
        first = await store.consumer("billing", "first", redeliver_after=HELD)
        other = await self.second(store)
        second = await other.consumer("billing", "second", redeliver_after=HELD)
        await publish(store, bodies(3), "k")
        members = [first, second]
        holder, found = await _taken_by_one_of(members, 3)
        await holder.give_back(marks_of(found)[:2])
        for _ in range(2):
            members.reverse()
            holder, again = await _taken_by_one_of(members, 2)
            assert texts_of(again) == bodies(2)
            await holder.give_back(marks_of(again))

    async def test_giving_back_what_is_acknowledged_does_nothing(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        await publish(store, bodies(2))
        found = await take(consumer, 2)
        await consumer.ack(marks_of(found))
        await consumer.give_back(marks_of(found))
        await consumer.give_back([])
        await consumer.ack([])
        assert await consumer.fetch(10, wait=SOON) == []

    async def test_who_leaves_gives_back_what_he_holds(self, store: Transport) -> None:
        first = await store.consumer("billing", "first", redeliver_after=HELD)
        await publish(store, bodies(4))
        found = await take(first, 3, limit=3)
        await first.ack([found[0].mark])
        await first.close()
        second = await store.consumer("billing", "second", redeliver_after=HELD)
        assert sorted(texts_of(await take(second, 3))) == bodies(3, 2)


async def _taken_by_one_of(members: Sequence[Consumer], count: int) -> tuple[Consumer, list[Received]]:
    """Whoever gets them: where members own partitions, messages of one key go to one of them."""
    async with timeout(LONG):
        while True:
            for member in members:
                if found := await member.fetch(count, wait=0.1):
                    return member, found if len(found) == count else [
                        *found,
                        *await take(member, count - len(found)),
                    ]


async def _in_portions(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    async with timeout(LONG):
        while len(found) < count:
            some = texts_of(await consumer.fetch(500, wait=1))
            assert sum(map(len, some)) < PORTION + 1_400_100
            found += some
    return found
