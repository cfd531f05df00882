"""What a worker still writes when it leaves: what has ended is not done again, and what has not goes back uncharged."""

import asyncio

import pytest
from waiting import until

from holdfast import Job, Middleware
from holdfast.jobs import returns
from holdfast.jobs.ends import Ends
from holdfast.jobs.ends_of_runs import EndsOfRuns
from holdfast.jobs.hooks import Hooks
from holdfast.jobs.registry import Registry
from holdfast.jobs.run import Stop
from holdfast.jobs.worker import Worker
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import StoreUnavailable
from holdfast.kernel.outcomes import Done
from holdfast.store.records import Finish
from holdfast.store.states import State


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr("holdfast.jobs.worker.STOP_GRACE", 0.2)
    monkeypatch.setattr("holdfast.jobs.endings._WRITING", 0.2)


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
    assert not await leave(service)
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
    assert not await leave(service)
    assert await handle.result(0) == "done"


@pytest.fixture
def deaf(hf):
    """A task that goes on when it is told to stop, until `go`."""
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

    deaf.begun, deaf.go = begun, go
    return deaf


async def test_a_finish_that_fails_at_the_very_end_is_tried_again(hf, deaf, monkeypatch, short):
    finish, refusals = hf.store.claims.finish, [2]

    async def refuse(finishes, **options):
        if refusals[0]:
            refusals[0] -= 1
            raise RuntimeError("whatever it is")
        return await finish(finishes, **options)

    handle = await deaf.enqueue()
    service = hf.worker()
    await service.start()
    await deaf.begun.wait()
    await service.stop(grace=0)
    monkeypatch.setattr("holdfast.jobs.endings._WRITING", 5)
    monkeypatch.setattr(hf.store.claims, "finish", refuse)
    deaf.go.set()  # after it has left, as of a worker within another program
    await until(lambda: not service.worker.runs)
    assert refusals == [0]
    assert not await service.let_go()
    assert await handle.result(0) == "done"


async def test_what_is_being_put_back_goes_back_although_its_worker_leaves(hf, monkeypatch):
    release, tried = hf.store.claims.release, asyncio.Event()

    async def once(claims, **named):
        if not tried.is_set():
            tried.set()
            raise StoreUnavailable("a blip")
        return await release(claims, **named)

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


@pytest.fixture
async def claims(hf):
    @hf.task
    async def never() -> None: ...

    await never.enqueue_many([{}] * 4)
    return await hf.store.claims.claim({"default": 4}, lease=60, worker="w")


def returns_of(store, **options):
    options = {"lease": 60, "is_over": lambda _: False, "on_empty": lambda: None} | options
    return returns.Returns(store.claims, ends_of_runs(store), **options)


def ends_of_runs(store):
    """Of a program without handlers of ends."""
    return EndsOfRuns(store, Ends(store, Registry(Hooks(), lambda _: None), None))


async def test_one_that_cannot_be_put_back_does_not_keep_those_that_come_later(hf, claims, monkeypatch):
    release = hf.store.claims.release

    async def refuse(wanted, **named):
        if claims[0] in wanted:
            raise StoreUnavailable("not now")
        return await release(wanted, **named)

    monkeypatch.setattr(hf.store.claims, "release", refuse)
    back = returns_of(hf.store)
    back.begin(claims[:1])
    async with asyncio.timeout(1):
        await back.put_back(claims[1:])
    assert [(await hf.jobs.get(claim.job_id)).state for claim in claims[1:]] == [State.QUEUED] * 3


async def test_who_leaves_tries_again_at_once_although_the_store_was_away_for_long(hf, claims, monkeypatch):
    monkeypatch.setattr(returns, "_PAUSE", 3600.0)
    release, away = hf.store.claims.release, [True]

    async def refuse(wanted, **named):
        if away:
            raise StoreUnavailable("not now")
        return await release(wanted, **named)

    monkeypatch.setattr(hf.store.claims, "release", refuse)
    back = returns_of(hf.store)
    back.begin(claims)
    await asyncio.sleep(0.05)
    away.clear()
    await back.rest()
    assert back.is_empty
    assert (await hf.jobs.get(claims[0].job_id)).state is State.QUEUED


async def test_what_has_ended_meanwhile_is_not_put_back(hf, claims):
    ended = claims[0].job_id, claims[0].token
    await returns_of(hf.store, is_over=lambda key: key == ended).put_back(claims)
    states = [(await hf.jobs.get(claim.job_id)).state for claim in claims]
    assert states == [State.RUNNING, *[State.QUEUED] * 3]


