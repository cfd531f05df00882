"""Events on NATS: URLs and errors that are clear, a server without JetStream, streams of others, and what it says of loss."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.errors import NotOpen, TransportUnavailable, UsageError
from holdfast.kernel.portions import PORTION
from holdfast.testing.conformance.transport_kit import (
    HELD,
    bodies,
    marks_of,
    messages,
    publish,
    take,
    texts_of,
)
from holdfast.transport.nats import NatsTransport, _waves
from holdfast.transport.nats_api import ago
from holdfast.transport.nats_names import one_word, subject
from holdfast.transport.port import Message, Refused
from tools.local_server import free_port
from tools.nats_server import NatsServer

_topics = iter(range(1_000_000))


@pytest.fixture
async def opened():
    """Clients that are closed at the end."""
    made = []

    async def open_one(url, *, connected=True):
        transport = NatsTransport(url)
        made.append(transport)
        if connected:
            await transport.open()
        return transport

    yield open_one
    for transport in made:
        await transport.close()


@pytest.fixture
def topic():
    return f"own{next(_topics)}"


@pytest.fixture
def server():
    """What this yields makes servers that are stopped at the end."""
    made = []

    def make(*args, **options):
        made.append(NatsServer(*args, **options))
        return made[-1]

    yield make
    for each in made:
        each.stop()


async def ask(transport, verb, **asked):
    """JetStream itself, past the transport."""
    answer = await transport._link.ask(f"$JS.API.{verb}", msgspec.json.encode(asked))
    return msgspec.json.decode(answer.data)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://localhost", "nats://"),
        ("nats://", "no host"),
        ("nats://localhost:0", "no host, or a port"),
        ("nats://localhost:x", "no host, or a port"),
        ("nats://a,,b", "no host"),
        ("nats://localhost/events", "?topic="),
        ("nats://localhost?colour=red", "'colour'"),
        ("nats://localhost?timeout=soon", "number of seconds"),
        ("nats://localhost?creds=/no/such/file", "not there"),
        ("tls://localhost?ssl_ca_certs=/no/such/file", "cannot be read"),
        ("nats://[::1", "cannot be read"),
    ],
)
def test_a_url_that_is_wrong_is_told(url, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        NatsTransport(url)


def test_credentials_need_their_library(tmp_path):
    (tmp_path / "app.creds").write_text("-----BEGIN NATS USER JWT-----")
    with pytest.raises(UsageError, match=re.escape("nats-py[nkeys]")):
        NatsTransport(f"nats://localhost?creds={tmp_path}/app.creds")


@pytest.mark.parametrize("wrong", ["ada:wr0ng", "wr0ng"])
async def test_no_secret_is_shown(wrong, server, opened):
    nats = server('authorization { user: "ada", password: "right horse" }')
    transport = await opened(f"nats://{wrong}@127.0.0.1:{nats.port}", connected=False)
    with pytest.raises(TransportUnavailable, match="refuses the user") as caught:
        await transport.open()
    assert "wr0ng" not in f"{transport!r} {caught.value} {caught.value.__cause__}"
    right = await opened(f"nats://ada:right%20horse@127.0.0.1:{nats.port}")
    await publish(right, bodies(1))


async def test_what_the_user_may_not_do_is_told(server, opened):
    """NATS does not answer a request that it forbids."""
    users = (
        'users = [{user: ada, password: pw, permissions: {publish: ["order.>"], subscribe: ["_INBOX.>"]}}]'
    )
    nats = server(f"authorization {{ {users} }}")
    transport = await opened(f"nats://ada:pw@127.0.0.1:{nats.port}?timeout=0.5", connected=False)
    with pytest.raises(
        TransportUnavailable, match=re.escape("does not allow its user what is needed")
    ) as caught:
        await transport.open()
    assert "stream.info" in str(caught.value)


async def test_a_server_that_does_not_speak_tls_is_told_nothing(opened):
    """The driver would have gone on in plain text: whoever stands between could have read the password."""
    heard, is_over = [], asyncio.Event()

    async def plain(reader, writer):
        writer.write(b'INFO {"server_id":"x","version":"2.10.0","max_payload":1048576,"headers":true}\r\n')
        with suppress(ConnectionError):
            heard.append(await reader.read(1000))
        writer.close()
        is_over.set()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as false_server:
        port = false_server.sockets[0].getsockname()[1]
        transport = await opened(f"tls://ada:s3cret@127.0.0.1:{port}?timeout=2", connected=False)
        with pytest.raises(TransportUnavailable, match="does not speak TLS"):
            await transport.open()
        await is_over.wait()
    assert b"".join(heard) == b""


async def test_a_token_is_a_user_without_a_password(server, opened):
    nats = server('authorization { token: "s3cret" }')
    transport = await opened(f"nats://s3cret@127.0.0.1:{nats.port}")
    assert "s3cret" not in repr(transport)
    await publish(transport, bodies(1))


async def test_nobody_there_is_told(opened):
    transport = await opened("nats://ada:s3cret@127.0.0.1:1", connected=False)
    with pytest.raises(TransportUnavailable, match="cannot be reached") as caught:
        await transport.open()
    assert "s3cret" not in str(caught.value)


async def test_the_next_of_several_servers_is_tried(nats, opened, topic):
    transport = await opened(f"nats://127.0.0.1:{free_port()},127.0.0.1:{nats.port}?topic={topic}")
    await publish(transport, bodies(1))


async def test_a_server_without_jetstream_is_told(server, opened):
    transport = await opened(server(streams=False).url, connected=False)
    with pytest.raises(TransportUnavailable, match="nats-server -js"):
        await transport.open()


async def test_the_limit_of_the_server_counts(server, opened):
    transport = await opened(server("max_payload: 5000").url)
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    for size in (4_900, 4_970, 5_000, 5_001, 50_000):  # the header of the id counts as well
        (answer,) = await transport.publish(messages([b"x" * size]))
        assert (answer is None) == (size == 4_900), size
    assert len(await take(consumer, 1)) == 1
    assert await consumer.fetch(10, wait=0.1) == []


async def test_the_limit_of_the_stream_counts(nats, opened, topic):
    transport = await opened(f"{nats.url}?topic={topic}")
    await ask(
        transport,
        f"STREAM.UPDATE.{topic}",
        name=topic,
        subjects=[f"{topic}.>"],
        max_msg_size=1000,
        discard="new",
    )
    batch = messages([b"x" * 2000, b"y"], "k")
    with pytest.raises(TransportUnavailable):
        await transport.publish(batch)  # the setting is new
    large, behind = await transport.publish(batch)
    assert isinstance(large, Refused)
    assert not large.behind
    assert behind.behind


async def test_a_full_stream_refuses_no_message_and_keeps_the_order(nats, opened, topic):
    transport = await opened(f"{nats.url}?topic={topic}")
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    limits = {"name": topic, "subjects": [f"{topic}.>"], "discard": "new"}
    await ask(transport, f"STREAM.UPDATE.{topic}", max_msgs=2, **limits)
    batch = [*messages(bodies(4), "k"), *messages([b"other"])]
    with pytest.raises(TransportUnavailable, match="maximum messages"):
        await transport.publish(batch)
    await ask(transport, f"STREAM.UPDATE.{topic}", **limits)
    assert await transport.publish(batch) == [None] * 5
    found = texts_of(await take(consumer, 5))
    assert [text for text in found if text != b"other"] == bodies(4)


async def test_an_id_is_stored_once(nats, opened, topic):
    transport = await opened(f"{nats.url}?topic={topic}")
    batch = messages(bodies(3))
    for _ in range(3):
        assert await transport.publish(batch) == [None] * 3
    assert (await ask(transport, f"STREAM.INFO.{topic}"))["state"]["messages"] == 3


async def test_types_are_subjects(nats, opened, topic):
    transport = await opened(f"{nats.url}?topic={topic}")
    made = messages(bodies(2))
    await transport.publish(
        [Message(made[0].id, "order.placed", "k", b"1"), Message(made[1].id, "two words", "k", b"2")]
    )
    found = await ask(transport, f"STREAM.INFO.{topic}", subjects_filter=">")
    assert set(found["state"]["subjects"]) == {f"{topic}.order.placed", f"{topic}.two%20words"}


async def test_the_default_stream_and_its_settings(server, opened):
    transport = await opened(server().url)
    found = (await ask(transport, "STREAM.INFO.holdfast_2eevents"))["config"]
    assert found["subjects"] == ["holdfast.events.>"]
    assert (found["storage"], found["retention"], found["discard"]) == ("file", "limits", "new")
    assert "2 minutes" in transport.loss


async def test_a_stream_of_others_is_told(nats, opened, topic):
    other = await opened(f"{nats.url}?topic={topic}x")
    await ask(other, f"STREAM.CREATE.{topic}", name=topic, subjects=[f"{topic}.only"])
    transport = await opened(f"{nats.url}?topic={topic}", connected=False)
    with pytest.raises(TransportUnavailable, match=re.escape(f"Add {topic}.> to it")):
        await transport.open()
    await ask(other, f"STREAM.CREATE.{topic}y", name=f"{topic}y", subjects=[f"{topic}z.*"])
    overlapping = await opened(f"{nats.url}?topic={topic}z", connected=False)
    with pytest.raises(TransportUnavailable, match="overlap"):
        await overlapping.open()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"storage": "memory"}, ["everything", "in memory"]),
        ({"max_age": 3600 * 10**9, "duplicate_window": 10**9}, ["2 minutes", "max_age 3600 s"]),
        ({"max_msgs": 100, "max_bytes": 10**6}, ["max_msgs 100", "max_bytes 1000000"]),
        ({"max_msgs": 100, "discard": "new"}, ["nothing when only NATS"]),
        ({"retention": "interest"}, ["retention interest"]),
    ],
)
async def test_what_may_be_lost_is_said_from_the_settings(settings, words, nats, opened, topic):
    other = await opened(f"{nats.url}?topic={topic}x")
    made = await ask(other, f"STREAM.CREATE.{topic}", name=topic, subjects=[f"{topic}.>"], **settings)
    assert "error" not in made
    loss = (await opened(f"{nats.url}?topic={topic}")).loss
    assert all(word in loss for word in words), loss
    if settings.get("discard") == "new":
        assert "max_msgs" not in loss


async def test_readers_of_others_are_no_groups(nats, opened, topic):
    transport = await opened(f"{nats.url}?topic={topic}")
    config = {"durable_name": "dashboard", "ack_policy": "explicit"}
    await ask(transport, f"CONSUMER.CREATE.{topic}.dashboard", stream_name=topic, config=config)
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    await publish(transport, bodies(3))
    await consumer.ack(marks_of(await take(consumer, 3)))
    assert await transport.groups() == ["g"]
    await asyncio.sleep(0.01)
    await transport.trim(keep=0)
    assert (await ask(transport, f"STREAM.INFO.{topic}"))["state"]["messages"] == 0


async def test_a_header_of_others_is_not_taken_for_the_word_of_the_server(nats, opened, topic):
    """It was never given to anybody, nor acknowledged."""
    transport = await opened(f"{nats.url}?topic={topic}")
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    client = (await transport._link.connection()).client
    for status in ("404", "408", "409", "ok"):
        await client.publish(f"{topic}.x", b"", headers={"Status": status})
    await publish(transport, bodies(1))
    found = await take(consumer, 5)
    assert [each.headers.get("Status") for each in found] == ["404", "408", "409", "ok", None]
    await consumer.ack(marks_of(found))
    assert await transport.backlog("g") == 0


async def test_the_newest_word_on_redelivery_counts(nats, opened, topic):
    transport = await opened(f"{nats.url}?topic={topic}")
    await transport.consumer("g", "one", redeliver_after=5)
    await transport.consumer("g", "two", redeliver_after=7, from_start=True)
    found = await ask(transport, f"CONSUMER.INFO.{topic}.g")
    assert found["config"]["ack_wait"] == 7 * 10**9
    assert found["config"]["metadata"]["holdfast_group"] == "g"


async def test_many_groups_are_listed_on_all_pages(nats, opened, topic):
    transport = await opened(f"{nats.url}?topic={topic}")
    names = [f"g{number:03}" for number in range(300)]
    await asyncio.gather(*(transport.consumer(name, "m", redeliver_after=HELD) for name in names))
    assert await transport.groups() == names


async def test_a_message_larger_than_a_portion_comes_alone(server, opened):
    transport = await opened(server("max_payload: 20MB").url)
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    texts = [b"first", b"x" * (PORTION + 1), b"last"]
    await publish(transport, texts, "k")
    found = [texts_of(await consumer.fetch(100, wait=1)) for _ in range(3)]
    assert found == [[text] for text in texts]


async def test_an_acknowledgement_after_a_loss_is_none(nats, opened, topic):
    transport = await opened(f"{nats.url}?topic={topic}")
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    await publish(transport, bodies(1))
    (held,) = await take(consumer, 1)
    await ask(transport, f"STREAM.DELETE.{topic}")
    await consumer.ack([held.mark])
    await consumer.give_back([held.mark])
    await consumer.close()


async def test_marks_of_others_are_refused(nats, opened, topic):
    transport = await opened(f"{nats.url}?topic={topic}")
    consumer = await transport.consumer("g", "m", redeliver_after=HELD)
    for mark in ("", "5", "1-1", "$JS.ACK.a b", "$JS.API.STREAM.DELETE.x", "$JS.ACK.>", 5, None):
        with pytest.raises(UsageError, match="mark"):
            await consumer.ack([mark])
        with pytest.raises(UsageError, match="mark"):
            await consumer.give_back([mark])


async def test_a_transport_belongs_to_its_loop_and_its_process(nats, topic, monkeypatch):
    transport = NatsTransport(f"{nats.url}?topic={topic}")
    with pytest.raises(NotOpen):
        await transport.groups()
    await transport.open()

    async def uses():
        with pytest.raises(UsageError, match="another event loop"):
            await transport.groups()
        with pytest.raises(UsageError, match="another event loop"):
            await transport.open()

    await asyncio.to_thread(asyncio.run, uses())
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(NotOpen, match="forked"):
        await transport.groups()
    monkeypatch.undo()
    await transport.close()


@settings(deadline=None)
@given(st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=30))
def test_of_a_key_one_message_is_under_way_at_a_time(keys):
    batch = [
        Message(made.id, made.type, key, made.body)
        for made, key in zip(messages(bodies(len(keys))), keys, strict=True)
    ]
    waves = list(_waves(batch))
    for wave in waves:
        named = [made.key for made in wave if made.key is not None]
        assert len(named) == len(set(named))
    for key in set(keys):
        assert [made for wave in waves for made in wave if made.key == key] == [
            made for made in batch if made.key == key
        ]


words = st.text(st.sampled_from("aZ0-_.%*> 5fäé🦊$/"), min_size=1, max_size=12)
names = words | st.builds(lambda word, times: word * times, words, st.integers(1, 40))


@settings(deadline=None)
@given(names, names)
def test_two_names_are_never_one(one, two):
    assert (one_word(one) == one_word(two)) == (one == two)
    assert (subject(one) == subject(two)) == (one == two)
    assert re.fullmatch("[A-Za-z0-9_-]{1,255}", one_word(one))
    assert re.fullmatch(r"[^\s.*>]+(\.[^\s.*>]+)*", subject(one))


def test_long_ago_is_a_moment_too():
    from datetime import UTC, datetime

    now = datetime(2028, 2, 29, tzinfo=UTC)
    assert ago(now, 86_400) == datetime(2028, 2, 28, tzinfo=UTC)
    assert ago(now, 1e10).year == 1970
