"""Rows and a job's success in one commit, or neither."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from running import QUICK, result_of
from waiting import heard, until

from holdfast import Backoff, Holdfast, Job, Middleware
from holdfast.kernel.errors import StoreError, UsageError
from holdfast.store.states import State
from holdfast.testing import drain


async def test_a_fence_refuses_the_late_finish(hf):
    """Someone else has the job meanwhile: this run's end changes nothing."""
    started, go = asyncio.Event(), asyncio.Event()

    @hf.task
    async def slow() -> str:
        started.set()
        await go.wait()
        return "late"

    with heard("job.finish_refused") as refused:
        async with hf.worker(name="zombie", lease=60) as service:
            handle = await slow.enqueue()
            await started.wait()
            await hf.store.claims.rescue_worker(service.name)
            go.set()
            await until(lambda: refused)
    assert (await handle.record()).result is None


async def test_rows_and_success_commit_together(hf):
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS shipped (job TEXT)")
        await tx.execute("DELETE FROM shipped")

    @hf.task
    async def ship(job: Job) -> str:
        async with job.commit(result="sent") as tx:
            await tx.execute("INSERT INTO shipped (job) VALUES ($1)", job.id)
        raise RuntimeError("after the commit: it changes nothing")

    with heard("job.failed_after_completion") as notes:
        async with hf.worker():
            assert await result_of(hf, ship) == "sent"
    assert len(notes) == 1
    async with hf.transaction() as tx:
        assert len(await tx.fetch("SELECT job FROM shipped")) == 1


@pytest.mark.parametrize("by_hand", [False, True])
async def test_the_store_is_asked_only_where_the_commit_was_not_seen(hf, monkeypatch, by_hand):
    asked, real = [], hf.store.claims.settle

    async def settle(*claim):
        asked.append(claim)
        return await real(*claim)

    @hf.task
    async def ship(job: Job) -> None:
        async with hf.transaction() if by_hand else job.commit() as tx:
            if by_hand:
                await job.complete(tx=tx)

    monkeypatch.setattr(hf.store.claims, "settle", settle)
    handle = await ship.enqueue()
    await drain(hf)
    assert await handle.status() is State.SUCCEEDED
    assert bool(asked) is by_hand


class Slow:
    """A transaction whose end is done, or not, and takes long to be told."""

    def __init__(self, block, is_done):
        self._block, self._is_done = block, is_done

    async def __aenter__(self):
        return await self._block.__aenter__()

    async def __aexit__(self, *error):
        if self._is_done:
            await self._block.__aexit__(*error)
        try:
            await asyncio.sleep(600)
        finally:
            if not self._is_done:
                stopped = asyncio.CancelledError()
                await self._block.__aexit__(type(stopped), stopped, None)


@pytest.mark.parametrize("is_done", [True, False])
async def test_who_is_stopped_during_the_commit_has_succeeded_if_that_was_done(hf, monkeypatch, is_done):
    told, real = [], hf.store.transaction

    class Listener(Middleware):
        def on_dead(self, job, error):
            told.append(error)

    @hf.task(timeout=0.3, retry=Backoff(attempts=1))
    async def ship(job: Job) -> None:
        async with job.commit():
            pass

    hf.use(Listener())
    monkeypatch.setattr(hf.store, "transaction", lambda: Slow(real(), is_done))
    async with hf.worker():
        handle = await ship.enqueue()
        with heard("job.finish_refused") as refused, heard("job.failed_after_completion") as notes:
            await until(lambda: notes or told)
            await until_over(handle)
    assert (await handle.record()).state is (State.SUCCEEDED if is_done else State.DEAD)
    assert (len(notes), len(told), refused) == ((1, 0, []) if is_done else (0, 1, []))


async def until_over(handle):
    async def is_over():
        return (await handle.record()).state in (State.SUCCEEDED, State.DEAD)

    await until(is_over)


