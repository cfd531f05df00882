"""Group commit: one flush at a time, everything that waits goes into the next, and a bad item fails alone."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.kernel.errors import StoreUnavailable, UsageError
from holdfast.store.batching import Batcher


class Disk:
    """Flushes when the test says so, and remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[object]] = []
        self.ready = asyncio.Event()
        self.error: Exception | None = None

    async def flush(self, items):
        self.batches.append(list(items))
        await self.ready.wait()
        if self.error is not None:
            raise self.error
        if "bad" in items:
            raise UsageError("bad is bad")
        return [f"{item}!" for item in items]


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def disk():
    return Disk()


async def test_a_lone_item_is_flushed_at_once_and_alone(disk):
    disk.ready.set()
    batcher = Batcher(disk.flush, limit=100, name="test")
    assert await batcher.add("a") == "a!"
    assert await batcher.add("b") == "b!"
    assert disk.batches == [["a"], ["b"]]


async def test_what_arrives_during_a_flush_goes_into_the_next(disk):
    batcher = Batcher(disk.flush, limit=100, name="test")
    tasks = [asyncio.create_task(batcher.add(name)) for name in "abcd"]
    await settle()
    assert disk.batches == [["a"]]
    disk.ready.set()
    assert await asyncio.gather(*tasks) == ["a!", "b!", "c!", "d!"]
    assert disk.batches == [["a"], ["b", "c", "d"]]


async def test_a_batch_is_no_larger_than_its_limit_but_an_item_may_be(disk):
    batcher = Batcher(disk.flush, limit=4, size=len, name="test")
    tasks = [asyncio.create_task(batcher.add(item)) for item in ("a", "bb", "cc", "d", "eeeee", "f")]
    await settle()
    disk.ready.set()
    await asyncio.gather(*tasks)
    assert disk.batches == [["a"], ["bb", "cc"], ["d"], ["eeeee"], ["f"]]


async def test_a_bad_item_fails_only_its_own_caller(disk):
    batcher = Batcher(disk.flush, limit=100, name="test")
    tasks = [asyncio.create_task(batcher.add(item)) for item in ("first", "a", "b", "bad", "c", "d")]
    await settle()
    disk.ready.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers.pop(3), UsageError)
    assert answers == ["first!", "a!", "b!", "c!", "d!"]


async def test_when_the_store_is_at_fault_all_fail_and_nothing_is_halved(disk):
    batcher = Batcher(disk.flush, limit=100, name="test")
    tasks = [asyncio.create_task(batcher.add(item)) for item in "abcd"]
    await settle()
    disk.error = StoreUnavailable("gone")
    disk.ready.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 4
    assert len(disk.batches) == 2
    disk.error = None
    assert await batcher.add("e") == "e!"


async def test_a_caller_that_gave_up_disturbs_nobody(disk):
    batcher = Batcher(disk.flush, limit=100, name="test")
    tasks = [asyncio.create_task(batcher.add(item)) for item in "abc"]
    await settle()
    tasks[0].cancel()  # it is flushing
    tasks[1].cancel()  # it waits
    await settle()
    disk.ready.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers[:2]] == [asyncio.CancelledError] * 2
    assert answers[2] == "c!"
    assert disk.batches == [["a"], ["c"]]
