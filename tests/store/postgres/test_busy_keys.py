"""Someone's open transaction holds one key: whoever serves all passes over that key's jobs, and does the rest at once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from clocks import advance
from kit import blocked, end, put, put_many, take, the

from holdfast.kernel.errors import CommitUnknown, StoreUnavailable
from holdfast.kernel.outcomes import Done
from holdfast.store.postgres import endings
from holdfast.store.records import Finish
from holdfast.store.states import Held, State

SOON = 5.0  # seconds: below the ten after which a statement that waits is given up


@pytest.fixture
async def busy(store, other):
    """`async with busy(ordered="k")`: another's transaction is finishing a job with this key, and does not commit yet."""

    @asynccontextmanager
    async def holding(**keys):
        job_id = await put(store, queue="busy", **keys)
        await store.holds.promote()
        [claim] = await store.claims.claim({"busy": 1}, lease=900, worker="slow")
        assert claim.job_id == job_id
        async with other.transaction() as tx:
            await other.claims.finish([Finish(claim, Done())], tx=tx)
            async with asyncio.timeout(SOON):
                yield

    return holding


async def test_promote_passes_over_a_busy_key_and_looks_further(store, busy):
    async with busy(ordered="k"):
        waiting = await put_many(store, 30, ordered="k")
        free = [await put(store, **keys) for keys in ({"tenant": "a"}, {"ordered": "free"}, {"tenant": "a"})]
        assert await store.holds.promote(limit=10) == 3
        assert [(await the(store, job_id)).held for job_id in free] == [None] * 3
        assert (await the(store, waiting[0])).held is Held.ARRIVED
    assert await store.holds.promote(limit=30) == 30
    assert (await the(store, waiting[0])).held is None


async def test_nobody_overtakes_a_job_whose_slot_is_busy(store, busy):
    """The first of the order is passed over for its concurrency key, so the second must not get the turn."""
    limited = {"concurrency": "c", "concurrency_limit": 5}
    async with busy(**limited):
        first, second = await put(store, ordered="o", **limited), await put(store, ordered="o")
        await put_many(store, 20, **limited)
        third, free = await put(store, ordered="o"), await put(store, tenant="a")
        for limit in (1, 2, 3, 500):
            await store.holds.promote(limit=limit)
        assert (await the(store, free)).held is None
        for job_id in (first, second, third):
            assert (await the(store, job_id)).held is Held.ARRIVED
    await store.holds.promote()
    assert [(await the(store, job_id)).held for job_id in (first, second)] == [None, Held.ORDERING]


async def test_rescue_passes_over_a_busy_key(store, busy):
    await put_many(store, 3, concurrency="c", concurrency_limit=9)
    made = await put_many(store, 3)
    await store.holds.promote()
    assert len(await take(store, 9, lease=1)) == 6
    async with busy(concurrency="c", concurrency_limit=9):
        await advance(store, 5)
        rescued = [await store.claims.rescue(limit=2) for _ in range(3)]
        assert sorted(item.job_id for part in rescued for item in part) == sorted(made)
    assert len(await store.claims.rescue()) == 3


async def test_the_jobs_of_a_dead_worker_come_back_without_those_of_a_busy_key(store, busy):
    await put_many(store, 2, concurrency="c", concurrency_limit=9)
    made = await put_many(store, 3)
    await store.holds.promote()
    assert len(await take(store, 9)) == 5
    async with busy(concurrency="c", concurrency_limit=9):
        rescued = await store.claims.rescue_worker("w")
        assert sorted(item.job_id for item in rescued) == sorted(made)
    assert len(await store.claims.rescue_worker("w")) == 2


async def test_a_locked_row_does_not_keep_the_other_jobs_of_a_dead_worker(store, other):
    made = await put_many(store, 3)
    claims = await take(store, 3)
    async with other.transaction() as tx, asyncio.timeout(SOON):
        await other.claims.finish([Finish(claims[0], Done())], tx=tx)
        rescued = await store.claims.rescue_worker("w")
        assert sorted(item.job_id for item in rescued) == sorted(made[1:])
    assert (await the(store, made[0])).state is State.SUCCEEDED


