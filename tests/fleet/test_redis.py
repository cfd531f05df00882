"""Guards on Redis: URLs and errors that are clear, a server that is frozen, killed or full, and keys that all end."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
import redis.asyncio
from waiting import until

from holdfast.fleet.redis import RedisGuards
from holdfast.kernel.errors import NotOpen, StoreError, StoreFull, StoreReadOnly, StoreUnavailable, UsageError
from holdfast.store.breakers import BreakerReport, BreakerState, Probe
from holdfast.store.quota import Grant, Return, Want
from tools.valkey import ValkeyServer
from tools.wire import Wire

GRANT = Grant("g", "k", 1.0, 0.0, 1.0, 0.0, 0, 5.0, 0.0)
VERBS = {
    "take": lambda guards: guards.take([Want("g", "k", 1, 1, 1, 8)]),
    "give_back": lambda guards: guards.give_back([Return(GRANT, 1)]),
    "slow": lambda guards: guards.slow("g", "k", rate=1, pause=1),
    "sped": lambda guards: guards.sped("g", "k", rate=2, version=1),
    "report": lambda guards: guards.report("n", [BreakerReport("g", BreakerState.OPEN)], ttl=5),
    "open_fleet": lambda guards: guards.open_fleet("g", generation=0, open_for=30),
    "close_fleet": lambda guards: guards.close_fleet("g", generation=0),
    "probe": lambda guards: guards.probe("g", "n", permits=1, lease=5),
    "probed": lambda guards: guards.probed(Probe("g", "n", 1, 5.0)),
}
LONGEST = 2.5  # seconds until a verb gives up


@pytest.fixture
async def opened():
    """Clients that are closed at the end."""
    made = []

    async def open_one(server, url=None, **options):
        guards = RedisGuards(url or server.url, **options)
        made.append(guards)
        await guards.open()
        return guards

    yield open_one
    for guards in made:
        await guards.close()


async def refusals(guards):
    """What each verb raises, all at once, and how long that took."""
    began = time.monotonic()
    answers = await asyncio.gather(*(verb(guards) for verb in VERBS.values()), return_exceptions=True)
    return dict(zip(VERBS, answers, strict=True)), time.monotonic() - began


async def works(guards, key):
    (grant,) = await guards.take([Want("works", key, 1, 1, 1000, 8)])
    assert (grant.name, grant.key) == ("works", key)
    return grant


@pytest.mark.parametrize("verb", VERBS)
async def test_every_key_ends(verb, own_valkey, opened):
    guards = await opened(own_valkey, prefix="mine:")
    for each in VERBS if verb == "take" else (verb,):
        await VERBS[each](guards)
    async with redis.asyncio.Redis.from_url(own_valkey.url) as raw:
        async for key in raw.scan_iter("*"):
            assert key.startswith(b"mine:")
            assert 0 < await raw.pttl(key) <= 31 * 86_400_000


async def test_a_bucket_that_takes_an_age_to_fill_ends_all_the_same(valkey, opened):
    guards = await opened(valkey, prefix="aged:")
    (grant,) = await guards.take([Want("g", "k", 1e-9, 1e9, 1e-9, 1e9)])
    assert grant.rate == 1e-9
    assert (await guards.slow("g", "k", rate=1e-9, pause=1e9)).paused == 86_400
    async with redis.asyncio.Redis.from_url(valkey.url) as raw:
        assert 0 < await raw.pttl("aged:bucket:1:g:k") <= 101 * 365.25 * 86_400_000


async def test_two_clients_race_for_permits(valkey, opened):
    one, two = await opened(valkey, prefix="race:"), await opened(valkey, prefix="race:")
    for _ in range(50):
        asks = [client.probe("g", f"n{n}", permits=3, lease=30) for n in range(4) for client in (one, two)]
        out = [probe for probe in await asyncio.gather(*asks) if probe is not None]
        assert len({probe.token for probe in out}) == len(out) == 3
        assert await asyncio.gather(*(two.probed(probe) for probe in out)) == [True] * 3


async def test_the_scripts_are_sent_again_when_the_server_has_forgotten_them(own_valkey, opened):
    guards = await opened(own_valkey)
    async with redis.asyncio.Redis.from_url(own_valkey.url) as raw:
        for verb in VERBS.values():
            await verb(guards)
            await raw.script_flush()
            await verb(guards)
        before = (await raw.info("commandstats"))["cmdstat_eval"]["calls"]
        for verb in VERBS.values():
            await verb(guards)
            await verb(guards)
        after = (await raw.info("commandstats"))["cmdstat_eval"]["calls"]
        assert after - before < len(VERBS), "a text is sent once"


async def test_a_dead_server_is_told_at_once_and_found_again(own_valkey, opened):
    guards = await opened(own_valkey)
    await asyncio.gather(*(works(guards, f"k{n}") for n in range(50)))  # several connections
    own_valkey.kill()
    for _ in range(2):
        answers, took = await refusals(guards)
        assert {verb: type(answer) for verb, answer in answers.items()} == dict.fromkeys(
            VERBS, StoreUnavailable
        )
        assert took < LONGEST
    own_valkey.start()
    await asyncio.gather(*(works(guards, f"k{n}") for n in range(50)))


async def test_connections_that_a_restart_has_ended_are_not_used(own_valkey, opened):
    guards = await opened(own_valkey)
    await asyncio.gather(*(works(guards, f"k{n}") for n in range(50)))
    own_valkey.kill()
    own_valkey.start()
    await asyncio.sleep(0.05)
    await asyncio.gather(*(works(guards, f"k{n}") for n in range(50)))


async def test_a_frozen_server_is_given_up_in_time_and_found_again(own_valkey, opened):
    guards = await opened(own_valkey)
    await works(guards, "a")
    own_valkey.freeze()
    for _ in range(2):
        answers, took = await refusals(guards)
        assert {verb: type(answer) for verb, answer in answers.items()} == dict.fromkeys(
            VERBS, StoreUnavailable
        )
        assert took < LONGEST
        assert "in time" in str(answers["take"])
    crowd = await asyncio.gather(*(works(guards, "a") for _ in range(30)), return_exceptions=True)
    assert {type(answer) for answer in crowd} == {StoreUnavailable}
    own_valkey.thaw()

    async def is_back():  # with all the connections that were begun meanwhile before it
        with suppress(StoreUnavailable):
            await works(guards, "a")
            return True

    await until(is_back)
    grants = await asyncio.gather(*(works(guards, f"k{n}") for n in range(50)))
    assert len(grants) == 50


async def test_whoever_is_cancelled_leaves_no_answer_to_others(own_valkey, opened):
    guards = await opened(own_valkey)
    for turn in range(10):
        own_valkey.freeze()
        asks = [asyncio.create_task(works(guards, f"old-{turn}-{n}")) for n in range(5)]
        await asyncio.sleep(0.02)
        for ask in asks:
            ask.cancel()
        await asyncio.gather(*asks, return_exceptions=True)
        own_valkey.thaw()
        for n in range(5):
            grant = await guards.probe(f"new-{turn}-{n}", "n", permits=1, lease=5)
            assert isinstance(grant, Probe)


async def test_a_server_that_is_not_there_yet_is_used_when_it_is(own_valkey):
    own_valkey.kill()
    guards = RedisGuards(own_valkey.url)
    with pytest.raises(NotOpen, match="open"):
        await works(guards, "a")
    with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{own_valkey.port}"):
        await guards.open()
    own_valkey.start()
    await works(guards, "a")
    await guards.close()
    await guards.close()
    with pytest.raises(NotOpen):
        await works(guards, "a")
    await guards.open()
    await works(guards, "a")
    await guards.close()


async def test_a_wrong_password_is_told_without_the_right_or_the_wrong_one():
    server = ValkeyServer("--requirepass", "right-one")
    try:
        for credentials, words in ((":wr%C3%B6ng@", "password"), ("ada:wr%C3%B6ng@", "ada"), ("", "URL")):
            guards = RedisGuards(f"redis://{credentials}127.0.0.1:{server.port}/0")
            with pytest.raises(StoreUnavailable, match=words) as caught:
                await guards.open()
            assert "wr" not in str(caught.value).replace("wrong", "").replace("WRONGPASS", "")
            assert "wr" not in repr(guards)
            with pytest.raises(StoreUnavailable):
                await works(guards, "a")
            await guards.close()
        guards = RedisGuards(f"redis://:right-one@127.0.0.1:{server.port}/1")
        await guards.open()
        await works(guards, "a")
        await guards.close()
        assert repr(guards) == f"RedisGuards('redis://:***@127.0.0.1:{server.port}/1')"
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (None, "None"),
        (5, "5"),
        ("", "redis://"),
        ("localhost:6379", "localhost"),
        ("postgresql://h/d", "postgresql"),
        ("redis://", "no host"),
        ("redis://:secret@h:abc/0", "cannot be read"),
        ("redis://:secret@h:99999/0", "cannot be read"),
        ("redis://:secret@h:0/0", "65535"),
        ("redis://:secret@h/one", "'one'"),
        ("redis://:secret@h/-1", "'-1'"),
        ("redis://:secret@h/0?socket_timeout=99", "'socket_timeout'"),
        ("redis://:secret@[::1/0", "cannot be read"),
        ("unix://", "socket"),
    ],
)
def test_a_bad_url_is_refused_at_once(url, words):
    with pytest.raises(UsageError) as caught:
        RedisGuards(url)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(caught.value.__cause__)


@pytest.mark.parametrize("prefix", ["", None, "a\0b", "x" * 501])
def test_a_prefix_is_a_name(prefix):
    with pytest.raises(UsageError, match="prefix"):
        RedisGuards("redis://h", prefix=prefix)


async def test_a_host_that_is_none_is_unavailable():
    for host in ("no-such-host.invalid", "x" * 70, "a..b"):
        guards = RedisGuards(f"redis://{host}:6379/0")
        with pytest.raises(StoreUnavailable, match=host[:10]):
            await guards.open()
        await guards.close()


async def test_what_is_given_is_checked_as_by_a_store(valkey, opened):
    guards, nan = await opened(valkey), float("nan")
    for ask, word in (
        (lambda: guards.take("x"), "'x'"),
        (lambda: guards.take([Want("g", "k", nan, 1, 1, 1)]), "nan"),
        (lambda: guards.give_back([GRANT]), "Return"),
        (lambda: guards.slow("a\0b", "k", rate=1), "U+0000"),
        (lambda: guards.slow("g", "k", rate=nan), "nan"),
        (lambda: guards.slow("g", "k", rate=1, pause=nan), "nan"),
        (lambda: guards.sped("g", "k", rate=1, version=2**63), str(2**63)),
        (lambda: guards.report("", [], ttl=5), "empty"),
        (lambda: guards.open_fleet("g", generation=-1, open_for=30), "-1"),
        (lambda: guards.open_fleet("g", generation=0, open_for=nan), "nan"),
        (lambda: guards.close_fleet(5, generation=0), "5"),
        (lambda: guards.probe("g", "n", permits=0, lease=5), "0"),
        (lambda: guards.probed("p"), "'p'"),
    ):
        with pytest.raises(UsageError) as caught:
            await ask()
        assert word in str(caught.value)


async def test_the_largest_numbers_come_back_as_they_are(valkey, opened):
    guards = await opened(valkey, prefix="large:")
    top = 2**63 - 1
    await guards.report(
        "n1", [BreakerReport("g", BreakerState.OPEN, top, 0.1, top, top - 1, top - 2)], ttl=3e9
    )
    (told,) = await guards.report("n2", [BreakerReport("g", BreakerState.CLOSED)], ttl=0.001)
    (said,) = told.others
    assert (said.generation, said.open_for, said.calls, said.failures, said.slow) == (
        top,
        0.1,
        top,
        top - 1,
        top - 2,
    )
    assert not await guards.open_fleet("g", generation=top - 1, open_for=1)
    assert not await guards.probed(Probe("g", "n", top, 5.0))


async def test_a_full_server_is_told_as_such():
    server = ValkeyServer("--maxmemory", "500kb", "--maxmemory-policy", "noeviction")
    guards = RedisGuards(server.url)
    try:
        await guards.open()
        with pytest.raises(StoreFull, match="memory"):
            await works(guards, "a")
    finally:
        await guards.close()
        server.stop()


async def test_a_replica_takes_no_writes(own_valkey, opened):
    guards = await opened(own_valkey)
    async with redis.asyncio.Redis.from_url(own_valkey.url) as raw:
        await raw.replicaof("127.0.0.1", "1")
        with pytest.raises((StoreReadOnly, StoreUnavailable)):
            await works(guards, "a")
        await raw.replicaof("NO", "ONE")
    await works(guards, "a")


async def test_after_a_fail_over_the_address_is_asked_again(own_valkey, opened):
    """The old primary lives on as a replica, and hangs up on nobody."""
    newer = ValkeyServer()
    wire = Wire(own_valkey.url)
    try:
        async with wire.open(), redis.asyncio.Redis.from_url(own_valkey.url) as raw:
            guards = await opened(own_valkey, f"redis://127.0.0.1:{urlsplit(wire.url).port}/0")
            await works(guards, "a")
            await raw.replicaof("127.0.0.1", newer.port)
            wire.lead_to(newer.url)
            with pytest.raises((StoreReadOnly, StoreUnavailable)):
                await works(guards, "a")
            await works(guards, "a")
            await guards.close()
    finally:
        newer.stop()


async def test_who_may_not_ask_how_the_server_is_gets_what_was_earned(own_valkey, opened):
    """Without INFO nobody can tell whether a bucket was evicted: no new one is full."""
    async with redis.asyncio.Redis.from_url(own_valkey.url) as raw:
        await raw.execute_command("ACL", "SETUSER", "ada", "on", ">pw", "~holdfast:*", "+@all", "-info")
        await raw.execute_command("ACL", "SETUSER", "bob", "on", ">pw", "~other:*", "+@all")
    guards = await opened(own_valkey, f"redis://ada:pw@127.0.0.1:{own_valkey.port}/0")
    assert (await works(guards, "a")).units == 0
    await asyncio.sleep(0.05)
    assert (await works(guards, "a")).units == 1
    assert (await works(guards, "b")).units == 0
    stranger = await opened(own_valkey, f"redis://bob:pw@127.0.0.1:{own_valkey.port}/0")
    with pytest.raises(StoreError, match="allow"):
        await works(stranger, "a")


def test_connections_belong_to_one_loop_and_one_process(valkey):
    guards = RedisGuards(valkey.url)
    with asyncio.Runner() as first:
        first.run(guards.open())
        with asyncio.Runner() as second, pytest.raises(UsageError, match="another event loop"):
            second.run(works(guards, "a"))
        child = os.fork()
        if child == 0:
            try:
                asyncio.Runner().run(works(guards, "a"))
            except NotOpen:
                os._exit(7)
            os._exit(8)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        first.run(works(guards, "a"))
        first.run(guards.close())


def test_what_is_on_a_key_of_ours_but_not_ours_is_refused(valkey):
    async def see():
        guards = RedisGuards(valkey.url, prefix="alien:")
        await guards.open()
        async with redis.asyncio.Redis.from_url(valkey.url) as raw:
            await raw.set("alien:bucket:1:g:k", "not packed", ex=60)
            with pytest.raises(StoreError, match="refused"):
                await guards.take([Want("g", "k", 1, 1, 1, 8)])
            await raw.delete("alien:bucket:1:g:k")
            await raw.rpush("alien:fleet:g", "x")
            with pytest.raises(StoreError, match="WRONGTYPE"):
                await guards.open_fleet("g", generation=0, open_for=5)
            await raw.delete("alien:fleet:g")
        await guards.close()

    asyncio.run(see())


async def test_a_lenient_bucket_is_full_where_others_are_empty(own_valkey, opened):
    """Who is counted for asking us is not kept out because the server was started; a burst stays a burst."""
    asked = {"least": 1, "most": 8, "rate": 0.1, "burst": 8}
    for key in ("first", "second"):
        guards = await opened(own_valkey)
        strict, lenient = await guards.take([Want("g", key, **asked), Want("h", key, **asked, lenient=True)])
        (again,) = await guards.take([Want("h", key, **asked, lenient=True)])
        assert (strict.units, lenient.units, again.units) == (0, 8, 0)
        own_valkey.kill()
        own_valkey.start()
