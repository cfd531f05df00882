"""Losing a lease: a run that was lost ends soon, is not renewed meanwhile, and goes back when it was ours after all."""

from __future__ import annotations

import asyncio

import pytest
from waiting import until

from holdfast.jobs.renewer import HARD_GRACE, Renewer
from holdfast.jobs.run import Run, Stop
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import JobCancelled, StoreUnavailable
from holdfast.store.states import State


def deaf_until(hf, stuck, started, **options):
    """A task that does not listen when it is stopped, until someone says that it is stuck."""

    @hf.task(**options)
    async def deaf() -> None:
        started.set()
        while not stuck:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue

    return deaf


async def test_a_run_that_the_store_calls_lost_must_end_soon(hf):
    stuck, started = [], asyncio.Event()
    handle = await deaf_until(hf, stuck, started).enqueue()
    service = hf.worker(lease=30, stuck=stuck.append)
    await service.start()
    await started.wait()
    [run] = service.worker.runs.values()
    await hf.store.claims.rescue_worker(service.name)
    service.worker.on_hint()  # look now
    await until(lambda: run.stop is Stop.LOST)
    await until(lambda: stuck)
    await service.stop(grace=0)
    assert (await handle.record()).interruptions == 1


async def test_a_run_that_is_stopped_before_its_first_line_ends_all_the_same(hf, monkeypatch):
    @hf.task
    async def never() -> None: ...

    handle = await never.enqueue()
    service = hf.worker()
    await service.start()
    worker = service.worker
    begin = worker._slots.begin

    def begin_and_stop():
        begin()
        for run in worker.runs.values():
            run.halt(Stop.CANCELLED, "not needed")

    monkeypatch.setattr(worker._slots, "begin", begin_and_stop)
    with pytest.raises(JobCancelled, match="not needed"):
        await handle.result(10)
    assert not worker.runs
    await service.stop()


async def test_what_is_given_up_is_not_renewed(hf):
    @hf.task
    async def any_task() -> None: ...

    await any_task.enqueue()
    [claim] = await hf.store.claims.claim({"default": 1}, lease=30, worker="w")
    run = Run(claim, None, monotonic() + 30)
    renewer = Renewer(hf.store, {run.key: run}, lease=30)
    run.stop = Stop.LOST
    await renewer._renew(hf.store)
    assert (await hf.store.jobs.get(claim.job_id)).lease_until == claim.lease_until
    run.stop, run.until = None, monotonic() + 7  # less than a quarter of the lease is left
    await renewer._renew(hf.store)
    assert (await hf.store.jobs.get(claim.job_id)).lease_until == claim.lease_until
    run.until = monotonic() + 9
    await renewer._renew(hf.store)
    assert (await hf.store.jobs.get(claim.job_id)).lease_until > claim.lease_until


async def test_a_run_that_was_given_up_in_time_goes_back_uncharged(hf):
    started = asyncio.Event()

    @hf.task
    async def long() -> None:
        started.set()
        await asyncio.sleep(60)

    handle = await long.enqueue()
    service = hf.worker(lease=60)
    await service.start()
    await started.wait()
    [run] = service.worker.runs.values()
    await hf.queues.pause("default", by="test")
    run.halt(Stop.LOST)
    await until(lambda: not service.worker.runs)
    record = await handle.record()
    assert (record.state, record.attempt, record.interruptions) == (State.QUEUED, 0, 0)
    await service.stop(grace=0)


async def locked_run(hf, name):
    """A run that holds a lock, as the executor leaves it to the renewer."""

    @hf.task(name=name)
    async def locked() -> None: ...

    await locked.enqueue()
    [claim] = await hf.store.claims.claim({"default": 1}, lease=30, worker="w")
    run = Run(claim, None, monotonic() + 30)
    run.lock = await hf.store.leases.acquire(name, owner=name, ttl=30)
    run.lock_until = monotonic() + 30
    return run


async def test_many_locks_are_renewed_together(hf, monkeypatch):
    runs = [await locked_run(hf, f"lock{n}") for n in range(10)]
    all_at_once = asyncio.Barrier(len(runs))
    renew = hf.store.leases.renew

    async def slow(lease, *, ttl):
        await asyncio.wait_for(all_at_once.wait(), 10)
        return await renew(lease, ttl=ttl)

    before = monotonic() + 29
    for run in runs:
        run.lock_until = before
    monkeypatch.setattr(hf.store.leases, "renew", slow)
    await Renewer(hf.store, {run.key: run for run in runs}, lease=30)._renew(hf.store)
    assert all(run.lock_until > before for run in runs)


async def test_one_lock_that_cannot_be_renewed_is_not_the_others(hf, monkeypatch):
    bad, good = await locked_run(hf, "bad"), await locked_run(hf, "good")
    bad.lock_until = good.lock_until = before = monotonic() + 29
    renew = hf.store.leases.renew

    async def fail(lease, *, ttl):
        if lease.name == "bad":
            raise StoreUnavailable("not now")
        return await renew(lease, ttl=ttl)

    monkeypatch.setattr(hf.store.leases, "renew", fail)
    with pytest.raises(StoreUnavailable):
        await Renewer(hf.store, {run.key: run for run in (bad, good)}, lease=30)._renew(hf.store)
    assert good.lock_until > before == bad.lock_until


