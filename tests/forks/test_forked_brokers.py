"""A forked child and the connections to Redis and NATS that it inherits: the parent goes on with them as if nothing had been."""

import gc
import uuid

import pytest
from running import in_child

from holdfast import Holdfast
from holdfast.fleet.redis import RedisGuards
from holdfast.fleet.redis_cache import RedisCache
from holdfast.transport.nats import NatsTransport
from holdfast.transport.redis import RedisTransport

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore::ResourceWarning")


async def client_of(redis):
    return await redis.client_id()


@pytest.mark.parametrize("make", [RedisGuards, RedisCache])
async def test_the_parents_redis_stays_as_it_is(valkey, make):
    shared = make(valkey.url)
    await shared.open()
    before = await client_of(shared._server._client)

    async def uses():
        await shared.open()
        own = await client_of(shared._server._client)
        gc.collect()
        await shared.close()
        return own

    assert in_child(uses) not in ("None", str(before))
    assert await client_of(shared._server._client) == before
    await shared.close()


async def test_the_parents_transport_to_redis_stays_as_it_is(valkey):
    transport = RedisTransport(valkey.url)
    await transport.open()
    before = await client_of(transport._link.client)

    async def uses():
        await transport.open()
        own = await client_of(transport._link.client)
        gc.collect()
        await transport.close()
        return own

    assert in_child(uses) not in ("None", str(before))
    assert await client_of(transport._link.client) == before
    await transport.close()


async def test_the_parents_transport_to_nats_stays_as_it_is(nats):
    transport = NatsTransport(nats.url)
    await transport.open()
    before = (await transport._link.connection()).client.client_id

    async def uses():
        await transport.open()
        own = (await transport._link.connection()).client.client_id
        gc.collect()
        await transport.close()
        return own

    assert in_child(uses) not in ("None", str(before))
    assert await transport.groups() is not None
    assert (await transport._link.connection()).client.client_id == before
    await transport.close()


async def test_a_program_with_guards_cache_and_broker_on_redis_opens_them_anew(url, valkey):
    name = uuid.uuid4().hex
    hf = Holdfast(url, guards=valkey.url, cache=valkey.url, transport=valkey.url)
    guard = hf.guard(f"g{name}", timeout=5)

    @hf.cached(fresh=60, stale=60, key=f"{name}:{{n}}")
    async def load(n: int) -> int:
        return n + 1

    async def use(n):
        async with hf:
            return await guard.call(load, n), await hf.outbox.backlogs() is not None

    async with hf:
        assert await load(1) == 2
        await hf.outbox.backlogs()
        assert in_child(lambda: use(5)) == "(6, True)"
        assert await load(5) == 6
        assert await hf.outbox.backlogs() is not None
