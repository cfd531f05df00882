"""Events on Redis: URLs and errors that are clear, a server that is full, read-only, loading or forgetful, and what it says of loss."""

from __future__ import annotations

import asyncio
import os
import re
from urllib.parse import urlsplit

import pytest
import redis.asyncio
from waiting import heard, until

from holdfast.kernel.errors import NotOpen, TransportUnavailable, UsageError
from holdfast.testing.conformance.transport_kit import (
    HELD,
    bodies,
    marks_of,
    messages,
    publish,
    take,
    take_all,
    texts_of,
)
from holdfast.transport.redis import RedisTransport
from tools.valkey import ValkeyServer
from tools.wire import Wire

TOPIC = "holdfast:events"


@pytest.fixture
async def opened():
    """Clients that are closed at the end."""
    made = []

    async def open_one(url, *, connected=True):
        transport = RedisTransport(url)
        made.append(transport)
        if connected:
            await transport.open()
        return transport

    yield open_one
    for transport in made:
        await transport.close()


@pytest.fixture
async def raw(own_valkey):
    async with redis.asyncio.Redis.from_url(own_valkey.url, decode_responses=True) as client:
        yield client


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://localhost", "redis://"),
        ("redis://", "no host"),
        ("redis://localhost/events", "is a number"),
        ("redis://localhost?colour=red", "'colour'"),
        ("redis://localhost?timeout=soon", "number of seconds"),
        ("redis://localhost?timeout=0", "0.1 to 600"),
        ("redis://localhost?topic=a%00b", "U+0000"),
        (7, "text"),
    ],
)
def test_a_url_that_is_wrong_is_told(url, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        RedisTransport(url)


async def test_no_secret_is_shown(own_valkey, raw, opened):
    await raw.config_set("requirepass", "right horse")
    wrong = f"redis://:wr0ng-horse@127.0.0.1:{own_valkey.port}/0"
    transport = await opened(wrong, connected=False)
    with pytest.raises(TransportUnavailable, match="password") as caught:
        await transport.open()
    assert "wr0ng" not in f"{transport!r} {caught.value} {caught.value.__cause__}"
    with pytest.raises(TransportUnavailable, match="password"):
        await (await opened(own_valkey.url, connected=False)).open()
    right = await opened(wrong.replace("wr0ng-horse", "right%20horse"))
    await publish(right, bodies(1))


async def test_nobody_there_is_told(opened):
    transport = await opened("redis://:s3cret@127.0.0.1:1/0", connected=False)
    with pytest.raises(TransportUnavailable, match="cannot be reached") as caught:
        await transport.open()
    assert "s3cret" not in str(caught.value)


async def test_a_key_that_is_no_stream(own_valkey, raw, opened):
    await raw.set(TOPIC, "mine")
    transport = await opened(own_valkey.url)
    for call in (
        lambda: transport.publish(messages(bodies(1))),
        lambda: transport.consumer("g", "m", redeliver_after=1),
        transport.groups,
        lambda: transport.trim(keep=0),
    ):
        with pytest.raises(TransportUnavailable, match="no stream"):
            await call()
    await publish(await opened(f"{own_valkey.url}?topic=other"), bodies(1))
    assert await raw.get(TOPIC) == "mine"


async def test_a_replica_accepts_nothing(own_valkey, raw, opened):
    transport = await opened(own_valkey.url)
    await raw.replicaof("127.0.0.1", 1)
    with pytest.raises(TransportUnavailable, match="no writes"):
        await transport.publish(messages(bodies(1)))
    await raw.replicaof("no", "one")
    await publish(transport, bodies(1))


async def test_after_a_fail_over_the_address_is_asked_again(own_valkey, raw, opened):
    """The old primary lives on as a replica, and hangs up on nobody: every write would be refused for ever."""
    newer = ValkeyServer()
    try:
        wire = Wire(own_valkey.url)
        async with wire.open(), redis.asyncio.Redis.from_url(newer.url, decode_responses=True) as promoted:
            transport = await opened(f"redis://127.0.0.1:{urlsplit(wire.url).port}/0")
            consumer = await transport.consumer("g", "m", redeliver_after=HELD)
            await promoted.replicaof("127.0.0.1", own_valkey.port)

            async def is_a_copy():
                return (await promoted.info("replication"))["master_link_status"] == "up"

            await until(is_a_copy)
            await promoted.replicaof("NO", "ONE")
            await raw.replicaof("127.0.0.1", newer.port)
            wire.lead_to(newer.url)
            batch = messages(bodies(2), "k")
            with pytest.raises(TransportUnavailable, match="no writes now") as caught:
                await transport.publish(batch)
            assert "XADD" not in str(caught.value), "the data of an event is nobody's business"
            assert await transport.publish(batch) == [None, None]
            assert texts_of(await take(consumer, 2)) == bodies(2)
            assert await promoted.xlen(TOPIC) == 2
    finally:
        newer.stop()


async def test_a_full_server_refuses_no_message_and_keeps_the_order(own_valkey, raw, opened):
    """It has no room now: that is no fault of the message, and none of its key may come before it."""
    transport = await opened(own_valkey.url)
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    await publish(transport, bodies(1), "k")
    await raw.set("filler", b"x" * 3_000_000)
    await raw.config_set("maxmemory", int((await raw.info("memory"))["used_memory"]) - 1_000_000)
    batch = messages([b"y" * 5_000, *bodies(2, 2)], "k")
    with pytest.raises(TransportUnavailable, match="no memory"):
        await transport.publish(batch)
    assert await raw.xlen(TOPIC) == 1
    await raw.delete("filler")
    assert await transport.publish(batch) == [None] * 3
    assert texts_of(await take(consumer, 4)) == [*bodies(1), batch[0].body, *bodies(2, 2)]


async def test_a_server_that_loads_is_waited_for(opened):
    server = ValkeyServer("--save", "3600 1")
    try:
        async with redis.asyncio.Redis.from_url(server.url) as raw:
            for number in range(100):
                await raw.set(f"key {number}", os.urandom(2_000))
            await raw.save()
        server.kill()
        server._options = ("--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024")
        server.start()
        transport = await opened(server.url, connected=False)
        with pytest.raises(TransportUnavailable, match="loads its data"):
            await transport.open()

        async def is_open():
            try:
                await transport.open()
            except TransportUnavailable:
                return False
            return True

        await until(is_open, 60)
    finally:
        server.stop()


async def test_what_may_be_lost_is_said_from_the_settings(own_valkey, raw, opened):
    async def loss(**settings):
        for name, value in settings.items():
            await raw.config_set(name.replace("_", "-"), value)
        return (await opened(own_valkey.url)).loss

    assert "everything" in await loss(appendonly="no", save="")
    assert "snapshot (save 3600 1" in await loss(save="3600 1")
    assert "second" in await loss(appendonly="yes", appendfsync="everysec")
    assert "half a minute" in await loss(appendfsync="no")
    always = await loss(appendfsync="always")
    assert always.startswith("nothing that was acknowledged")
    assert "fail-over to a replica" in always
    assert "last 7 s" in await loss(min_replicas_to_write="1", min_replicas_max_lag="7")
    assert "evict" not in always
    assert "allkeys-lru" in await loss(maxmemory="100mb", maxmemory_policy="allkeys-lru")


async def test_what_may_be_lost_is_not_known_where_settings_are_hidden(own_valkey, raw, opened):
    await raw.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-config")
    transport = await opened(f"redis://app:pw@127.0.0.1:{own_valkey.port}/0")
    assert "not known" in transport.loss
    await publish(transport, bodies(1))


async def test_who_waits_goes_on_after_everything_is_flushed(own_valkey, raw, opened):
    transport = await opened(own_valkey.url)
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    with heard("transport.group_lost") as notes:
        waiting = asyncio.create_task(consumer.fetch(10, wait=60))
        await until(lambda: blocked(raw))
        await raw.flushall()
        await publish(transport, bodies(2))
        found = texts_of(await waiting)
    found += texts_of(await take_all(consumer, bodies(2))) if len(found) < 2 else []
    assert found == bodies(2)
    assert [each["group"] for each in notes] == ["g"]


async def blocked(raw):
    return (await raw.info("clients"))["blocked_clients"]


@pytest.fixture
async def wired(own_valkey, opened):
    """A client whose answers can be lost on their way."""
    wire = Wire(own_valkey.url)
    async with wire.open():
        yield wire, await opened(f"redis://127.0.0.1:{urlsplit(wire.url).port}/0")


@pytest.mark.parametrize("again", [False, True])
async def test_what_was_in_a_lost_answer_comes_first_to_the_same_member(wired, again):
    """By the server's account it holds them: they came after redeliver_after only, behind newer ones of their key."""
    wire, transport = wired
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    await publish(transport, bodies(25), "k")
    held = await take(consumer, 3, limit=3)
    wire.lose_answer_to(b"EVALSHA")
    with pytest.raises(TransportUnavailable):
        await consumer.fetch(15, wait=1)
    assert wire.cuts == 1
    if again:  # such as after an hour without the broker: nobody could tell it that he leaves
        consumer, held = await transport.consumer("g", "m", redeliver_after=HELD), []
    await publish(transport, bodies(1, 26), "k")
    first = 4 - 3 * again
    found = await take(consumer, 27 - first, limit=12)
    assert texts_of(found) == bodies(27 - first, first)
    await consumer.ack(marks_of([*held, *found]))
    assert await consumer.fetch(10, wait=0.1) == []
    assert await transport.backlog("g") == 0


async def test_what_came_for_a_call_that_was_given_up_comes_first(own_valkey, raw, opened):
    transport = await opened(own_valkey.url)
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    for number in range(1, 30, 2):
        waiting = asyncio.create_task(consumer.fetch(10, wait=60))
        await until(lambda: blocked(raw))
        await publish(transport, bodies(1, number), "k")
        waiting.cancel()
        await asyncio.wait([waiting])
        found = [] if waiting.cancelled() else waiting.result()
        await publish(transport, bodies(1, number + 1), "k")
        found += await take(consumer, 2 - len(found))
        assert texts_of(found) == bodies(2, number)
        await consumer.ack(marks_of(found))


async def test_many_groups_that_wait_leave_a_connection_to_publish_by(own_valkey, raw, opened):
    transport = await opened(own_valkey.url)
    groups = [await transport.consumer(f"g{number}", "m", redeliver_after=HELD) for number in range(150)]
    waiting = [asyncio.create_task(group.fetch(10, wait=60)) for group in groups]

    async def all_wait():
        return await blocked(raw) == len(groups)

    await until(all_wait)
    await publish(transport, bodies(1))
    assert [texts_of(found) for found in await asyncio.gather(*waiting)] == [bodies(1)] * len(groups)


async def test_an_acknowledgement_after_a_flush_is_none(own_valkey, raw, opened):
    transport = await opened(own_valkey.url)
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    await publish(transport, bodies(1))
    (held,) = await take(consumer, 1)
    await raw.flushall()
    await consumer.ack([held.mark])
    await consumer.give_back([held.mark])
    await consumer.close()
    assert await transport.groups() == []


async def test_who_leaves_with_nothing_is_forgotten(own_valkey, raw, opened):
    transport = await opened(own_valkey.url)
    for member in ("one", "two"):
        consumer = await transport.consumer("g", member, redeliver_after=HELD)
        await publish(transport, bodies(1))
        (held,) = await take(consumer, 1)
        if member == "one":
            await consumer.ack([held.mark])
        await consumer.close()
    assert [each["name"] for each in await raw.xinfo_consumers(TOPIC, "g")] == ["two"]


async def test_members_that_died_long_ago_are_forgotten_unless_they_hold_something(own_valkey, raw, opened):
    transport = await opened(own_valkey.url)
    idle = await transport.consumer("g", "idle", redeliver_after=HELD)
    assert await idle.fetch(1, wait=0) == []
    await publish(transport, bodies(1))
    await take(await transport.consumer("g", "holder", redeliver_after=HELD), 1)
    await transport.trim(keep=0)
    assert len(await raw.xinfo_consumers(TOPIC, "g")) == 2
    await asyncio.sleep(0.01)
    await transport._link.run("trim", TOPIC, 0, 5, 0)
    assert [each["name"] for each in await raw.xinfo_consumers(TOPIC, "g")] == ["holder"]
    assert await raw.xlen(TOPIC) == 1


async def test_many_are_trimmed_in_parts(own_valkey, raw, opened):
    transport = await opened(own_valkey.url)
    async with raw.pipeline(transaction=False) as pipe:
        for _ in range(25_000):
            pipe.xadd(TOPIC, {"body": "x"})
        await pipe.execute()
    await transport.consumer("g", "m", redeliver_after=HELD)
    await publish(transport, bodies(1))
    await transport.trim(keep=0)
    assert await raw.xlen(TOPIC) == 1
    assert (await raw.info("commandstats"))["cmdstat_xtrim"]["calls"] > 3  # nobody waits long for one of them


async def test_what_is_not_ours_is_given_with_all_its_fields(own_valkey, raw, opened):
    transport = await opened(own_valkey.url)
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    await raw.xadd(TOPIC, {"colour": "red", "raw": b"\xff"})
    await raw.xadd(TOPIC, {"body": ""})
    found = await take(consumer, 2)
    assert [each.body for each in found] == [rb'[["colour","red"],["raw","\\xff"]]', b""]
    await consumer.ack([each.mark for each in found])


async def test_marks_of_others_are_refused(own_valkey, opened):
    transport = await opened(own_valkey.url)
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    for mark in ("", "5", "$JS.ACK.x", "1-1 2-2", 5, None):
        with pytest.raises(UsageError, match="mark"):
            await consumer.ack([mark])
        with pytest.raises(UsageError, match="mark"):
            await consumer.give_back([mark])


async def test_a_stream_can_be_read_by_people(own_valkey, raw, opened):
    transport = await opened(own_valkey.url)
    batch = messages([b'{"a":1}', b"{}"], "order:1")
    await transport.publish([batch[0], messages([b"{}"])[0]])
    (_, fields), (_, bare) = await raw.xrange(TOPIC)
    assert fields == {"id": batch[0].id, "type": "order.placed", "key": "order:1", "body": '{"a":1}'}
    assert "key" not in bare


async def test_a_transport_belongs_to_its_loop_and_its_process(own_valkey, monkeypatch):
    transport = RedisTransport(own_valkey.url)
    with pytest.raises(NotOpen):
        await transport.groups()

    async def opens():
        await transport.open()
        await transport.groups()
        await transport._link.client.connection_pool.disconnect()

    await asyncio.to_thread(asyncio.run, opens())  # a loop that has ended is left alone
    await transport.open()

    async def uses():
        with pytest.raises(UsageError, match="another event loop"):
            await transport.groups()

    await asyncio.to_thread(asyncio.run, uses())
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(NotOpen, match="forked"):
        await transport.groups()
    monkeypatch.undo()
    await transport.close()