async def test_what_cannot_be_put_back_is_given_up_with_its_lease(hf, claims, monkeypatch):
    async def refuse(wanted, **named):
        raise StoreUnavailable("never")

    monkeypatch.setattr(hf.store.claims, "release", refuse)
    back = returns_of(hf.store, lease=0.1)
    await back.put_back(claims)
    assert back.is_empty


async def test_a_lock_is_given_back_although_that_takes_longer_than_anyone_waits(hf, monkeypatch):
    monkeypatch.setattr("holdfast.jobs.executor._UNLOCKING", 0.05)
    release = hf.store.leases.release

    async def slowly(lease):
        await asyncio.sleep(0.2)
        return await release(lease)

    @hf.task(lock="one")
    async def once() -> str:
        return "done"

    monkeypatch.setattr(hf.store.leases, "release", slowly)
    first, second = await once.enqueue(), await once.enqueue()
    async with hf.worker():
        assert await first.result(10) == "done"
        assert await second.result(10) == "done"


async def test_a_hook_that_ends_the_program_does_not_undo_a_success(hf):
    runs = []

    class Rude(Middleware):
        async def on_succeeded(self, job, result):
            raise SystemExit(3)

    @hf.task
    async def once() -> str:
        runs.append(1)
        return "done"

    hf.use(Rude())
    handle = await once.enqueue()
    async with hf.worker():
        assert await handle.result(10) == "done"
    assert runs == [1]


async def test_a_worker_is_not_idle_while_claims_are_on_their_way_back(hf, claims, monkeypatch):
    go, release, idle = asyncio.Event(), hf.store.claims.release, asyncio.Event()

    async def slowly(wanted, **named):
        await go.wait()
        return await release(wanted, **named)

    service = hf.worker(poll=0.1)
    await service.start()
    monkeypatch.setattr(hf.store.claims, "release", slowly)
    service.worker._returns.begin(claims)
    service.worker.on_idle = idle.set
    await asyncio.sleep(0.3)
    assert not idle.is_set()
    go.set()
    async with asyncio.timeout(10):
        await idle.wait()
    assert [(await hf.jobs.get(claim.job_id)).state for claim in claims] == [State.SUCCEEDED] * 4
    await service.stop()


async def test_one_that_cannot_be_put_back_does_not_keep_the_others(hf, claims, monkeypatch):
    monkeypatch.setattr(returns, "_TOGETHER", 0.1)
    release = hf.store.claims.release

    async def refuse(wanted, **named):
        if claims[2] in wanted:
            await asyncio.sleep(3600)
        return await release(wanted, **named)

    monkeypatch.setattr(hf.store.claims, "release", refuse)
    await returns_of(hf.store).put_back(claims)
    states = [(await hf.jobs.get(claim.job_id)).state for claim in claims]
    assert states.count(State.QUEUED) == 3


async def test_a_run_that_lost_its_lease_and_returns_all_the_same_is_put_back(hf):
    """At once: the renewer gave it up in time, so it is still ours."""
    begun = asyncio.Event()

    @hf.task
    async def polite(job: Job) -> str:
        if job.attempt == 1 and not begun.is_set():
            begun.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                return "tidied up"
        return "done"

    handle = await polite.enqueue()
    async with hf.worker(lease=60) as service:
        await begun.wait()
        [run] = service.worker.runs.values()
        run.halt(Stop.LOST)
        assert await handle.result(10) == "done"
    assert (await handle.record()).interruptions == 0


async def test_nothing_is_waited_for_while_others_may_run_what_goes_on_here(hf, deaf, monkeypatch, short):
    """Not even what has ended and cannot be written."""
    released, release = [], hf.store.claims.release

    async def never(*_, **__):
        await asyncio.sleep(3600)

    async def note(claims, **named):
        released.append(monotonic())
        return await release(claims, **named)

    await deaf.enqueue()
    service = hf.worker()
    await service.start()
    await deaf.begun.wait()
    monkeypatch.setattr(hf.store.claims, "finish", never)
    monkeypatch.setattr(hf.store.claims, "finish_and_claim", never)
    monkeypatch.setattr(hf.store.claims, "release", note)
    service.worker._endings._begin_apart(Finish(next(iter(service.worker.runs.values())).claim, Done()))
    await service.stop(grace=0)
    assert await service.let_go()
    assert monotonic() - released[-1] < 0.4
    deaf.go.set()
