"""What a transport promises while its broker is frozen, killed, cut off or forgets: nothing acknowledged is lost, nobody hangs."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from holdfast.kernel.clock import monotonic, sleep
from holdfast.kernel.errors import TransportUnavailable
from holdfast.kernel.loops import call_in_thread
from holdfast.kernel.spawn import spawn
from holdfast.kernel.telemetry import subscribe
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import raises
from holdfast.testing.conformance.transport_kit import (
    HELD,
    SOON,
    ack_stubbornly,
    bodies,
    firsts,
    in_time,
    marks_of,
    messages,
    publish,
    publish_stubbornly,
    stubborn,
    take,
    take_all,
    texts_of,
)
from holdfast.transport.port import Message, Transport

_MEMBER = "holdfast.testing.conformance.transport_member"


class TransportFaultsConformance(Conformance):
    async def test_a_frozen_broker_is_not_waited_for_without_end(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=SOON)
        hasty = await stubborn(lambda: self.bench.hasty(store))
        held = await stubborn(lambda: hasty.consumer("other", "m", redeliver_after=HELD))
        await publish(store, bodies(2), "k")
        found = await take_all(held, bodies(2), ack=False)
        await self.bench.freeze()
        try:
            with raises(TransportUnavailable):
                await in_time(hasty.publish(messages(bodies(2, 3), "k")))
            with raises(TransportUnavailable):
                await in_time(held.fetch(10, wait=0.1))
            with raises(TransportUnavailable):
                await in_time(held.ack(marks_of(found)))
            with raises(TransportUnavailable):
                await in_time(hasty.groups())
        finally:
            await self.bench.thaw()
        # What was on its way may arrive now: the order of first deliveries holds all the same.
        await publish_stubbornly(hasty, bodies(3, 3), "k")
        assert firsts(texts_of(await take_all(consumer, bodies(5)))) == bodies(5)
        assert {each.body for each in await take_all(held, bodies(3, 3))} >= set(bodies(3, 3))

    async def test_who_waits_for_messages_learns_that_the_broker_is_frozen(self, store: Transport) -> None:
        hasty = await stubborn(lambda: self.bench.hasty(store))
        consumer = await stubborn(lambda: hasty.consumer("billing", "m", redeliver_after=SOON))
        await self.bench.freeze()
        try:
            with raises(TransportUnavailable):
                await in_time(consumer.fetch(10, wait=1.5))
        finally:
            await self.bench.thaw()
        await publish_stubbornly(hasty, bodies(1))
        assert firsts(texts_of(await take_all(consumer, bodies(1)))) == bodies(1)

    async def test_many_who_call_a_frozen_broker_do_not_wait_for_each_other(self, store: Transport) -> None:
        hasty = await stubborn(lambda: self.bench.hasty(store))
        await self.bench.freeze()
        try:
            for _ in range(2):
                began = monotonic()
                answers = await asyncio.gather(*(hasty.groups() for _ in range(50)), return_exceptions=True)
                assert {type(answer) for answer in answers} <= {TransportUnavailable}
                assert monotonic() - began < 12, "one after the other they would take 25 s"
        finally:
            await self.bench.thaw()
        assert await stubborn(hasty.groups) == []

    async def test_what_was_published_survives_the_death_of_the_broker(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        await publish(store, bodies(20), "k")
        done = await take(consumer, 10, limit=10)
        await consumer.ack(marks_of(done))
        await self.bench.kill()
        with raises(TransportUnavailable):
            await in_time(store.publish(messages(bodies(1, 21), "k")))
        with raises(TransportUnavailable):
            await in_time(consumer.fetch(1, wait=0.1))
        await self.bench.start()
        await publish_stubbornly(store, bodies(1, 21), "k")
        found = firsts(texts_of(await take_all(consumer, bodies(11, 11))))
        if self.bench.keeps_acks:
            assert found == bodies(11, 11)
        else:
            assert [text for text in found if text not in bodies(10)] == bodies(11, 11)

    async def test_what_was_held_when_the_broker_died_comes_again(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=SOON)
        await publish(store, bodies(5), "k")
        await take_all(consumer, bodies(5), ack=False)
        await self.bench.kill()
        await self.bench.start()
        again = await stubborn(lambda: store.consumer("billing", "other", redeliver_after=SOON))
        found = firsts(texts_of(await take_all(again, bodies(5))))
        # One that forgets its newest acknowledgements may also forget to whom it gave the newest messages: those come first.
        assert (found if self.bench.keeps_acks else sorted(found)) == bodies(5)

    async def test_a_cut_connection_is_made_anew(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=SOON)
        for number in range(1, 4):
            waiting = spawn(stubborn(lambda: consumer.fetch(100, wait=30)), name="waiting")
            await self.bench.cut()
            await publish_stubbornly(store, bodies(1, number), "k")
            found = await in_time(waiting)
            assert bodies(1, number)[0] in texts_of(found)
            await ack_stubbornly(consumer, found)
        assert await stubborn(store.groups) == ["billing"]

    async def test_order_holds_while_connections_are_cut_and_the_broker_freezes(
        self, store: Transport
    ) -> None:
        """Ten rounds of trouble; then a new group reads all of it, and finds of each key every message in order."""
        hasty = await stubborn(lambda: self.bench.hasty(store))
        await stubborn(lambda: store.consumer("billing", "m", redeliver_after=HELD))
        publishing = spawn(_publish_batches(hasty, 40), name="publishing")
        for number in range(10):
            await sleep(0.02)
            await self.bench.cut()
            if number % 5 == 2:
                await self.bench.freeze()
                await sleep(0.6)
                await self.bench.thaw()
        await in_time(publishing)
        reader = await stubborn(lambda: store.consumer("reader", "m", redeliver_after=HELD, from_start=True))
        found = firsts(texts_of(await take_all(reader, bodies(800))))
        for number in range(4):
            assert [text for text in found if _key(text) == number] == bodies(800)[number::4]

    async def test_a_broker_that_is_not_there_is_unavailable(self, store: Transport) -> None:
        await store.close()
        await self.bench.kill()
        with raises(TransportUnavailable):
            await in_time(store.open())
        await self.bench.start()
        await stubborn(store.open)
        await publish(store, bodies(1))

    async def test_what_a_killed_process_held_goes_to_another(self, store: Transport) -> None:
        if self.bench.url is None:
            return
        await (await store.consumer("billing", "m", redeliver_after=1)).close()
        await publish(store, bodies(5), "k")
        member = _member(self.bench.url, "billing", "doomed", "1", "5")
        try:
            assert member.stdout is not None
            assert (await in_time(call_in_thread(member.stdout.readline))).strip() == b"holds 5"
        finally:
            member.kill()
            member.communicate()
        survivor = await store.consumer("billing", "survivor", redeliver_after=1)
        found = await take(survivor, 5)
        assert sorted(texts_of(found)) == bodies(5)
        assert all(each.redelivered for each in found)

    async def test_a_broker_that_forgets_is_begun_anew_from_the_start(self, store: Transport) -> None:
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        await publish(store, bodies(2))
        await consumer.ack(marks_of(await take(consumer, 2)))
        told: list[str] = []
        stop = subscribe(lambda name, fields: told.append(name) if fields.get("group") == "billing" else None)
        try:
            await self.bench.wipe(store)
            await publish_stubbornly(store, bodies(2, 3))
            assert firsts(texts_of(await take_all(consumer, bodies(2, 3)))) == bodies(2, 3)
        finally:
            stop()
        assert "transport.group_lost" in told
        assert await store.groups() == ["billing"]

    async def test_a_broker_that_has_lost_messages_takes_them_again(self, store: Transport) -> None:
        """The same ones, with the same ids: nobody says that it had them."""
        batch = messages(bodies(3), "k")
        assert await store.publish(batch) == [None] * 3
        await self.bench.wipe(store)
        assert await stubborn(lambda: store.publish(batch)) == [None] * 3
        reader = await store.consumer("billing", "m", redeliver_after=HELD, from_start=True)
        assert firsts(texts_of(await take_all(reader, bodies(3)))) == bodies(3)

    async def test_a_broker_that_has_forgotten_everything_can_be_joined(self, store: Transport) -> None:
        await (await store.consumer("billing", "m", redeliver_after=HELD)).close()
        await self.bench.wipe(store)
        consumer = await store.consumer("billing", "m", redeliver_after=HELD)
        await publish(store, bodies(2))
        assert texts_of(await take(consumer, 2)) == bodies(2)


def _member(*args: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", _MEMBER, *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603  our own module


async def _publish_batches(transport: Transport, count: int) -> None:
    """Of 20 messages each, of four keys, until the broker has them, as the relay does."""
    for batch in range(count):
        made = [
            Message(each.id, each.type, f"key {_key(each.body)}", each.body)
            for each in messages(bodies(20, 1 + 20 * batch))
        ]
        await stubborn(lambda made=made: transport.publish(made))  # type: ignore[misc]
        await sleep(0.005)


def _key(body: bytes) -> int:
    return (int(body[5:-1]) - 1) % 4