async def test_who_has_lost_the_job_commits_nothing(hf):
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS shipped (job TEXT)")
        await tx.execute("DELETE FROM shipped")
    runs = []

    @hf.task
    async def ship(job: Job) -> int:
        runs.append(job.token)
        if len(runs) == 1:
            await hf.store.claims.rescue_worker(service.name)
        async with job.commit(result=len(runs)) as tx:
            await tx.execute("INSERT INTO shipped (job) VALUES ($1)", str(job.token))
        return 0

    with heard("job.lease_lost") as lost:
        async with hf.worker(name="zombie", lease=60) as service:
            assert await result_of(hf, ship) == 2
    assert len(lost) == 1
    async with hf.transaction() as tx:
        assert await tx.fetch("SELECT job FROM shipped") == [(str(runs[1]),)]


async def test_a_completion_that_was_rolled_back_is_none(hf):
    @hf.task(retry=QUICK)
    async def ship(job: Job) -> int:
        if job.attempt == 1:
            with pytest.raises(ZeroDivisionError):
                async with hf.transaction() as tx:
                    await job.complete(tx=tx, result=1)
                    raise ZeroDivisionError
            return 0
        async with hf.transaction() as tx:
            await job.complete(tx=tx, result=2)
        return 0

    async with hf.worker():
        handle = await ship.enqueue()
        assert await handle.result(10) == 2
    assert "was rolled back" in (await handle.record()).errors[0].error


@pytest.mark.parametrize("by_hand", [False, True])
async def test_a_commit_that_failed_may_be_tried_again_by_the_task(hf, by_hand):
    async with hf.transaction() as tx:
        await tx.execute("DROP TABLE IF EXISTS box")
        await tx.execute("DROP TABLE IF EXISTS shelf")
        await tx.execute("CREATE TABLE shelf (id INTEGER PRIMARY KEY)")
        await tx.execute(
            "CREATE TABLE box (shelf INTEGER REFERENCES shelf (id) DEFERRABLE INITIALLY DEFERRED)"
        )
        await tx.execute("INSERT INTO shelf (id) VALUES (1)")

    @hf.task(retry=Backoff(attempts=1))
    async def ship(job: Job) -> None:
        await job.step("before", asyncio.sleep, 0)
        for shelf in (0, 1):  # there is no shelf 0, and only the commit finds out
            with suppress(StoreError):
                async with hf.transaction() if by_hand else job.commit() as tx:
                    await tx.execute("INSERT INTO box (shelf) VALUES ($1)", shelf)
                    if by_hand:
                        await job.complete(tx=tx)

    handle = await ship.enqueue()
    await drain(hf)
    assert await handle.status() is State.SUCCEEDED
    async with hf.transaction() as tx:
        assert await tx.fetch("SELECT shelf FROM box") == [(1,)]


@pytest.mark.parametrize("by_hand", [False, True])
async def test_a_run_ends_once(hf, by_hand):
    @hf.task(retry=Backoff(attempts=1))
    async def ship(job: Job) -> None:
        async with hf.transaction() as tx:
            await job.complete(tx=tx)
            if by_hand:
                with pytest.raises(UsageError, match="is completed already"):
                    await job.complete(tx=tx)
        with pytest.raises(UsageError, match="is completed already"):
            async with job.commit():
                pass

    handle = await ship.enqueue()
    await drain(hf)
    assert await handle.status() is State.SUCCEEDED


@pytest.mark.parametrize("by_hand", [False, True])
async def test_a_later_attempt_needs_no_second_connection(postgres_url, by_hand):
    """It asks for recorded steps. Within its transaction, a pool that is full of such would wait for itself."""
    async with Holdfast(f"{postgres_url}?pool_size=1&pool_wait=0.2") as hf:

        @hf.task(retry=Backoff(attempts=2, first=0, ceiling=0))
        async def ship(job: Job) -> None:
            if job.attempt == 1:
                raise OSError("once")
            if by_hand:
                async with hf.transaction() as tx:
                    await job.complete(tx=tx)
            else:
                async with job.commit():
                    pass

        handle = await ship.enqueue()
        async with asyncio.timeout(5):
            await drain(hf)
        assert await handle.status() is State.SUCCEEDED
