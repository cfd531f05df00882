"""What follows a death: its handlers write in that commit, whatever the store's trouble and other jobs' handlers."""

from __future__ import annotations

import asyncio

import pytest
from waiting import heard, until

from holdfast import Backoff, Holdfast, Job
from holdfast.jobs.deaths import Deaths
from holdfast.kernel.errors import StoreUnavailable, TooManyWaiting, TransactionEnded, UsageError
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


@pytest.mark.parametrize(
    "failure",
    [
        ValueError("a bug"),
        TooManyWaiting("a refusal"),
        UsageError("a wrong call"),
        TransactionEnded("it took too long"),
        TimeoutError("somewhere else"),
        asyncio.CancelledError("a task of its own"),
    ],
    ids=lambda failure: type(failure).__name__,
)
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
    deaths = Deaths(hf.store, hf._inside.registry, hf._inside.portal)
    with heard("on_dead.failed") as failed:
        async for worker in killed_three_times(hf, first, second, third):
            await deaths.rescue_worker(worker)
    for handle in (first, second, third):
        assert await handle.status() is State.DEAD
    assert sorted(await told()) == sorted([first.id, third.id])
    assert [note["job"] for note in failed] == [second.id]


async def killer_and_innocent(hf):
    """One that kills its workers for the last time, and one that was taken by the same worker."""

    @hf.task(name="killer")
    async def killer() -> None: ...

    @hf.task(name="innocent")
    async def innocent() -> None: ...

    dying, last = await killer.enqueue(), ""
    async for worker in killed_three_times(hf, dying):
        last = worker
        if (await dying.record()).strikes == 2:
            break
        await hf.store.claims.rescue_worker(worker)
    bystander = await innocent.enqueue()
    await hf.store.claims.claim({"default": 10}, lease=60, worker=last)
    return dying, bystander, last


async def test_a_handler_that_hangs_holds_nobody_up(hf, told, monkeypatch):
    monkeypatch.setattr("holdfast.jobs.deaths._HANDLER_LIMIT", 0.05)

    @hf.on_dead("killer")
    async def hang(job: Job, tx: Tx) -> None:
        await write(job, tx)
        await asyncio.Event().wait()

    dying, bystander, worker = await killer_and_innocent(hf)
    with heard("on_dead.failed") as failed:
        await Deaths(hf.store, hf._inside.registry, hf._inside.portal).rescue_worker(worker)
    assert (await dying.status(), await bystander.status()) == (State.DEAD, State.QUEUED)
    assert (await told(), [note["job"] for note in failed]) == ([], [dying.id])


async def test_a_handlers_own_endless_trouble_holds_nobody_up(hf, told):
    @hf.on_dead("killer")
    async def elsewhere(job: Job, tx: Tx) -> None:
        await write(job, tx)
        raise StoreUnavailable("another store, which is gone for good")

    dying, bystander, worker = await killer_and_innocent(hf)
    deaths = Deaths(hf.store, hf._inside.registry, hf._inside.portal)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await deaths.rescue_worker(worker)
    await deaths.rescue_worker(worker)
    assert (await dying.status(), await bystander.status(), await told()) == (State.DEAD, State.QUEUED, [])


async def test_handlers_of_a_killed_job_need_no_second_connection(postgres_url):
    """The job is read inside the transaction that puts it to death: tasks may hold all other connections."""
    heard_of = []
    async with Holdfast(f"{postgres_url}?pool_size=1&pool_wait=0.2") as hf:

        @hf.task
        async def crash() -> None: ...

        @hf.on_dead(crash)
        async def tell(job: Job, tx: Tx) -> None:
            heard_of.append(job.id)

        handle = await crash.enqueue()
        async for worker in killed_three_times(hf, handle):
            await Deaths(hf.store, hf._inside.registry, hf._inside.portal).rescue_worker(worker)
        assert await handle.status() is State.DEAD
    assert heard_of == [handle.id]
