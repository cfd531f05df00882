"""Redis forgets, or remembers what it should not: nothing that was invalidated comes back, and a broken entry is a miss."""

from __future__ import annotations

from contextlib import contextmanager

import msgspec
import pytest
from cache_harness import RedisCacheHarness

from holdfast.kernel.errors import StoreFull, UsageError
from holdfast.store.cache_records import Entry
from holdfast.testing.conformance.cache import begin, keep, put, value
from holdfast.testing.conformance.harness import event_loop


class Raw:
    """The keys of one harness, behind the cache's back."""

    def __init__(self, harness):
        self.raw, self._prefix = harness.raw, f"{harness.prefix}cache:"

    async def keys(self, pattern="*"):
        return [key async for key in self.raw.scan_iter(f"{self._prefix}{pattern}")]

    async def drop(self, pattern="*"):
        for key in await self.keys(pattern):
            await self.raw.delete(key)

    async def save(self):
        return {key: await self.raw.dump(key) for key in await self.keys()}

    async def restart_with(self, saved):
        """As after a loss of power: older data, and another run of the server."""
        await self.drop()
        for key, dump in saved.items():
            await self.raw.restore(key, 0, dump)
        key = f"{self._prefix}epoch"
        memory = msgspec.msgpack.decode(await self.raw.get(key))
        await self.raw.set(key, msgspec.msgpack.encode(memory | {"run": "another"}))

    def value(self, key="k"):
        return f"{self._prefix}value:{key}"


@contextmanager
def opened(valkey):
    harness = RedisCacheHarness(valkey)
    with event_loop(harness) as runner:
        try:
            yield runner.run(harness.open()), harness, runner.run
        finally:
            runner.run(harness.close())


def test_a_tag_that_was_evicted_takes_its_values_with_it(valkey):
    with opened(valkey) as (store, harness, run):
        run(keep(store, tags=("t",)))
        run(Raw(harness).drop("tag:*"))
        assert run(value(store)) is None
        run(keep(store, "2", tags=("t",)))
        assert run(value(store)) == "2"


def test_an_evicted_epoch_takes_everything_with_it(valkey):
    with opened(valkey) as (store, harness, run):
        run(keep(store))
        load = run(begin(store, "loading"))
        run(Raw(harness).drop("epoch"))
        assert run(value(store)) is None
        assert not run(put(store, load))
        run(keep(store, "2"))
        assert run(value(store)) == "2"


@pytest.mark.parametrize("by", ["key", "tag"])
def test_after_a_restart_with_old_data_no_invalidation_is_undone(valkey, by):
    with opened(valkey) as (store, harness, run):
        run(keep(store, "old", tags=("t",)))
        saved = run(Raw(harness).save())
        run(store.cache.invalidate(["k"]) if by == "key" else store.cache.invalidate_tags(["t"]))
        run(Raw(harness).restart_with(saved))
        run(harness.advance(store, 2))  # a second at most until somebody looks
        assert run(value(store)) is None
        run(keep(store, "new", tags=("t",)))
        assert run(value(store)) == "new"


def test_a_load_from_before_a_restart_is_refused(valkey):
    with opened(valkey) as (store, harness, run):
        load = run(begin(store, tags=("t",)))
        run(Raw(harness).restart_with(run(Raw(harness).save())))
        assert not run(put(store, load))


def test_what_is_broken_is_a_miss_and_takes_no_other_with_it(valkey):
    with opened(valkey) as (store, harness, run):
        raw = Raw(harness)
        for key in ("good", "bytes", "times", "tags", "text", "packed"):
            run(keep(store, '"x"', key))
        run(raw.raw.hset(raw.value("bytes"), "value", b"\xff\xfe"))
        run(raw.raw.hset(raw.value("times"), "stale", "soon"))
        run(raw.raw.hdel(raw.value("tags"), "tags"))
        run(raw.raw.hset(raw.value("packed"), "tags", b"\xc1\xff"))
        run(raw.raw.delete(raw.value("text")))
        run(raw.raw.set(raw.value("text"), "something else"))
        found = run(store.cache.get(["bytes", "good", "times", "tags", "text", "packed"]))
        assert [entry.value for entry in found] == ["", '"x"', None, None, None, None], (
            "what is empty is no JSON"
        )
        for key in ("times", "tags", "text", "packed"):
            run(keep(store, "2", key))
            assert run(value(store, key)) == "2"


def test_a_full_redis_is_read(own_valkey):
    with opened(own_valkey) as (store, harness, run):
        run(keep(store))
        run(harness.raw.config_set("maxmemory", "1"))
        for client in (store, run(harness.second(store))):  # each looks for a restart at first
            assert run(value(client)) == "1"
            with pytest.raises(StoreFull):
                run(begin(client, "new"))


def test_everything_ends_by_itself(valkey):
    with opened(valkey) as (store, harness, run):
        run(keep(store, tags=("t",)))
        run(begin(store, "loading"))
        run(store.cache.abandon(run(begin(store, "failed")), rest=5))
        raw = Raw(harness)
        assert len(run(raw.keys())) == 5
        for key in run(raw.keys()):
            assert run(raw.raw.pttl(key)) > 0, key


def test_it_takes_part_in_no_transaction(valkey):
    with opened(valkey) as (store, _, run):
        with pytest.raises(UsageError, match="Invalidate after the commit"):
            run(store.cache.invalidate_tags(["t"], tx=object()))
        assert run(store.cache.get(["k"])) == [Entry()]
