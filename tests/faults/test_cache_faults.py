"""Caches: who loads is killed or frozen, and where values are kept is killed, frozen or emptied. No caller ever fails."""

from __future__ import annotations

import asyncio
import signal
import sys
import time

import pytest
from faultkit import HERE
from waiting import until

from holdfast import Holdfast
from tools.processes import Process, environment

BOUND = 10.0  # seconds that nobody waits for a cache, on however busy a machine; its own limit is 2


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def where(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url"), ""
    server = request.getfixturevalue("own_valkey").url if request.param == "redis" else ""
    return f"sqlite:///{tmp_path / 'c.db'}", server


def declare(hf, loads, answer="ours", **terms):
    options = {"fresh": 0.001, "stale": 60, "lease": 2, "wait": 60}

    @hf.cached(key="held:{user}", tags=("user:{user}",), **{**options, **terms})
    async def held(user: int) -> str:
        loads.append(user)
        return answer

    return held


class Holder:
    """Another process, in the middle of a load."""

    def __init__(self, where, folder):
        self.folder = folder
        command = [sys.executable, str(HERE / "cache_holder.py"), *where, str(folder)]
        self.process = Process(command, folder, environment([HERE]), folder / "log")

    async def loads(self):
        try:
            await until(lambda: (self.folder / "loading").exists(), 30)
        except AssertionError:
            raise AssertionError(self.process.log) from None


@pytest.fixture
async def holder(where, tmp_path):
    async with Holdfast(where[0]):
        pass
    made = []

    def make():
        made.append(Holder(where, tmp_path))
        return made[-1]

    yield make
    for each in made:
        each.process.destroy()


async def test_who_loads_is_killed(where, holder):
    """Callers elsewhere wait for its lease, and one of them loads."""
    loads = []
    async with Holdfast(where[0], cache=where[1] or None) as hf:
        held, theirs = declare(hf, loads, fresh=60), holder()
        await theirs.loads()
        callers = [asyncio.create_task(held(7)) for _ in range(20)]
        await asyncio.sleep(0.1)
        theirs.process.signal(signal.SIGKILL)
        assert await asyncio.gather(*callers) == ["ours"] * 20
        assert loads == [7]


async def test_who_refreshes_is_killed(where, holder):
    """The old value is served all the time; after the lease another refreshes."""
    loads = []
    async with Holdfast(where[0], cache=where[1] or None) as hf:
        held = declare(hf, loads)
        assert await held(7) == "ours"
        theirs = holder()
        await theirs.loads()
        assert [await held(7) for _ in range(20)] == ["ours"] * 20
        assert loads == [7], "another is at it"
        theirs.process.signal(signal.SIGKILL)

        async def refreshed():
            assert await held(7) == "ours"
            return len(loads) > 1

        await until(refreshed, 30)


async def test_who_loads_is_frozen_past_its_lease(where, holder):
    """What it brings when it wakes is refused."""
    loads = []
    async with Holdfast(where[0], cache=where[1] or None) as hf:
        held, theirs = declare(hf, loads, fresh=60), holder()
        await theirs.loads()
        theirs.process.signal(signal.SIGSTOP)
        assert await held(7) == "ours"
        (theirs.folder / "let-go").touch()
        theirs.process.signal(signal.SIGCONT)
        await theirs.process.says("over")
        assert [await held(7), loads] == ["ours", [7]]


async def test_who_loads_did_not_hear_of_an_invalidation(where, holder):
    """Its value may be from before: it is not kept, and loaded again."""
    async with Holdfast(where[0], cache=where[1] or None) as hf:
        theirs = holder()
        await theirs.loads()
        assert await hf.cache.invalidate_tags("user:7")
        (theirs.folder / "let-go").touch()
        await theirs.process.says("cache.outdated")
        await theirs.process.says("over")


async def test_the_redis_of_a_cache_is_killed(own_valkey, tmp_path):
    """Callers load for themselves; when it is back, values are kept again."""
    loads = []
    async with Holdfast(f"sqlite:///{tmp_path / 'c.db'}", cache=own_valkey.url) as hf:
        held = declare(hf, loads, fresh=60)
        assert [await held(7), await held(7), len(loads)] == ["ours", "ours", 1]
        own_valkey.kill()
        assert await asyncio.gather(*(held(7) for _ in range(200))) == ["ours"] * 200
        assert len(loads) < 20, "they share loads as far as they are at the same time"
        assert await held.refresh(7) == "ours"
        own_valkey.start()

        async def kept():
            before = len(loads)
            return [await held(7), await held(7)] == ["ours"] * 2 and len(loads) == before

        await until(kept, 30)


async def test_a_cache_begins_without_its_redis(own_valkey, tmp_path):
    own_valkey.kill()
    loads = []
    async with Holdfast(f"sqlite:///{tmp_path / 'c.db'}", cache=own_valkey.url) as hf:
        assert await declare(hf, loads)(7) == "ours"


async def test_the_redis_of_a_cache_is_frozen(own_valkey, tmp_path):
    """A caller waits a short while once; then it is not asked. What was invalidated meanwhile is gone when it wakes."""
    loads = []
    async with Holdfast(f"sqlite:///{tmp_path / 'c.db'}", cache=own_valkey.url) as hf:
        held = declare(hf, loads, fresh=60)
        assert await held(7) == "ours"
        own_valkey.freeze()
        try:
            began = time.monotonic()
            assert await asyncio.gather(*(held(7) for _ in range(50))) == ["ours"] * 50
            assert await hf.cache.invalidate_tags("user:7") is False
            assert time.monotonic() - began < BOUND
        finally:
            own_valkey.thaw()
        before = len(loads)
        await until(lambda: not any(hf.cache._places["redis"]._owed.values()), 30)

        async def kept():
            return [await held(7), await held(7)] == ["ours"] * 2 and len(loads) > before

        await until(kept, 30)


async def test_the_redis_of_a_cache_forgets_everything(own_valkey, tmp_path):
    """FLUSHALL, again and again: every answer is right, and nothing that was invalidated comes back."""
    import redis.asyncio

    raw, version = redis.asyncio.Redis.from_url(own_valkey.url), [0]
    async with Holdfast(f"sqlite:///{tmp_path / 'c.db'}", cache=own_valkey.url) as hf:

        @hf.cached(fresh=60, stale=60, key="v:{user}", tags=("user:{user}",))
        async def versioned(user: int) -> int:
            found = version[0]
            await asyncio.sleep(0)
            return found

        for turn in range(30):
            version[0] += 1
            assert await hf.cache.invalidate_tags("user:7")
            flushes = [raw.flushall()] if turn % 2 else []
            found = await asyncio.gather(*(versioned(7) for _ in range(20)), *flushes)
            assert set(found[:20]) == {version[0]}
    await raw.aclose()
