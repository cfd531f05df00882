"""The memory of a cache is bounded: by entries, by bytes, and the least used goes first."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual import virtually

from holdfast.kernel.errors import UsageError
from holdfast.store.cache_records import Load, Why
from holdfast.views.cache_memory import MemoryCache


async def keep(memory, key, value="1", tags=()):
    load = await memory.begin(key, tags=tags, lease=5, why=Why.FORCED)
    return await memory.put(load, value, fresh=60, stale=60)


async def kept(memory, keys):
    found = await memory.get(list(keys))
    return "".join(key for key, entry in zip(keys, found, strict=True) if entry.value is not None)


def test_the_least_used_goes_first():
    async def main():
        memory = MemoryCache(entries=3)
        for key in "abc":
            await keep(memory, key)
        await memory.get(["a"])
        await keep(memory, "d")
        assert await kept(memory, "abcd") == "acd"
        memory.bound(entries=1, size=10**6)
        assert await kept(memory, "acd") == "d"

    virtually(main)


def test_room_is_made_without_walking_through_all_of_them():
    class Counted(OrderedDict):
        def items(self):
            for each in super().items():
                steps.append(each)
                yield each

    async def main():
        memory = MemoryCache(entries=2000)
        memory._rows = Counted()
        for number in range(2000):
            await keep(memory, f"old {number}")
        for number in range(100):
            await keep(memory, f"new {number}")
        assert len(memory) == 2000
        assert len(steps) == 100

    steps = []
    virtually(main)


def test_what_is_being_loaded_is_passed_over_for_what_may_go():
    async def main():
        memory = MemoryCache(entries=3)
        loads = [await memory.begin(key, tags=(), lease=5) for key in "ab"]
        for key in "cde":
            await keep(memory, key)
        assert await kept(memory, "cde") == "e"
        assert [await memory.put(load, "1", fresh=60, stale=60) for load in loads] == [True, True]
        assert await kept(memory, "abcde") == "abe"

    virtually(main)


def test_a_value_that_is_too_large_takes_no_other_with_it():
    async def main():
        memory = MemoryCache(size=10_000)
        for key in "abc":
            await keep(memory, key)
        assert await keep(memory, "d", '"' + "x" * 20_000 + '"')
        assert await kept(memory, "abcd") == "abc"

    virtually(main)


def test_bytes_are_counted():
    async def main():
        memory = MemoryCache(size=100_000)
        for number in range(50):
            await keep(memory, f"k{number}", "x" * 10_000)
            assert memory.size <= 100_000
        assert 5 <= len(memory) <= 10
        assert await keep(memory, "huge", "x" * 200_000), "it is not kept, and nobody loads it again for that"
        assert await kept(memory, ["huge"]) == ""
        await memory.invalidate([f"k{number}" for number in range(50)])
        assert (len(memory), memory.size) == (0, 0)

    virtually(main)


def test_what_is_being_loaded_is_not_pushed_out():
    async def main():
        memory = MemoryCache(entries=1)
        load = await memory.begin("a", tags=(), lease=5)
        for key in "bcd":
            await keep(memory, key)
        assert isinstance(load, Load)
        assert await memory.put(load, "1", fresh=60, stale=60)

    virtually(main)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"), st.sampled_from(["put", "drop", "tag", "begin"]), st.integers(0, 3000)
        )
    )
)
def test_nothing_is_left_of_what_is_forgotten(commands):
    async def main():
        memory = MemoryCache(entries=4, size=8_000)
        for key, what, size in commands:
            if what == "put":
                await keep(memory, key, "x" * size, tags=(f"t{size % 3}",))
            elif what == "begin":
                await memory.begin(key, tags=(f"t{size % 3}",), lease=5)
            elif what == "drop":
                await memory.invalidate([key])
            else:
                await memory.invalidate_tags([f"t{size % 3}"])
            assert memory.size == sum(row.size for row in memory._rows.values())
            named = {(tag, row.key) for row in memory._rows.values() for tag in row.tags}
            assert {(tag, key) for tag, keys in memory._tagged.items() for key in keys} == named
        memory.clear()
        assert (memory.size, len(memory), memory._tagged) == (0, 0, {})

    virtually(main)


def test_wrong_bounds_are_refused():
    for wrong in ({"entries": 0}, {"size": 0}, {"entries": "x"}):
        with pytest.raises(UsageError):
            MemoryCache(**wrong)
