"""A worker that leaves: its share is done for every queue, and nothing is lost, charged or held up on the way out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
from waiting import until

from holdfast import Backoff
from holdfast.jobs import endings, worker
from holdfast.kernel.errors import JobDead, StoreUnavailable, UsageError
from holdfast.kernel.telemetry import subscribe
from holdfast.store.states import State


@pytest.fixture
def greet(hf):
    @hf.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    return greet


async def test_a_small_share_is_no_reason_to_leave_a_queue_alone(hf, greet):
    left = asyncio.Event()
    service = hf.worker({"first": 3, "second": 3}, poll=0.01)
    await service.start()
    service.worker.leave_after(1, left.set)
    handle = await greet.options(queue="second").enqueue("ada")
    assert await handle.result(10) == "hello ada"
    await left.wait()
    await service.stop()


async def test_a_claim_in_flight_is_put_back_uncharged(hf, greet, monkeypatch):
    claimed, go_on = asyncio.Event(), asyncio.Event()
    claim = hf.store.claims.claim

    async def slow(wants, **options):
        claims = await claim(wants, **options)
        if claims:
            claimed.set()
            await go_on.wait()
        return claims

    monkeypatch.setattr(hf.store.claims, "claim", slow)
    handle = await greet.enqueue("ada")
    service = hf.worker(grace=60)
    await service.start()
    await claimed.wait()
    leaving = asyncio.ensure_future(service.stop())
    await until(lambda: service.worker._draining)
    go_on.set()
    async with asyncio.timeout(5):  # it does not wait for the grace: nothing runs
        await leaving
    record = await handle.record()
    assert (record.state, record.attempt, record.interruptions) == (State.QUEUED, 0, 0)


async def test_a_suspect_in_flight_does_not_hold_up_who_leaves(hf, greet, monkeypatch):
    claimed, go_on = asyncio.Event(), asyncio.Event()
    claim_suspect = hf.store.claims.claim_suspect

    async def slow(queues, **options):
        claim = await claim_suspect(queues, **options)
        if claim is not None:
            claimed.set()
            await go_on.wait()
        return claim

    handle = await greet.enqueue("ada")
    await hf.store.claims.claim({"default": 1}, lease=60, worker="dead")
    await hf.store.claims.rescue_worker("dead")
    monkeypatch.setattr(hf.store.claims, "claim_suspect", slow)
    service = hf.worker(grace=60, poll=60)
    await service.start()
    await claimed.wait()
    leaving = asyncio.ensure_future(service.stop())
    await until(lambda: service.worker._draining)
    go_on.set()
    async with asyncio.timeout(5):  # it does not wait for the grace: nothing runs
        await leaving
    record = await handle.record()
    assert (record.state, record.attempt, record.interruptions) == (State.QUEUED, 1, 1)


async def test_what_has_ended_is_written_although_the_store_was_in_trouble(hf, monkeypatch):
    refusals, running, go_on = [3], asyncio.Event(), asyncio.Event()

    @hf.task
    async def long() -> str:
        running.set()
        await go_on.wait()
        return "done"

    finish = hf.store.claims.finish_and_claim

    async def refuse(finishes, wants, **options):
        if refusals[0]:
            refusals[0] -= 1
            raise StoreUnavailable("not now")
        return await finish(finishes, wants, **options)

    monkeypatch.setattr(hf.store.claims, "finish_and_claim", refuse)
    handle = await long.enqueue()
    service = hf.worker()
    await service.start()
    await running.wait()
    leaving = asyncio.ensure_future(service.stop())
    go_on.set()
    await leaving
    assert refusals == [0]
    assert await handle.result(0) == "done"


async def test_a_store_that_stays_away_does_not_keep_a_worker_from_leaving(hf, greet, monkeypatch):
    told = []
    forget = subscribe(lambda name, _: told.append(name))
    handle = await greet.enqueue("ada")
    service = hf.worker()

    async def refuse(*_, **__):
        raise StoreUnavailable("not now")

    for verb in ("finish", "finish_and_claim", "release"):
        monkeypatch.setattr(hf.store.claims, verb, refuse)
    await service.start()
    await until(lambda: service.worker.finished)
    await service.stop(grace=0)
    forget()
    assert "worker.left_running" in told
    assert await handle.status() is State.RUNNING  # until its lease ends


@pytest.fixture
async def working(hf):
    """A worker with a job that goes on until it may end."""
    begun, may_end = asyncio.Event(), asyncio.Event()

    @hf.task
    async def long() -> None:
        begun.set()
        await may_end.wait()

    handle = await long.enqueue()
    service = hf.worker(lease=1, grace=30)
    await service.start()
    await begun.wait()
    yield service, handle, may_end
    may_end.set()
    await service.stop()


async def renewed(service):
    [run] = service.worker.runs.values()
    before = run.until
    await until(lambda: run.until > before + 0.5)


async def test_two_who_stop_it_wait_for_the_same_end_and_jobs_are_renewed_until_then(working):
    service, handle, may_end = working
    stops = [asyncio.create_task(service.stop()) for _ in range(2)]
    await renewed(service)
    assert not any(stop.done() for stop in stops)
    may_end.set()
    await asyncio.gather(*stops)
    record = await handle.record()
    assert (record.state, record.attempt, record.interruptions) == (State.SUCCEEDED, 1, 0)


async def test_who_gives_up_waiting_for_a_stop_does_not_end_the_renewals(working):
    service, handle, may_end = working
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await service.stop()
    assert service.is_running
    await renewed(service)
    may_end.set()
    await service.stop()
    assert not service.is_running
    assert (await handle.record()).state is State.SUCCEEDED


async def test_a_worker_is_started_once(hf):
    service = hf.worker()
    async with service:
        with pytest.raises(UsageError, match=r"was started already\. Make another"):
            await service.start()
    with pytest.raises(UsageError, match="was started already"):
        await service.start()


async def test_workers_of_one_name_do_not_have_each_others_jobs(hf):
    first, second = hf.worker(name="web"), hf.worker(name="web")
    assert first.name != second.name
    assert first.name.startswith("web-")


class Client: ...


async def test_what_still_runs_goes_back_only_at_the_very_end(hf):
    """Its thread may use a resource that takes long to close: until the process ends, nobody else may run it."""
    begun, closing, may_end = asyncio.Event(), [], threading.Event()
    loop = asyncio.get_running_loop()

    @hf.resource
    async def client() -> AsyncIterator[Client]:
        yield Client()
        [record] = await hf.store.jobs.find(limit=5)
        closing.append(record.state)

    @hf.task
    def deaf(client: Client) -> None:
        while not may_end.is_set():
            try:
                loop.call_soon_threadsafe(begun.set)
                while not may_end.is_set():
                    may_end.wait(0.05)
            except BaseException:
                continue

    handle = await deaf.enqueue()
    service = hf.worker(grace=0, stuck=lambda _: None)
    await service.start()
    await begun.wait()
    await service.stop()
    assert closing == [State.RUNNING]
    assert await service.let_go()
    record = await handle.record()
    assert (record.state, record.attempt) == (State.QUEUED, 0)
    may_end.set()


async def test_of_two_who_start_it_at_once_one_is_refused(hf):
    service = hf.worker()
    told = await asyncio.gather(service.start(), service.start(), return_exceptions=True)
    assert [type(each) for each in told] == [type(None), UsageError]
    await service.stop()


async def test_a_stop_while_it_starts_waits_for_that_and_stops_it(hf):
    service = hf.worker()
    starting = asyncio.create_task(service.start())
    await asyncio.sleep(0)
    await service.stop()
    await starting
    assert not service.is_running
    assert not service.worker.runs


async def test_what_could_not_be_started_may_be_started_again(hf):
    fails = [True]

    @hf.resource
    async def client() -> AsyncIterator[Client]:
        if fails:
            raise OSError("no route")
        yield Client()

    service = hf.worker()
    with pytest.raises(OSError, match="no route"):
        await service.start()
    starting = asyncio.create_task(service.start())
    await asyncio.sleep(0)
    await service.stop()  # waits, and finds nothing to stop
    with pytest.raises(OSError, match="no route"):
        await starting
    fails.clear()
    async with service:
        assert service.is_running
    assert not service.is_running


@pytest.fixture
def busy(hf, monkeypatch):
    """Another's open transaction is in the way of what has ended, so many times; `finish` fails as often as `fails`."""
    write, finish, state = hf.store.claims.finish_and_claim, hf.store.claims.finish, SimpleNamespace()
    state.times, state.fails, state.free = 0, 0, asyncio.Event()
    state.free.set()

    async def both(finishes, wants, **options):
        if finishes and state.times > 0:
            state.times -= 1
            return [None] * len(finishes), []
        return await write(finishes, wants, **options)

    async def alone(finishes, **options):
        if state.fails > 0:
            state.fails -= 1
            raise RuntimeError("whatever it is")
        await state.free.wait()
        return await finish(finishes, **options)

    monkeypatch.setattr(hf.store.claims, "finish_and_claim", both)
    monkeypatch.setattr(hf.store.claims, "finish", alone)
    return state


