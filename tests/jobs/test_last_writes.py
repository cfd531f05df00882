"""What a worker still writes when it leaves: what has ended is not done again, and what has not goes back uncharged."""

import asyncio

import pytest
from waiting import until

from holdfast import Middleware
from holdfast.jobs import returns
from holdfast.jobs.worker import Worker
from holdfast.kernel.errors import StoreUnavailable
from holdfast.store.states import State


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr("holdfast.jobs.worker._STOP_GRACE", 0.2)


async def leave(service) -> bool:
    await service.stop(grace=0)
    return await service.let_go()


async def test_what_has_ended_well_is_not_put_back_while_its_lock_is_not_given_back(hf, monkeypatch, short):
    @hf.task(lock="one")
    async def once() -> str:
        return "done"

    asked = asyncio.Event()

    async def silent(lease):
        asked.set()
        await asyncio.sleep(3600)

    monkeypatch.setattr(hf.store.leases, "release", silent)
    handle = await once.enqueue()
    service = hf.worker()
    await service.start()
    await asked.wait()
    assert await leave(service)
    assert await handle.result(0) == "done"


async def test_a_hook_that_is_slow_to_hear_of_a_success_does_not_undo_it(hf, short):
    asked = asyncio.Event()

    class Slow(Middleware):
        async def on_succeeded(self, job, result):
            asked.set()
            await asyncio.sleep(3600)

    @hf.task
    async def once() -> str:
        return "done"

    hf.use(Slow())
    handle = await once.enqueue()
    service = hf.worker()
    await service.start()
    await asked.wait()
    assert await leave(service)
    assert await handle.result(0) == "done"


async def test_a_finish_that_fails_at_the_very_end_is_tried_again(hf, monkeypatch, short):
    begun, go = asyncio.Event(), asyncio.Event()

    @hf.task
    async def deaf() -> str:
        begun.set()
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        return "done"

    finish, refusals = hf.store.claims.finish, [2]

    async def refuse(finishes, **options):
        if refusals[0]:
            refusals[0] -= 1
            raise RuntimeError("whatever it is")
        return await finish(finishes, **options)

    handle = await deaf.enqueue()
    service = hf.worker()
    await service.start()
    await begun.wait()
    await service.stop(grace=0)
    monkeypatch.setattr("holdfast.jobs.worker._STOP_GRACE", 5)
    monkeypatch.setattr(hf.store.claims, "finish", refuse)
    go.set()  # after it has left, as of a worker within another program
    await until(lambda: not service.worker.runs)
    assert refusals == [0]
    assert not await service.let_go()
    assert await handle.result(0) == "done"


async def test_what_is_being_put_back_goes_back_although_its_worker_leaves(hf, monkeypatch):
    release, tried = hf.store.claims.release, asyncio.Event()

    async def once(claims):
        if not tried.is_set():
            tried.set()
            raise StoreUnavailable("a blip")
        return await release(claims)

    go, begun = asyncio.Event(), asyncio.Event()

    @hf.task
    async def wait() -> None:
        begun.set()
        await go.wait()

    handles = await wait.enqueue_many([{}] * 20)
    service = hf.worker({"default": 2}, poll=0.1)
    await service.start()
    worker = service.worker
    worker._pace["default"].took(0.0001)  # as after thousands of quick ones: a look takes many ahead
    worker.look()
    await until(lambda: len(worker.runs) > 5)
    monkeypatch.setattr(hf.store.claims, "release", once)
    await tried.wait()
    go.set()
    await service.stop()
    records = [await handle.record() for handle in handles]
    assert State.RUNNING not in {record.state for record in records}
    assert {record.interruptions for record in records} == {0}


async def test_one_that_cannot_be_put_back_does_not_keep_the_others(hf, monkeypatch):
    monkeypatch.setattr(returns, "_TRY", 0.3)
    release, bad = hf.store.claims.release, []

    async def refuse(claims):
        if any(claim.job_id in bad for claim in claims):
            await asyncio.sleep(3600)
        return await release(claims)

    @hf.task
    async def never() -> None: ...

    monkeypatch.setattr(hf.store.claims, "release", refuse)
    handles = await never.enqueue_many([{}] * 5)
    claims = await hf.store.claims.claim({"default": 5}, lease=60, worker="w")
    bad.append(claims[2].job_id)
    await returns.Returns(hf.store.claims).put_back(claims)
    states = [await handle.status() for handle in handles]
    assert states.count(State.QUEUED) == 4


async def test_a_suspect_that_cannot_be_taken_does_not_keep_its_worker_alone(hf, monkeypatch):
    @hf.task
    async def quick() -> str:
        return "done"

    suspect = await quick.enqueue()
    await hf.store.claims.claim({"default": 1}, lease=60, worker="dead")
    await hf.store.claims.rescue_worker("dead")
    accept, fails = Worker._accept, [1]

    async def refuse(self, claims, began):
        if fails and any(claim.alone for claim in claims):
            fails.clear()
            await hf.store.claims.release(claims)
            raise RuntimeError("whatever it is")
        await accept(self, claims, began)

    monkeypatch.setattr(Worker, "_accept", refuse)
    async with hf.worker() as service:
        assert await (await quick.enqueue()).result(10) == "done"
        service.worker._room.due = 0.0
        service.worker.look()
        assert await suspect.result(10) == "done"
    assert not fails
