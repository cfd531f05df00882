"""Messages of others: taken as they say it, dated when they do not, kept when nobody understands them, and read once more."""

from __future__ import annotations

import json

import pytest

from holdfast import Event, EventSettings, Holdfast, Tx
from holdfast.kernel.clock import now
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.store.event_records import NewStray
from holdfast.testing import drain
from holdfast.testing.memory import MemoryBroker, MemoryTransport
from holdfast.testing.relaying import move_events
from holdfast.transport.port import Message, Received

BROKERS = ["memory", "redis", "nats"]


@pytest.fixture
def transport(request):
    kind = request.param
    if kind == "memory":
        return MemoryTransport(MemoryBroker())
    server = request.getfixturevalue("valkey" if kind == "redis" else "nats")
    return f"{server.url}?topic=others{request.node.name.translate(dict.fromkeys(map(ord, '[].:-')))}"


@pytest.fixture
async def shop(url, transport):
    """A program that counts what it hears of a shop."""
    async with Holdfast(url, transport=transport, events=EventSettings(redeliver_after=1)) as hf:
        hf.seen = []

        @hf.on("shop.**", group="billing")
        async def handle(event: Event, tx: Tx) -> None:
            hf.seen.append(event)

        await move_events(hf)
        yield hf


async def put(hf, *bodies):
    """As another program would, which is not Holdfast."""
    transport = await hf._inside.bus.wire.ready()
    assert await transport.publish([Message(f"m{n}", "t", None, body) for n, body in enumerate(bodies)]) == [
        None
    ] * len(bodies)


def made(**more):
    return json.dumps(
        {"specversion": "1.0", "id": "7", "source": "/shop", "type": "shop.paid", "data": [1], **more}
    ).encode()


@pytest.mark.parametrize("transport", BROKERS, indirect=True)
async def test_events_of_others_need_neither_a_time_nor_a_number(shop):
    before = now()
    await put(shop, made(), made(id="8", sequence="a-b", partitionkey="k"), made(id="9", sequence="12"))
    await drain(shop, raise_dead=True)
    assert sorted((event.id, event.version) for event in shop.seen) == [("7", None), ("8", None), ("9", 12)]
    assert all(before <= event.time.timestamp() <= now() for event in shop.seen)
    assert {event.source for event in shop.seen} == {"/shop"}
    assert await shop.outbox.strays() == []


@pytest.mark.parametrize("transport", BROKERS, indirect=True)
async def test_a_stray_is_replayed_with_what_a_person_made_of_it(shop):
    await put(shop, b'{"id": 7, "total"')
    await drain(shop)
    [stray] = await shop.outbox.strays()
    with pytest.raises(PayloadError, match="not JSON"):
        await shop.outbox.replay_stray(stray.id)
    with pytest.raises(UsageError, match=r"other\.paid"):
        await shop.outbox.replay_stray(stray.id, message=made(type="other.paid"))
    assert [each.id for each in await shop.outbox.strays()] == [stray.id], "it stays until it is delivered"
    assert await shop.outbox.replay_stray(stray.id, message=made(), by="ada")
    await drain(shop, raise_dead=True)
    assert [(event.id, event.time.timestamp()) for event in shop.seen] == [("7", pytest.approx(stray.at))]
    assert await shop.outbox.strays() == []
    assert not await shop.outbox.replay_stray(stray.id, message=made())
    [entry] = await shop.store.audit.find(subject=f"stray:{stray.id}")
    assert (entry.actor, "replayed as event /shop 7" in entry.after) == ("ada", True)


@pytest.mark.parametrize("transport", ["memory"], indirect=True)
async def test_what_was_delivered_before_a_crash_is_not_handled_twice(shop):
    """Whoever replays may die between the delivery and the end of the stray."""
    await put(shop, made())
    await drain(shop, raise_dead=True)
    [stray] = await shop.store.strays.keep("memory", "billing", [NewStray(made(), "it could not be read")])
    assert await shop.outbox.replay_stray(stray)
    await drain(shop, raise_dead=True)
    assert len(shop.seen) == 1
    assert await shop.outbox.strays() == []


@pytest.mark.parametrize("transport", ["nats"], indirect=True)
async def test_the_headers_of_a_stray_are_kept(shop):
    await put(shop, b"broken")
    await drain(shop)
    [stray] = await shop.outbox.strays()
    assert stray.raw == b"NATS/1.0\r\nNats-Msg-Id: m0\r\n\r\nbroken"
    with pytest.raises(PayloadError, match="not JSON"):
        await shop.outbox.replay_stray(stray.id)
    with_headers = NewStray(b"NATS/1.0\r\na: b\r\n\r\n" + made(), "why")
    [kept] = await shop.store.strays.keep("nats", "billing", [with_headers])
    assert await shop.outbox.replay_stray(kept), "the message is read without them"


@pytest.mark.parametrize("transport", ["memory"], indirect=True)
async def test_a_group_that_only_others_run_is_replayed_by_what_they_say(shop, url):
    from holdfast.events.members import Members

    [stray] = await shop.store.strays.keep("memory", "billing", [NewStray(made(), "why")])
    members = Members(shop.store, shop._inside.bus.groups, member="m")
    async with Holdfast(url) as other:
        with pytest.raises(UsageError, match="billing"):
            await other.outbox.replay_stray(stray)
        await members.announce()
        assert await other.outbox.replay_stray(stray)
    await drain(shop, raise_dead=True)
    assert [event.id for event in shop.seen] == ["7"]


def test_a_received_message_has_no_headers_unless_the_broker_has():
    assert Received(b"", "1").headers == {}


@pytest.mark.parametrize("transport", BROKERS, indirect=True)
async def test_an_unknown_type_waits_for_a_version_that_hears_it(shop, url):
    """An older program kept it; the newer one hears it, and a person has it delivered."""
    await put(shop, made(type="store.paid"), made(id="8"))
    await drain(shop, raise_dead=True)
    assert [event.id for event in shop.seen] == ["8"]
    [stray] = await shop.outbox.strays(type="store.paid")
    assert stray.raw.endswith(made(type="store.paid"))
    newer, seen = Holdfast(url), []

    @newer.on("store.*", group="billing")
    async def handle(event: Event) -> None:
        seen.append(event.id)

    async with newer:
        assert await newer.outbox.replay_stray(stray.id)
        await drain(newer, raise_dead=True)
    assert seen == ["7"]
    assert await shop.outbox.strays() == []
