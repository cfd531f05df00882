"""Someone's open transaction has one row: its own caller waits for it, and the others in the same batch do not."""

from __future__ import annotations

import asyncio

from kit import blocked, end, job, put_many, take, the

from holdfast.kernel.errors import StoreUnavailable
from holdfast.kernel.outcomes import Done, Retry
from holdfast.store.postgres import patience
from holdfast.store.records import Enqueued, Finish
from holdfast.store.states import State
from holdfast.store.steps import Step

SOON = 5.0  # seconds
LOCK = "SELECT 1 FROM holdfast.job WHERE id = $1::uuid FOR UPDATE"


def running(coroutine):
    return asyncio.get_running_loop().create_task(coroutine)


async def test_a_plain_finish_whose_row_is_locked_holds_up_nobody(store, other):
    await put_many(store, 41)
    locked, *rest = await take(store, 41)
    async with other.transaction() as tx:
        await tx.fetch(LOCK, locked.job_id)
        async with asyncio.timeout(SOON):
            alone = running(end(store, locked))  # it has the lane for itself
            await blocked(other)
            assert await asyncio.gather(*(end(store, claim) for claim in rest[:20])) == [True] * 20
            batch = [running(end(store, claim)) for claim in (rest[20], locked, *rest[21:])]
            for task in [*batch[:1], *batch[2:]]:
                assert await task
        assert not alone.done()
        assert not batch[1].done()
    assert sorted([await alone, await batch[1]]) == [False, True]


async def test_any_other_finish_whose_row_is_locked_holds_up_nobody(store, other):
    await put_many(store, 11)
    locked, *rest = await take(store, 11)
    async with other.transaction() as tx:
        await tx.fetch(LOCK, locked.job_id)
        async with asyncio.timeout(SOON):
            alone = running(end(store, locked, Retry()))
            await blocked(other)
            assert await asyncio.gather(*(end(store, claim, Retry()) for claim in rest)) == [True] * 10
        assert not alone.done()
    assert await alone


async def test_a_step_whose_job_is_locked_holds_up_nobody(store, other):
    await put_many(store, 21)
    locked, *rest = await take(store, 21)
    step = Step(name="a", number=0)
    async with other.transaction() as tx:
        await tx.fetch(LOCK, locked.job_id)
        async with asyncio.timeout(SOON):
            alone = running(store.steps.write(locked, step))  # it has the lane for itself
            await blocked(other)
            assert await asyncio.gather(*(store.steps.write(claim, step) for claim in rest)) == [True] * 20
            batch = [running(store.steps.write(claim, step)) for claim in (rest[0], locked, *rest[1:])]
            for task in [*batch[:1], *batch[2:]]:
                assert await task
        assert not alone.done()
        assert not batch[1].done()
    assert await alone
    assert await batch[1]


async def test_an_id_that_another_is_storing_holds_up_no_other_enqueue(store, other):
    for keys in ({}, {"tenant": "a"}):
        new = job(**keys)
        async with other.transaction() as tx:
            await other.jobs.enqueue([new], tx=tx)
            async with asyncio.timeout(SOON):
                alone = running(store.jobs.enqueue([new]))
                await blocked(other)
                others = [job(**keys) for _ in range(10)]
                answers = await asyncio.gather(*(store.jobs.enqueue([each]) for each in others))
                assert answers == [[Enqueued(each.id, created=True)] for each in others]
            assert not alone.done()
        assert await alone == [Enqueued(new.id, created=True)]


async def test_who_waited_long_enough_for_a_row_is_told_that_nothing_is_written(store, other, monkeypatch):
    monkeypatch.setattr(patience, "LIMIT", 0.3)
    await put_many(store, 1)
    [claim] = await take(store)
    new = job()
    async with other.transaction() as tx, asyncio.timeout(SOON):
        await tx.fetch(LOCK, claim.job_id)
        await other.jobs.enqueue([new], tx=tx)
        answers = await asyncio.gather(
            end(store, claim), end(store, claim, Retry()), store.jobs.enqueue([new]), return_exceptions=True
        )
        assert [isinstance(answer, StoreUnavailable) for answer in answers] == [True] * 3
    assert (await the(store, claim.job_id)).state is State.RUNNING
    assert await store.claims.finish([Finish(claim, Done())]) == [True]
