"""Group commit: one flush at a time, everything that waits goes into the next, and a bad item fails alone."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.kernel.errors import CommitUnknown, NotOpen, StoreUnavailable, UsageError
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


def asked(batcher, *groups):
    return [asyncio.create_task(batcher.add(group)) for group in groups]


@pytest.fixture
def batcher(disk):
    return Batcher(disk.flush, limit=100, name="test")


async def test_a_lone_caller_is_flushed_at_once_and_alone(disk, batcher):
    disk.ready.set()
    assert await batcher.add(["a", "b"]) == ["a!", "b!"]
    assert await batcher.add(["c"]) == ["c!"]
    assert disk.batches == [["a", "b"], ["c"]]


async def test_what_arrives_during_a_flush_goes_into_the_next(disk, batcher):
    tasks = asked(batcher, ["a"], ["b"], ["c", "d"], [], ["e"])
    await settle()
    assert disk.batches == [["a"]]
    disk.ready.set()
    assert await asyncio.gather(*tasks) == [["a!"], ["b!"], ["c!", "d!"], [], ["e!"]]
    assert disk.batches == [["a"], ["b", "c", "d", "e"]]


async def test_of_many_callers_half_set_out_and_then_the_others(disk, batcher):
    tasks = asked(batcher, *([str(number)] for number in range(60)))
    await settle()
    disk.ready.set()
    await asyncio.gather(*tasks)
    assert [len(batch) for batch in disk.batches] == [1, 30, 29]


async def test_the_next_batch_sets_out_before_the_callers_of_the_last_are_told(disk, batcher):
    told = []
    first, second, third = asked(batcher, ["a"], ["b"], ["c"])
    await settle()
    second.add_done_callback(lambda _: told.append(len(disk.batches)))
    fourth = None

    async def flush(items):
        nonlocal fourth
        if items == ["b", "c"]:
            fourth = asyncio.create_task(batcher.add(["d"]))
            await settle()
        return await Disk.flush(disk, items)

    batcher._flush = flush
    disk.ready.set()
    await asyncio.gather(first, second, third)
    await fourth
    assert disk.batches == [["a"], ["b", "c"], ["d"]]
    assert told == [3]


async def test_a_batch_is_no_larger_than_its_limit_but_a_caller_may_be(disk):
    batcher = Batcher(disk.flush, limit=4, name="test")
    tasks = asked(batcher, "a", "bb", "cc", "d", "eeeee", "f")
    await settle()
    disk.ready.set()
    await asyncio.gather(*tasks)
    assert ["".join(batch) for batch in disk.batches] == ["a", "bbcc", "d", "eeeee", "f"]


async def test_a_bad_item_fails_only_its_own_caller(disk, batcher):
    tasks = asked(batcher, ["first"], ["a"], ["b"], ["bad", "x"], ["c"], ["d"])
    await settle()
    disk.ready.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers.pop(3), UsageError)
    assert answers == [["first!"], ["a!"], ["b!"], ["c!"], ["d!"]]


@pytest.mark.parametrize("fault", [StoreUnavailable, NotOpen, CommitUnknown])
async def test_when_the_store_is_at_fault_all_fail_and_nothing_is_halved(disk, batcher, fault):
    tasks = asked(batcher, "a", "b", "c", "d")
    await settle()
    disk.error = fault("gone")
    disk.ready.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [fault] * 4
    assert len(disk.batches) == 2
    disk.error = None
    assert await batcher.add(["e"]) == ["e!"]


async def test_a_caller_that_gave_up_disturbs_nobody(disk, batcher):
    tasks = asked(batcher, "a", "b", "c")
    await settle()
    tasks[0].cancel()  # it is flushing
    tasks[1].cancel()  # it waits
    await settle()
    disk.ready.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers[:2]] == [asyncio.CancelledError] * 2
    assert answers[2] == ["c!"]
    assert disk.batches == [["a"], ["c"]]


@pytest.mark.parametrize("steps", [0, 1, 5])
async def test_a_flush_that_is_cancelled_ends_neither_its_callers_nor_those_after_it(disk, batcher, steps):
    """`for task in asyncio.all_tasks(): task.cancel()` meets it before its first step, or in the middle."""
    tasks = asked(batcher, "a", "b", "c")
    await settle()
    tasks[0].cancel()
    while not (found := [task for task in asyncio.all_tasks() if task.get_name() == "batch:test"]):
        await asyncio.sleep(0)
    for _ in range(steps):
        await asyncio.sleep(0)
    [flush] = found
    flush.cancel()
    answers = await asyncio.gather(*tasks[1:], return_exceptions=True)
    assert [type(answer) for answer in answers] == [CommitUnknown] * 2
    disk.ready.set()
    assert await batcher.add(["d"]) == ["d!"]


async def test_resting_waits_for_those_who_wait_and_for_no_newcomer(disk, batcher):
    tasks = asked(batcher, "a", "b", "c")
    await settle()
    resting = asyncio.create_task(batcher.rest())
    await settle()
    assert not resting.done()
    disk.ready.set()
    await asyncio.gather(*tasks)
    disk.ready.clear()
    newcomer = asyncio.create_task(batcher.add("d"))
    async with asyncio.timeout(5):
        await resting
    assert not newcomer.done()
    newcomer.cancel()