async def test_a_busy_key_does_not_mean_that_nothing_is_left(hf, greet, busy):
    busy.times, idle = 5, asyncio.Event()
    handles = await greet.enqueue_many([{"name": "ada"}] * 30)
    service = hf.worker({"default": 2}, poll=60)
    await service.start()
    service.worker.on_idle = idle.set
    async with asyncio.timeout(30):
        await idle.wait()
    assert {await handle.status() for handle in handles} == {State.SUCCEEDED}
    await service.stop()


async def test_what_has_ended_is_written_before_a_worker_has_left(hf, greet, busy):
    busy.times, busy.fails = 1, 2
    handle = await greet.enqueue("ada")
    service = hf.worker(grace=0)
    await service.start()
    await until(lambda: service.worker._endings.under_way())
    await service.stop()
    assert await handle.status() is State.SUCCEEDED


async def test_what_has_ended_is_not_put_back_at_the_very_end(hf, greet, busy, monkeypatch):
    monkeypatch.setattr(worker, "STOP_GRACE", 0.2)
    monkeypatch.setattr(endings, "_WRITING", 0.2)
    busy.times = 1
    busy.free.clear()
    handle = await greet.enqueue("ada")
    service = hf.worker(grace=0)
    await service.start()
    await until(lambda: service.worker._endings.under_way())
    await service.stop()
    assert await handle.status() is State.RUNNING
    busy.free.set()
    assert await service.let_go()
    assert await handle.status() is State.SUCCEEDED


