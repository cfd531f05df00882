"""What follows a death: its handlers write in that commit, whatever the store's trouble and other jobs' handlers."""

from __future__ import annotations

import pytest
from waiting import heard, until

from holdfast import Backoff, Job
from holdfast.jobs.deaths import Deaths
from holdfast.kernel.errors import StoreUnavailable, TooManyWaiting
from holdfast.store.ports import Tx
from holdfast.store.states import State

ONCE = Backoff(attempts=1)


@pytest.fixture
async def told(hf):
    async with hf.transaction() as tx:
        await tx.execute("DROP TABLE IF EXISTS told")
        await tx.execute("CREATE TABLE told (job TEXT)")

    async def rows():
        async with hf.transaction() as tx:
            return [job for (job,) in await tx.fetch("SELECT job FROM told")]

    return rows


async def write(job: Job, tx: Tx) -> None:
    await tx.execute("INSERT INTO told (job) VALUES ($1)", job.id)


async def test_a_store_in_trouble_is_asked_again(hf, told, monkeypatch):
    @hf.task(retry=ONCE)
    async def broken() -> None:
        raise ValueError("always")

    trouble = [StoreUnavailable("not now"), StoreUnavailable("not now")]

    @hf.on_dead(broken)
    async def tell(job: Job, tx: Tx) -> None:
        await write(job, tx)
        if trouble:
            raise trouble.pop()

    async with hf.worker():
        handle = await broken.enqueue()
        await until(lambda: _is(handle, State.DEAD))
    assert await told() == [handle.id]


async def _is(handle, state):
    return await handle.status() is state


async def killed_three_times(hf, *handles):
    """As workers that die under these jobs, alone, do to them."""
    for strike in range(4):
        while (
            claim := await hf.store.claims.claim_suspect(["default"], lease=60, worker=f"w{strike}")
        ) is not None:
            assert claim.job_id in {handle.id for handle in handles}
        await hf.store.claims.claim({"default": 10}, lease=60, worker=f"w{strike}")
        yield f"w{strike}"


@pytest.mark.parametrize("failure", [ValueError("a bug"), TooManyWaiting("a refusal")])
async def test_one_handlers_failure_is_not_the_others(hf, told, failure):
    @hf.task
    async def good() -> None: ...

    @hf.task
    async def bad() -> None: ...

    hf.on_dead(good)(write)

    @hf.on_dead(bad)
    async def fail(job: Job, tx: Tx) -> None:
        await write(job, tx)
        raise failure

    first, second, third = await good.enqueue(), await bad.enqueue(), await good.enqueue()
    deaths = Deaths(hf.store, hf.registry, hf.run_sync)
    with heard("on_dead.failed") as failed:
        async for worker in killed_three_times(hf, first, second, third):
            await deaths.rescue_worker(worker)
    for handle in (first, second, third):
        assert await handle.status() is State.DEAD
    assert sorted(await told()) == sorted([first.id, third.id])
    assert [note["job"] for note in failed] == [second.id]
