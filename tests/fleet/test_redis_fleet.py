"""Real processes on one Redis that is flushed, frozen, restarted or full: together they keep to rate and burst."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import msgspec
import pytest
import redis.asyncio

from holdfast.fleet.redis import RedisGuards
from holdfast.store.quota import DAY, Want
from tools.valkey import ValkeyServer

NODE = """
import asyncio, json, sys
from contextlib import suppress
from holdfast.fleet.redis import RedisGuards
from holdfast.kernel.errors import StoreUnavailable
from holdfast.store.quota import DAY, Return, Want

async def ask(guards, number):
    keys = ["a", "b"] if number % 2 else ["b", "a"]
    try:
        grants = await guards.take([Want("g", key, 1, 1 + number, 40, 20) for key in keys])
        for grant in grants:
            used = grant.units
            if used > 2:
                await guards.give_back([Return(grant, used / 2)])
                used /= 2
            if used:
                print(json.dumps([grant.key, grant.at, used]), flush=True)
    except StoreUnavailable:
        print(json.dumps(["", 0, 0]), flush=True)

async def main(url, number):
    guards = RedisGuards(url)
    with suppress(StoreUnavailable):  # it may be away just now
        await guards.open()
    end = asyncio.get_running_loop().time() + 2.5
    async def go_on():
        while asyncio.get_running_loop().time() < end:
            await ask(guards, number)
            await asyncio.sleep(0.01)
    await asyncio.gather(*(go_on() for _ in range(3)))
    await guards.close()
asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def nothing(server):
    pass


async def flush(server):
    async with redis.asyncio.Redis.from_url(server.url) as raw:
        await raw.flushall()


async def flush_scripts(server):
    async with redis.asyncio.Redis.from_url(server.url) as raw:
        await raw.script_flush()


async def restart(server):
    server.kill()
    await asyncio.sleep(0.1)
    server.start()


async def freeze(server):
    server.freeze()
    await asyncio.sleep(0.3)
    server.thaw()


async def let_buckets_be_full(server):
    """As after a long time: else nobody would miss what is flushed."""
    guards = RedisGuards(server.url)
    await guards.open()
    await guards.take([Want("g", "warm-up", 1, 1, 1, 1)])
    async with redis.asyncio.Redis.from_url(server.url) as raw:
        memory = msgspec.msgpack.decode(await raw.get("holdfast:memory"))
        memory["began"] = memory["known"] = memory["began"] - 30 * DAY
        await raw.set("holdfast:memory", msgspec.msgpack.encode(memory))
    await guards.close()


@pytest.mark.parametrize("accident", [nothing, flush, flush_scripts, restart, freeze])
async def test_processes_together_stay_within_rate_and_burst(accident, own_valkey):
    await let_buckets_be_full(own_valkey)
    command = [sys.executable, "-c", NODE, own_valkey.url]
    nodes = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, text=True) for number in range(3)
    ]
    for _ in range(2):
        await asyncio.sleep(0.7)
        await accident(own_valkey)
    lines = [line for node in nodes for line in node.communicate(timeout=60)[0].splitlines()]
    assert [node.returncode for node in nodes] == [0, 0, 0]
    for key in ("a", "b"):
        grants = sorted((at, used) for name, at, used in map(json.loads, lines) if name == key)
        assert sum(used for _, used in grants) >= 20 + 40 * 0.5, "most of it was granted"
        for start, (since, _) in enumerate(grants):
            used_up = 0.0
            for at, used in grants[start:]:
                used_up += used
                assert used_up <= 40 * (at - since) + 20 + 1e-3, f"{used_up} of {key} in {at - since} s"


async def test_a_server_that_evicts_grants_no_more(tmp_path):
    """Also when it really does it."""
    server = ValkeyServer("--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random")
    guards = RedisGuards(server.url)
    try:
        await let_buckets_be_full(server)
        await guards.open()
        async with redis.asyncio.Redis.from_url(server.url) as raw:
            (first,) = await guards.take([Want("g", "k", 1, 8, 0.001, 8)])
            assert first.units == 8
            for number in range(40):
                async with raw.pipeline(transaction=False) as pipe:
                    for place in range(200):
                        pipe.set(f"junk-{number}-{place}", "x" * 500)
                    await pipe.execute()
                (more,) = await guards.take([Want("g", "k", 1, 8, 0.001, 8)])
                assert more.units == 0
            assert int((await raw.info("stats"))["evicted_keys"]) > 1000
    finally:
        await guards.close()
        server.stop()


async def test_a_server_that_restarts_with_old_data_grants_no_more(own_valkey):
    """Also when it really does it."""
    await let_buckets_be_full(own_valkey)
    guards = RedisGuards(own_valkey.url)
    await guards.open()
    want = Want("g", "k", 1, 4, 0.001, 8)
    assert (await guards.take([want]))[0].units == 4
    async with redis.asyncio.Redis.from_url(own_valkey.url) as raw:
        await raw.save()
    assert (await guards.take([want]))[0].units == 4
    await restart(own_valkey)
    (grant,) = await guards.take([want])
    assert (grant.units, grant.wait > 900) == (0, True)
    await guards.close()