async def test_trouble_while_it_leaves_gives_up_nothing_that_can_still_be_written(
    hf, greet, busy, monkeypatch
):
    busy.times, busy.fails, write = 1, 1, hf.store.claims.finish_and_claim
    refusals = [2]

    async def refuse(finishes, wants, **options):
        if finishes and busy.times == 0 and refusals[0]:
            refusals[0] -= 1
            raise StoreUnavailable("not now")
        return await write(finishes, wants, **options)

    handle = await greet.enqueue("ada")
    service = hf.worker(grace=0)
    monkeypatch.setattr(hf.store.claims, "finish_and_claim", refuse)
    await service.start()
    await until(lambda: service.worker._endings.under_way())
    await service.stop()
    assert await handle.status() is State.SUCCEEDED


async def test_a_shorter_grace_counts_also_when_it_is_leaving_already(hf):
    started = asyncio.Event()

    @hf.task
    async def long() -> None:
        started.set()
        await asyncio.sleep(3600)

    service = hf.worker(grace=3600)
    await service.start()
    handle = await long.enqueue()
    await started.wait()
    leaving = asyncio.create_task(service.stop())
    await until(lambda: service.worker._grace is not None)
    async with asyncio.timeout(10):
        await service.stop(grace=0)
        await leaving
    assert (await handle.record()).attempt == 0


async def test_what_a_plain_function_returns_is_awaited_within_its_timeout(hf):
    async def slow() -> None:
        await asyncio.sleep(3600)

    @hf.task(timeout=0.2, retry=Backoff(attempts=1))
    def plain():
        return slow()

    handle = await plain.enqueue()
    async with hf.worker():
        with pytest.raises(JobDead, match="timeout"):
            await handle.result(10)