async def test_expire_passes_over_a_busy_key(store, busy):
    async with busy(ordered="k"):
        kept = [await put(store, ordered="k", expires=1) for _ in range(3)]
        await put_many(store, 4, expires=2)
        await advance(store, 5)
        assert [await store.holds.expire(limit=3) for _ in range(3)] == [3, 1, 0]
        assert (await the(store, kept[0])).state is State.QUEUED
    assert await store.holds.expire() == 3


async def test_repair_passes_over_a_busy_key(store, busy):
    behind = await put_many(store, 2, concurrency="c", concurrency_limit=1)
    missed = await put_many(store, 2, ordered="o")
    await store.holds.promote()
    async with store.transaction() as tx:  # behind everyone's back a turn is lost, and a limit raised
        await tx.execute("DELETE FROM holdfast.job WHERE id = $1::uuid", missed[0])
        await tx.execute("UPDATE holdfast.job SET concurrency_limit = 5 WHERE id = $1::uuid", behind[1])
    async with busy(concurrency="c", concurrency_limit=9):
        assert await store.holds.repair() == 1
        assert (await the(store, missed[1])).held is None
    assert (await the(store, behind[1])).held is None  # passed on by the transaction that had the key


def running(coroutine):
    return asyncio.get_running_loop().create_task(coroutine)


async def released(store, job_ids):
    """Return when none of these is running any more."""
    while any([(await the(store, job_id)).lease_until for job_id in job_ids]):
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("verb", ["release", "hold"])
async def test_what_is_put_back_waits_only_for_its_own_key(store, busy, verb):
    kept = await put(store, concurrency="c", concurrency_limit=9)
    made = [await put(store), await put(store, ordered="free"), await put(store)]
    await store.holds.promote()
    claims = await take(store, 9)
    async with busy(concurrency="c", concurrency_limit=9):
        give = store.claims.release(claims) if verb == "release" else store.holds.hold(claims, Held.GUARD)
        giving = running(give)
        await released(store, made)
        assert (await the(store, kept)).state is State.RUNNING
        assert not giving.done()
    assert await giving == [True] * 4


async def test_the_finish_of_a_free_key_does_not_wait_behind_many_of_a_busy_one(store, busy):
    await put_many(store, 120, concurrency="c", concurrency_limit=900)
    free = await put(store, ordered="free")
    await store.holds.promote()
    claims = await take(store, 200)
    async with busy(concurrency="c", concurrency_limit=900):
        waiting = [running(end(store, claim)) for claim in claims if claim.job_id != free]
        await asyncio.sleep(0)
        [claim] = [claim for claim in claims if claim.job_id == free]
        assert await end(store, claim)
        assert not any(task.done() for task in waiting)
    assert await asyncio.gather(*waiting) == [True] * 120


async def test_who_waits_for_a_key_that_is_free_soon_does_not_wait_behind_forgotten_ones(store, busy):
    """However many keys are forgotten, and however few connections there are to wait on."""
    keys = [{"concurrency": f"c{number}", "concurrency_limit": 9} for number in range(6)]
    for key in keys:
        await put(store, **key)
    await store.holds.promote()
    claims = await take(store, 9)
    async with AsyncExitStack() as stack:
        for key in keys[1:]:
            await stack.enter_async_context(busy(**key))
        forgotten = [running(end(store, claim)) for claim in claims[1:]]
        async with busy(**keys[0]):
            soon = running(end(store, claims[0]))
            await blocked(store, 2)
        assert await asyncio.wait_for(soon, SOON)
        assert not any(task.done() for task in forgotten)
    assert await asyncio.gather(*forgotten) == [True] * 5


async def test_who_waited_long_enough_for_a_key_is_told_what_is_written(store, busy, monkeypatch):
    monkeypatch.setattr(endings, "LIMIT", 0.3)
    await put(store, concurrency="c", concurrency_limit=9)
    await put_many(store, 2, ordered="free")
    await store.holds.promote()
    first, second = await take(store, 9)
    async with busy(concurrency="c", concurrency_limit=9):
        with pytest.raises(StoreUnavailable, match="Nothing was stored"):
            await store.claims.finish([Finish(first, Done())])
        with pytest.raises(CommitUnknown, match="1 of 2 were written"):
            await store.claims.finish([Finish(first, Done()), Finish(second, Done())])
    assert (await the(store, second.job_id)).state is State.SUCCEEDED
    assert await end(store, first)
