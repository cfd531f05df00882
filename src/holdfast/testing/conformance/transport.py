"""One suite for every transport: each test is named after a promise of docs/transports.md.

    class TestMyTransport(TransportConformance):
        @pytest.fixture
        def harness(self):
            return MyHarness()

`transport_faults.TransportFaultsConformance` adds what happens when the broker is frozen, killed, cut off or forgets.
"""

from __future__ import annotations

import asyncio

from holdfast.kernel.clock import sleep, timeout
from holdfast.kernel.errors import NotOpen, UsageError
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import raises
from holdfast.testing.conformance.transport_delivery import DeliveryConformance
from holdfast.testing.conformance.transport_kit import (
    HELD,
    LONG,
    SOON,
    bodies,
    firsts,
    marks_of,
    messages,
    publish,
    take,
    take_all,
    texts_of,
    trim,
)
from holdfast.transport.port import Message, Refused, Transport


class PublishingConformance(Conformance):
    async def test_a_group_gets_what_is_published_in_order(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m1", redeliver_after=HELD)
        wanted = bodies(250)
        await publish(store, wanted[:200], "order:1")
        await publish(store, wanted[200:], "order:1")
        found = await take(consumer, 250, limit=100)
        assert texts_of(found) == wanted
        assert not any(each.redelivered for each in found)
        assert len(set(marks_of(found))) == 250

    async def test_messages_of_one_key_stay_in_order_among_many(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m1", redeliver_after=HELD)
        batch = [
            Message(made.id, made.type, f"key {number % 7}" if number % 8 else None, made.body)
            for number, made in enumerate(messages(bodies(600)))
        ]
        assert await store.publish(batch) == [None] * 600
        found = texts_of(await take(consumer, 600))
        for number in range(7):
            mine = [made.body for made in batch if made.key == f"key {number}"]
            assert [text for text in found if text in set(mine)] == mine
        assert sorted(found) == sorted(made.body for made in batch)

    async def test_any_body_arrives_as_it_was_sent(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m1", redeliver_after=HELD)
        texts = [b"", b"\0", b"\r\n", b"{}", bytes(range(256)), "größe 🦊".encode(), b"x" * 100_000]
        await publish(store, texts, "k")
        assert texts_of(await take(consumer, len(texts))) == texts

    async def test_any_type_and_key_can_be_sent(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m1", redeliver_after=HELD)
        names = [
            "order.placed",
            "a",
            "two words",
            "..",
            ".a.",
            "*",
            ">",
            "a.>",
            "größe/🦊",
            "$JS.API",
            "x" * 200,
        ]
        batch = [Message(made.id, name, name, made.body) for name, made in zip(names, messages(bodies(len(names))), strict=True)]  # fmt: skip
        assert await store.publish(batch) == [None] * len(names)
        assert sorted(texts_of(await take(consumer, len(names)))) == sorted(made.body for made in batch)

    async def test_publishing_nothing_does_nothing(self, store: Transport) -> None:
        assert await store.publish([]) == []

    async def test_publishing_again_loses_and_refuses_nothing(self, store: Transport) -> None:
        """The relay does so when it does not know; whoever handles an event knows it by its id."""
        consumer = await store.consumer("billing", "m1", redeliver_after=HELD)
        batch = messages(bodies(3), "k")
        assert await store.publish(batch) == [None] * 3
        assert await store.publish(batch) == [None] * 3
        last = messages(bodies(1, 4), "k")
        await store.publish(last)
        found = await take_all(consumer, [last[0].body])
        assert firsts(texts_of(found)) == bodies(4)

    async def test_several_may_publish_at_once(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m1", redeliver_after=HELD)
        other = await self.second(store)
        wanted = [bodies(100, 1 + 100 * number) for number in range(4)]
        clients = [store, other, store, other]
        await asyncio.gather(
            *(publish(client, texts, f"k{texts[0]!r}") for client, texts in zip(clients, wanted, strict=True))
        )
        found = texts_of(await take(consumer, 400))
        for texts in wanted:
            assert [text for text in found if text in set(texts)] == texts

    async def test_what_is_too_large_is_refused_and_the_others_go_on(self, store: Transport) -> None:
        if self.bench.largest is None:
            return
        consumer = await store.consumer("billing", "m1", redeliver_after=HELD)
        made = messages([b"first", b"x" * self.bench.largest, b"behind", b"other", b"no key"])
        keys = ["k", "k", "k", "another", None]
        batch = [Message(each.id, each.type, key, each.body) for each, key in zip(made, keys, strict=True)]
        first, large, behind, *rest = await store.publish(batch)
        assert (first, rest) == (None, [None, None])
        assert isinstance(large, Refused)
        assert not large.behind
        assert "bytes" in large.reason
        assert isinstance(behind, Refused), "it would overtake the one that was refused"
        assert behind.behind
        await publish(store, [b"last"])
        found = texts_of(await take_all(consumer, [b"first", b"other", b"no key", b"last"]))
        assert b"behind" not in found
        assert len(found) == 4


class GroupsConformance(Conformance):
    async def test_groups_are_independent(self, store: Transport) -> None:
        first = await store.consumer("billing", "m", redeliver_after=HELD)
        second = await store.consumer("mail", "m", redeliver_after=HELD)
        await publish(store, bodies(5), "k")
        found = await take(first, 5)
        await first.ack(marks_of(found))
        assert texts_of(await take(second, 5)) == bodies(5)

    async def test_each_message_goes_to_one_member(self, store: Transport) -> None:
        other = await self.second(store)
        members = [
            await client.consumer("billing", f"m{number}", redeliver_after=HELD)
            for number, client in enumerate([store, other, store])
        ]
        await publish(store, bodies(90))
        found: list[bytes] = []
        async with timeout(LONG):
            while len(found) < 90:
                for member in members:
                    found += texts_of(await member.fetch(10, wait=0.2))
        assert sorted(found) == sorted(bodies(90))

    async def test_a_new_group_hears_what_comes_from_now_on(self, store: Transport) -> None:
        await publish(store, [b"before"])
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        await publish(store, [b"after"])
        assert texts_of(await take(consumer, 1)) == [b"after"]

    async def test_a_new_group_may_hear_all_that_is_kept(self, store: Transport) -> None:
        await publish(store, bodies(3))
        consumer = await store.consumer("billing", "m", redeliver_after=HELD, from_start=True)
        await publish(store, bodies(1, 4))
        assert texts_of(await take(consumer, 4)) == bodies(4)

    async def test_a_known_group_goes_on_where_it_was(self, store: Transport) -> None:
        first = await store.consumer("billing", "m1", redeliver_after=HELD)
        await publish(store, bodies(4))
        found = await take(first, 2, limit=2)
        await first.ack(marks_of(found))
        await first.close()
        for from_start in (True, False):
            again = await store.consumer("billing", "m2", redeliver_after=HELD, from_start=from_start)
            (one,) = await take(again, 1, limit=1)
            await again.ack([one.mark])
            assert one.body == bodies(1, 3 if from_start else 4)[0]

    async def test_any_name_is_a_group(self, store: Transport) -> None:
        names = ["billing", "Billing", "a.b", "two words", "*", ">", "a_b", "a_5fb", "größe/🦊", "x" * 500]
        found = [await store.consumer(name, "a member/of *.>", redeliver_after=HELD) for name in names]
        assert await store.groups() == sorted(names)
        await publish(store, [b"1"])
        for consumer in found:
            assert texts_of(await take(consumer, 1)) == [b"1"]

    async def test_groups_are_listed_and_forgotten(self, store: Transport) -> None:
        assert await store.groups() == []
        for name in ("mail", "billing"):
            await (await store.consumer(name, "m", redeliver_after=HELD)).close()
        assert await store.groups() == ["billing", "mail"]
        await store.forget("billing")
        await store.forget("billing")
        await store.forget("nobody")
        assert await store.groups() == ["mail"]

    async def test_a_forgotten_group_is_new_again(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        await publish(store, bodies(2))
        await consumer.ack(marks_of(await take(consumer, 2)))
        await consumer.close()
        await store.forget("billing")
        again = await store.consumer("billing", "m", redeliver_after=HELD, from_start=True)
        assert texts_of(await take(again, 2)) == bodies(2)

    async def test_a_backlog_counts_what_is_not_acknowledged(self, store: Transport) -> None:
        assert await store.backlog("billing") is None
        await publish(store, bodies(3))
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        assert await store.backlog("billing") in (0, None)
        await publish(store, bodies(5))
        assert await store.backlog("billing") in (5, None)
        found = await take(consumer, 2, limit=2)
        assert await store.backlog("billing") in (5, None)
        await consumer.ack(marks_of(found))
        assert await store.backlog("billing") in (3, None)

    async def test_a_wrong_call_is_refused(self, store: Transport) -> None:
        for group, member, seconds in (("", "m", 1.0), ("g", "", 1.0), ("g", "m", 0.0), ("g", "m", -1.0)):
            with raises(UsageError):
                await store.consumer(group, member, redeliver_after=seconds)
        assert await store.groups() == []
        consumer = await store.consumer("g", "m", redeliver_after=HELD)
        for limit, wait in ((0, 1.0), (-1, 1.0), (1, -1.0)):
            with raises(UsageError):
                await consumer.fetch(limit, wait=wait)


class KeepingConformance(Conformance):
    async def test_trim_forgets_only_what_every_group_has_acknowledged(self, store: Transport) -> None:
        one = await store.consumer("one", "m", redeliver_after=HELD)
        two = await store.consumer("two", "m", redeliver_after=HELD)
        idle = await store.consumer("idle", "m", redeliver_after=HELD)
        await publish(store, bodies(10), "k")
        await one.ack(marks_of(await take(one, 10)))
        found = await take(two, 6, limit=6)
        await two.ack([each.mark for each in found if each.body != bodies(1, 4)[0]])
        await trim(store)
        assert texts_of(await take(idle, 10)) == bodies(10), "nobody has fetched for this group"
        await store.forget("idle")
        await trim(store)
        fresh = await store.consumer("fresh", "m", redeliver_after=HELD, from_start=True)
        assert texts_of(await take(fresh, 7)) == bodies(7, 4)
        assert await fresh.fetch(10, wait=SOON) == []
        assert texts_of(await take(two, 4)) == bodies(4, 7)

    async def test_trim_keeps_what_is_young(self, store: Transport) -> None:
        consumer = await store.consumer("one", "m", redeliver_after=HELD)
        await publish(store, bodies(3))
        await consumer.ack(marks_of(await take(consumer, 3)))
        await store.trim(keep=3600)
        fresh = await store.consumer("fresh", "m", redeliver_after=HELD, from_start=True)
        assert texts_of(await take(fresh, 3)) == bodies(3)

    async def test_it_says_how_old_the_oldest_message_is(self, store: Transport) -> None:
        """A group may get it once more: so long it must be known that it had it."""
        assert await store.oldest() is None
        await publish(store, bodies(2))
        await sleep(0.3)
        await publish(store, bodies(1, 3))
        first = await store.oldest()
        assert first is not None
        assert 0.25 < first < LONG
        await trim(store)
        assert await store.oldest() is None

    async def test_trim_without_groups_and_without_messages(self, store: Transport) -> None:
        await trim(store)
        await publish(store, bodies(3))
        await trim(store)
        await publish(store, bodies(1, 4))
        fresh = await store.consumer("fresh", "m", redeliver_after=HELD, from_start=True)
        assert texts_of(await take(fresh, 1)) == bodies(1, 4)

    async def test_after_a_trim_groups_go_on(self, store: Transport) -> None:
        consumer = await store.consumer("one", "m", redeliver_after=HELD)
        for first in (1, 11, 21):
            await publish(store, bodies(10, first), "k")
            found = await take(consumer, 10)
            assert texts_of(found) == bodies(10, first)
            await consumer.ack(marks_of(found))
            await trim(store)
        assert await store.backlog("one") in (0, None)


class OpeningConformance(Conformance):
    async def test_a_closed_transport_says_so_and_can_be_opened_again(self, store: Transport) -> None:
        await publish(store, bodies(1))
        await store.close()
        await store.close()
        with raises(NotOpen):
            await store.publish(messages(bodies(1)))
        with raises(NotOpen):
            await store.groups()
        await store.open()
        await store.open()
        consumer = await store.consumer("billing", "m", redeliver_after=HELD, from_start=True)
        assert texts_of(await take(consumer, 1)) == bodies(1)

    async def test_everything_can_be_closed_in_any_order(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        await publish(store, bodies(1))
        assert len(await take(consumer, 1)) == 1
        await store.close()
        with raises(NotOpen):
            await consumer.fetch(1, wait=0)
        await consumer.close()
        await consumer.close()
        await store.close()

    async def test_it_says_what_may_be_lost(self, store: Transport) -> None:
        assert store.name
        assert len(store.loss) > 20, "in words"


class TransportConformance(
    PublishingConformance,
    GroupsConformance,
    DeliveryConformance,
    KeepingConformance,
    OpeningConformance,
):
    """All of it."""
