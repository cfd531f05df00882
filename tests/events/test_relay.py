"""The relay: in order, fenced, with poison set aside, and patient with a broker that is away."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from waiting import heard, until

from holdfast import EventSettings, Holdfast
from holdfast.events import redriving
from holdfast.events import relay as relaying
from holdfast.events.envelope import encode
from holdfast.events.relay import LEASE_NAME
from holdfast.kernel.errors import LeaseLost, TransportUnavailable, UsageError
from holdfast.testing.memory import MemoryBroker, MemoryTransport


class Picky(MemoryTransport):
    """An adapter that fails as a whole call when one message has a certain id."""

    def __init__(self, broker):
        super().__init__(broker)
        self.poison = set()
        self.calls = 0

    async def publish(self, messages):
        self.calls += 1
        if any(message.id in self.poison for message in messages):
            raise ValueError("a codec that chokes")
        return await super().publish(messages)


@pytest.fixture
def broker():
    return MemoryBroker(largest=2_000)


@pytest.fixture
async def shop(url, broker):
    async with Holdfast(url, transport=Picky(broker)) as hf:
        hf.event("order.placed", unheard=True)
        yield hf


def transport(hf):
    return hf._inside.bus.wire._transport


async def emit(hf, *keys, data=None):
    return [(await hf.emit("order.placed", data, key=key)).id for key in keys]


async def leased(hf, owner="relay", ttl=60):
    return await hf.store.leases.acquire(LEASE_NAME, owner=owner, ttl=ttl)


def sent(broker):
    return [message.id for message in broker.messages]


async def test_what_was_emitted_is_published_in_order_and_stamped(shop, broker):
    ids = await emit(shop, "a", "b", "a", None)
    lease = await leased(shop)
    assert await shop._inside.bus.relay("r").turn(lease)
    assert not await shop._inside.bus.relay("r").turn(lease)
    assert sent(broker) == ids
    assert [event.id for event in await shop.store.outbox.log()] == ids
    stored = [await shop.outbox.get(each) for each in ids]
    assert [message.body for message in broker.messages] == [encode(each) for each in stored]
    assert [event.position for event in stored] == [1, 2, 3, 4]


async def test_without_a_broker_the_stamp_is_the_publication(hf):
    hf.event("order.placed", unheard=True)
    ids = await emit(hf, "a", "a", "b")
    assert await hf._inside.bus.relay("r").turn(await leased(hf))
    assert [event.id for event in await hf.store.outbox.log()] == ids
    assert (await hf.outbox.lag()).waiting == 0


async def test_who_lost_the_lease_writes_nothing(shop, broker):
    """A relay that was paused past its lease: what it published comes twice, and its marks are refused."""
    [event_id] = await emit(shop, "a")
    old = await leased(shop, "old")
    await shop.store.leases.steal(LEASE_NAME, actor="test", reason="paused")
    new = await leased(shop, "new")
    assert not await shop._inside.bus.relay("old").turn(old)  # it is given nothing
    assert await shop.store.outbox.stamp(old, [event_id]) is None
    assert not await shop.store.outbox.failed(old, event_id, "late", rest=None)
    assert await shop._inside.bus.relay("new").turn(new)
    assert sent(broker) == [event_id]


async def test_a_lease_that_is_lost_between_publishing_and_stamping(shop, broker):
    [event_id] = await emit(shop, "a")
    old = await leased(shop, "old")
    publish = transport(shop).publish

    async def steal(messages):
        answers = await publish(messages)
        await shop.store.leases.steal(LEASE_NAME, actor="test", reason="paused")
        return answers

    transport(shop).publish = steal
    with pytest.raises(LeaseLost):
        await shop._inside.bus.relay("old").turn(old)
    transport(shop).publish = publish
    assert (await shop.outbox.get(event_id)).state == "waiting"
    await shop._inside.bus.relay("new").turn(await leased(shop, "new"))
    assert sent(broker) == [event_id, event_id]
    assert broker.messages[0] == broker.messages[1]


async def test_a_refused_event_is_quarantined_and_only_its_key_waits(shop, broker):
    [first] = await emit(shop, "a")
    [large] = await emit(shop, "a", data="x" * 3_000)
    rest = await emit(shop, "a", "b", None)
    lease = await leased(shop)
    with heard("relay.quarantined") as notes:
        await shop._inside.bus.relay("r").turn(lease)
    assert sent(broker) == [first, *rest[1:]]
    assert [note["event"] for note in notes] == [large]
    event = await shop.outbox.get(large)
    assert event.state == "quarantined" and "3," in event.error
    assert not await shop._inside.bus.relay("r").turn(lease)
    broker.largest = 10_000
    assert await shop.outbox.requeue([large], by="test") == [True]
    await shop._inside.bus.relay("r").turn(lease)
    assert sent(broker)[3:] == [large, rest[0]]  # in order


async def test_a_key_goes_on_without_what_a_person_dropped(shop, broker):
    [large] = await emit(shop, "a", data="x" * 3_000)
    [behind] = await emit(shop, "a")
    lease = await leased(shop)
    await shop._inside.bus.relay("r").turn(lease)
    assert sent(broker) == []
    assert await shop.outbox.drop([large], reason="too large", by="test") == [True]
    await shop._inside.bus.relay("r").turn(lease)
    assert sent(broker) == [behind]


async def test_by_policy_a_key_goes_on_without_its_poison(url, broker):
    async with Holdfast(url, transport=Picky(broker), events=EventSettings(poison="skip")) as hf:
        hf.event("order.placed", unheard=True)
        [large] = await emit(hf, "a", data="x" * 3_000)
        [behind] = await emit(hf, "a")
        lease = await leased(hf)
        relay = hf._inside.bus.relay("r")
        while await relay.turn(lease):
            pass
        assert sent(broker) == [behind]
        assert [event.id for event in await hf.outbox.find(state="quarantined")] == [large]


@pytest.mark.parametrize("is_mended", [True, False])
async def test_by_policy_a_key_goes_on_without_its_poison_and_not_before(url, broker, monkeypatch, is_mended):
    """One that failed once may still succeed: until it is given up, nothing of its key overtakes it."""
    monkeypatch.setattr(relaying, "_REST", relaying.Backoff(attempts=5, first=0.05, ceiling=0.05))
    async with Holdfast(url, transport=Picky(broker), events=EventSettings(poison="skip")) as hf:
        hf.event("order.placed", unheard=True)
        first, second = await emit(hf, "a", "a")
        transport(hf).poison = {first}
        lease, relay = await leased(hf), hf._inside.bus.relay("r")
        for _ in range(3):
            await relay.turn(lease)
        assert sent(broker) == []
        if is_mended:
            transport(hf).poison = set()

        async def second_is_sent():
            await relay.turn(lease)
            return second in sent(broker)

        await until(second_is_sent)
        assert sent(broker) == ([first, second] if is_mended else [second])
        assert (await hf.outbox.get(first)).state == ("published" if is_mended else "quarantined")


async def test_one_event_that_fails_alone_is_found_among_many(shop, broker, monkeypatch):
    monkeypatch.setattr(relaying, "_REST", relaying.Backoff(attempts=5, first=0.001, ceiling=0.001))
    ids = await emit(shop, *(f"k{n}" for n in range(20)))
    behind = await emit(shop, "k7")
    transport(shop).poison = {ids[7]}
    lease, relay = await leased(shop), shop._inside.bus.relay("r")
    await relay.turn(lease)
    assert sorted(sent(broker)) == sorted(each for each in ids if each != ids[7])
    assert transport(shop).calls < 15  # by halves, and not one by one
    event = await shop.outbox.get(ids[7])
    assert (event.state, event.tries) == ("waiting", 1)

    async def set_aside():
        await relay.turn(lease)
        return (await shop.outbox.get(ids[7])).state == "quarantined"

    await until(set_aside)
    event = await shop.outbox.get(ids[7])
    assert event.tries == 5 and "chokes" in event.error
    assert behind[0] not in sent(broker)


async def test_many_events_that_fail_do_not_stop_those_behind_them(shop, broker, monkeypatch):
    """Also when the first dozens do, and none has succeeded yet: then others are asked whose fault it is."""
    monkeypatch.setattr(relaying, "_REST", relaying.Backoff(attempts=5, first=0.001, ceiling=0.001))
    poison = await emit(shop, *(f"p{n}" for n in range(40)))
    behind = await emit(shop, *(f"p{n}" for n in range(40)))
    keys = [f"k{n % 7}" if n % 3 else None for n in range(60)]
    good = await emit(shop, *keys)
    transport(shop).poison = set(poison)
    lease, relay = await leased(shop), shop._inside.bus.relay("r")
    await relay.turn(lease)
    assert sorted(sent(broker)) == sorted(good)
    for key in {*keys} - {None}:
        of_key = [each for each, its in zip(good, keys, strict=True) if its == key]
        assert [each for each in sent(broker) if each in of_key] == of_key

    async def all_set_aside():
        await relay.turn(lease)
        return len(await shop.outbox.find(state="quarantined")) == 40

    await until(all_set_aside, 30)
    assert len(sent(broker)) == 60 and not {*behind}.intersection(sent(broker))


async def test_a_broker_that_takes_nothing_is_no_fault_of_the_events(shop, broker):
    ids = await emit(shop, *(f"k{n}" for n in range(30)))
    transport(shop).poison = set(ids)
    relay, lease = shop._inside.bus.relay("r"), await leased(shop)
    for _ in range(6):  # given fewer at a time, it would not be known from events that fail by themselves
        with pytest.raises(TransportUnavailable, match="takes no message"):
            await relay.turn(lease)
    assert {event.tries for event in await shop.outbox.find()} == {0}


async def test_while_the_broker_is_away_nobody_is_charged(shop, broker, monkeypatch):
    monkeypatch.setattr(relaying, "_AWAY", relaying.Backoff(first=0.01, ceiling=0.02))
    broker.stop()
    ids = await emit(shop, "a", "b", "a")
    async with shop.worker() as worker:
        await until(lambda: "stopped" in (worker.trouble() or ""))
        broker.start()
        await until(lambda: len(sent(broker)) >= 3)
        await until(lambda: worker.trouble() is None)

        async def all_stamped():
            return (await shop.outbox.lag()).position == 3

        await until(all_stamped)
    assert sent(broker) == ids
    assert {event.tries for event in await shop.outbox.find()} == {0}


async def test_a_broker_that_is_too_slow_for_many_at_once_gets_fewer(shop, broker, monkeypatch):
    """It never answered for a whole batch in time, and nothing was published for ever."""
    monkeypatch.setattr(relaying, "_AWAY", relaying.Backoff(first=0.01, ceiling=0.02))
    publish, asked = MemoryTransport.publish, []

    async def slow(self, messages):
        asked.append(len(messages))
        if len(messages) > 20:
            raise TransportUnavailable("It did not answer in time.")
        return await publish(self, messages)

    monkeypatch.setattr(MemoryTransport, "publish", slow)
    ids = await emit(shop, *("k" for _ in range(150)))
    async with shop.worker():
        await until(lambda: len(sent(broker)) == 150)
    assert sent(broker) == ids
    assert max(asked[2:]) <= 32, "it is tried with more after each success"


async def test_an_answer_that_was_lost_means_publishing_again_with_the_same_bytes(shop, broker):
    broker.faults.lost_answer = 1.0
    ids = await emit(shop, "a", "a")
    lease, relay = await leased(shop), shop._inside.bus.relay("r")
    with pytest.raises(TransportUnavailable):
        await relay.turn(lease)
    broker.faults.lost_answer = 0.0
    await relay.turn(lease)
    assert sent(broker) == ids + ids
    assert broker.messages[:2] == broker.messages[2:]


async def test_lag_and_rate_are_told(shop):
    with heard("relay.lag") as notes, heard("relay.published") as published:
        await emit(shop, "a", "b")
        async with shop.worker():
            await until(lambda: notes and sum(note["count"] for note in published) == 2)
    assert notes[0].keys() == {"waiting", "oldest", "quarantined", "position", "rate"}


async def test_the_lag_is_told_while_the_broker_is_away(shop, broker, monkeypatch):
    """That is when it grows."""
    monkeypatch.setattr(relaying, "_AWAY", relaying.Backoff(first=0.01, ceiling=0.02))
    monkeypatch.setattr(relaying, "_LAG_EVERY", 0.05)
    broker.stop()
    await emit(shop, "a", "b")
    with heard("relay.lag") as notes:
        async with shop.worker():
            await until(lambda: len(notes) >= 3)
    assert {(note["waiting"], note["rate"]) for note in notes} == {(2, 0.0)}
    assert notes[0]["oldest"] < notes[-1]["oldest"]


async def test_the_retained_range_is_published_again_to_a_broker_that_lost_it(shop, broker):
    ids = await emit(shop, "a", "b", "a", "c")
    await shop._inside.bus.relay("r").turn(await leased(shop))
    before = broker.messages
    broker.lose_tail(3)
    told = []
    assert await shop.outbox.redrive(after=1, told=lambda *far: told.append(far)) == 3
    assert broker.messages == before
    assert told == [(3, 4)]
    assert await shop.outbox.redrive(since=datetime(2020, 1, 1, tzinfo=UTC)) == 4
    assert sent(broker) == ids + ids
    assert await shop.outbox.redrive(since=datetime(2060, 1, 1, tzinfo=UTC)) == 0


async def test_redriving_leaves_out_what_the_broker_does_not_take_any_more_and_nothing_else(shop, broker):
    """Each of those behind it was published before: none of them has to wait."""
    broker.largest = 10_000
    [large] = await emit(shop, "a", data="x" * 3_000)
    rest = await emit(shop, "a", "b", "a")
    await shop._inside.bus.relay("r").turn(await leased(shop))
    broker.forget_everything()
    broker.largest = 2_000
    with heard("redrive.failed") as notes:
        assert await shop.outbox.redrive() == 3
    assert [note["event"] for note in notes] == [large]
    assert sorted(sent(broker)) == sorted(rest)
    assert [each for each in sent(broker) if each != rest[1]] == [rest[0], rest[2]]


async def test_redriving_says_how_far_it_came(shop, broker, monkeypatch):
    monkeypatch.setattr(redriving, "_PATIENCE", replace(redriving._PATIENCE, attempts=2, first=0.01))
    await emit(shop, "a", "b")
    await shop._inside.bus.relay("r").turn(await leased(shop))
    broker.stop()
    with pytest.raises(TransportUnavailable, match="so far: 0; go on with after=0"):
        await shop.outbox.redrive()


async def test_redriving_to_a_broker_that_takes_nothing_leaves_nothing_out(shop, broker, monkeypatch):
    monkeypatch.setattr(redriving, "_PATIENCE", redriving.Backoff(attempts=8, first=0.01, ceiling=0.02))
    ids = await emit(shop, *(f"k{n}" for n in range(30)))
    await shop._inside.bus.relay("r").turn(await leased(shop))
    transport(shop).poison = set(ids)
    with pytest.raises(TransportUnavailable, match="so far: 0; go on with after=0"):
        await shop.outbox.redrive()


async def test_redriving_to_a_slow_broker_goes_on_with_fewer_at_a_time(shop, broker, monkeypatch):
    monkeypatch.setattr(redriving, "_PATIENCE", redriving.Backoff(attempts=8, first=0.01, ceiling=0.02))
    ids = await emit(shop, *("k" for _ in range(60)))
    await shop._inside.bus.relay("r").turn(await leased(shop))
    broker.forget_everything()
    publish = MemoryTransport.publish

    async def slow(self, messages):
        if len(messages) > 5:
            raise TransportUnavailable("It did not answer in time.")
        return await publish(self, messages)

    monkeypatch.setattr(MemoryTransport, "publish", slow)
    assert await shop.outbox.redrive() == 60
    assert sent(broker) == ids


async def test_there_is_nothing_to_redrive_to_without_a_broker(hf):
    with pytest.raises(UsageError, match="no broker"):
        await hf.outbox.redrive()


async def test_pruning_keeps_what_the_settings_say(shop, broker):
    """Both of the outbox and the inbox; what is younger stays."""
    await emit(shop, "a")
    lease, relay = await leased(shop), shop._inside.bus.relay("r")
    await relay.turn(lease)
    assert await relay._prune() is False
    assert len(await shop.outbox.find()) == 1


async def test_what_groups_had_is_known_for_as_long_as_the_broker_has_it(shop, broker, monkeypatch):
    """Another program may keep messages for longer: a group that the broker has lost would get them once more."""
    asked = []

    async def prune(*, keep, limit):
        asked.append(keep)
        return 0

    monkeypatch.setattr(shop.store.inbox, "prune", prune)
    day, relay = 86_400, shop._inside.bus.relay("r")
    for oldest in (None, 9 * day, 30 * day):
        monkeypatch.setattr(broker, "oldest", lambda oldest=oldest: oldest)
        await relay._prune()
    assert asked == [14 * day, 14 * day, 30 * day + 3_600 + shop._inside.bus.settings.redeliver_after]
    broker.stop()
    with pytest.raises(TransportUnavailable):
        await relay._prune()
    assert len(asked) == 3, "who cannot ask forgets nothing"


def test_settings_are_checked():
    with pytest.raises(UsageError, match=r"inbox=604800 s is shorter.*Keep the inbox for 604803 s"):
        EventSettings(inbox=7 * 86_400)
    with pytest.raises(UsageError, match="keep must be from 604800"):
        EventSettings(keep=60)
    with pytest.raises(UsageError, match='poison is "wait" or "skip"'):
        EventSettings(poison="drop")
    with pytest.raises(UsageError, match="waiting"):
        EventSettings(waiting=0)


async def test_two_relays_take_turns(shop, broker):
    """Only one publishes, and when it leaves the other goes on."""
    one, two = shop._inside.bus.relay("one", ttl=3), shop._inside.bus.relay("two", ttl=3)
    await one.start()
    await until(lambda: one.is_leading)
    await two.start()
    first = await emit(shop, "a")
    await until(lambda: sent(broker))
    assert one.is_leading and not two.is_leading
    await one.stop()
    second = await emit(shop, "a")
    await until(
        lambda: set(sent(broker)) == {*first, *second}, 30
    )  # a slow machine may have published one twice
    await two.stop()
    await asyncio.sleep(0)
    assert not two.is_leading