async def test_a_run_is_stopped_before_its_lock_ends(hf):
    late, fine = await locked_run(hf, "late"), await locked_run(hf, "fine")
    late.lock_until = monotonic() + 7  # less than a quarter of the lease is left
    renewer = Renewer(hf.store, {run.key: run for run in (late, fine)}, lease=30)
    renewer._look()
    await until(lambda: late.stop is Stop.LOCK_LOST)
    assert fine.stop is None


async def test_the_executor_says_when_a_lock_ends(hf):
    started = asyncio.Event()

    @hf.task(lock="one")
    async def long() -> None:
        started.set()
        await asyncio.sleep(60)

    began = monotonic()
    await long.enqueue()
    async with hf.worker(lease=60) as service:
        await started.wait()
        [run] = service.worker.runs.values()
        assert began + 60 <= run.lock_until <= monotonic() + 60
        await service.stop(grace=0)


async def test_a_run_that_goes_on_without_its_lock_must_end_soon(hf):
    stuck, started = [], asyncio.Event()
    await deaf_until(hf, stuck, started, lock="one").enqueue()
    service = hf.worker(lease=3, stuck=stuck.append)
    await service.start()
    await started.wait()
    [run] = service.worker.runs.values()
    await hf.store.leases.release(run.lock)
    assert await hf.store.leases.acquire("one", owner="another", ttl=60) is not None
    await until(lambda: stuck)
    assert "its lock was lost" in stuck[0]
    await service.stop(grace=0)


async def test_a_surprise_does_not_end_the_renewals(hf, monkeypatch):
    begun, over, surprises = asyncio.Event(), asyncio.Event(), []

    @hf.task
    async def long() -> None:
        begun.set()
        await over.wait()

    renew = Renewer._renew

    async def surprising(self, store):
        if not surprises:
            surprises.append(True)
            raise RuntimeError("dictionary changed size during iteration")
        await renew(self, store)

    monkeypatch.setattr(Renewer, "_renew", surprising)
    handle = await long.enqueue()
    async with hf.worker(lease=1.5) as service:
        await begun.wait()
        [run] = service.worker.runs.values()
        before = run.until
        await until(lambda: surprises and run.until > before)
        over.set()
        await handle.result(10)
    assert (await handle.record()).attempt == 1


async def test_who_slept_through_a_timeout_is_asked_to_stop_before_its_process_is_ended(hf):
    @hf.task(timeout=5)
    async def any_task() -> None: ...

    await any_task.enqueue()
    [claim] = await hf.store.claims.claim({"default": 1}, lease=300, worker="w")
    run, stuck = Run(claim, None, monotonic() + 300), []
    run.limit_until, run.work = monotonic() - 100, asyncio.current_task()  # the whole process stood still
    renewer = Renewer(hf.store, {run.key: run}, lease=300, stuck=stuck.append)
    renewer._look()
    assert not stuck
    renewer._overtime[run.key] -= HARD_GRACE + 1
    renewer._look()
    assert "it is past its hard time limit" in stuck[0]


async def test_a_suspect_waits_for_a_long_run_without_stopping_the_others(hf):
    begun, over = asyncio.Event(), asyncio.Event()

    @hf.task
    async def long() -> None:
        begun.set()
        await over.wait()

    @hf.task
    async def quick() -> str:
        return "done"

    suspect = await quick.options(queue="other").enqueue()
    await hf.store.claims.claim({"other": 1}, lease=60, worker="dead")
    await hf.store.claims.rescue_worker("dead")
    await long.enqueue()
    async with hf.worker({"default": 5, "other": 5}) as service:
        worker = service.worker
        worker._room.due = worker._room._idle_due = monotonic() + 60
        await begun.wait()
        [run] = worker.runs.values()
        run.began -= 100
        worker._room.due = 0.0
        worker.look()
        await until(lambda: worker._room.due > 0)
        assert not worker._room.clears()
        assert await (await quick.enqueue()).result(10) == "done"
        over.set()
        await until(lambda: not worker.runs)
        worker._room.due = 0.0
        worker.look()
        assert await suspect.result(10) == "done"


@pytest.fixture
async def busy(hf):
    """A worker that has something to do, and a suspect that waits for room in it."""

    @hf.task
    async def work() -> None:
        begun.set()
        await asyncio.sleep(3600)

    begun = asyncio.Event()
    await work.options(queue="other").enqueue()
    await hf.store.claims.claim({"other": 1}, lease=60, worker="dead")
    await hf.store.claims.rescue_worker("dead")
    await work.enqueue()
    async with hf.worker({"default": 5, "other": 5}, lease=5, grace=0) as service:
        room = service.worker._room
        room.due = room._idle_due = monotonic() + 60
        await begun.wait()
        yield service.worker


async def test_the_right_to_make_room_ends_no_later_than_the_claims_of_its_holder(hf, busy):
    """Or suspects of a worker that is killed while it makes room would wait for a minute."""
    busy._room.due = 0.0
    busy.look()
    await until(busy._room.clears)
    lease = await hf.store.leases.get("holdfast:suspects")
    assert lease.until - await hf.store.now() <= 5


async def test_who_may_not_make_room_looks_again_when_another_would_have_lost_the_right(hf, busy):
    await hf.store.leases.acquire("holdfast:suspects", owner="another", ttl=60)
    busy._room.due = 0.0
    busy.look()
    await until(lambda: busy._room.due > 0)
    await until(lambda: monotonic() + 1 < busy._room.due < monotonic() + 9)
    assert not busy._room.clears()
