"""Who is alive: a worker's row from its start to its end, whatever it runs, and what is left of one that has died."""

from __future__ import annotations

import asyncio
import os
import time

from waiting import heard, until

from holdfast.jobs.deaths import Deaths
from holdfast.jobs.presence import Presence, PresenceService
from holdfast.kernel.errors import StoreUnavailable
from holdfast.kernel.here import host, version
from holdfast.kernel.service import Services
from holdfast.store.worker_records import NewWorker, WorkerState


async def test_a_worker_is_shown_from_its_start_to_its_end(hf):
    @hf.task(name="mail.send", aliases=["send"], queue="mail")
    async def send() -> None: ...

    before = await hf.store.now()
    async with hf.worker({"mail": 3, "default": 1}) as service:
        (found,) = await hf.workers.list()
        assert (found.name, found.role, found.pid) == (service.name, "worker", os.getpid())
        assert (found.host, found.version) == (host(), version())
        assert found.queues == {"mail": 3, "default": 1}
        assert {"mail.send", "send"} <= set(found.tasks)
        assert before <= found.started_at <= found.seen_at < found.until
        assert found.state is WorkerState.RUNNING
    assert await hf.workers.list() == []


async def test_what_it_runs_is_shown_with_it(hf):
    go = asyncio.Event()

    @hf.task
    async def wait() -> None:
        await go.wait()

    async with hf.worker() as service:
        handle = await wait.enqueue()
        await until(lambda: service.worker.runs)
        (found,) = await hf.workers.list()
        assert [job.id for job in found.running] == [handle.id]
        go.set()
        await handle.result(10)


async def test_a_blocked_loop_is_no_death(hf):
    @hf.task
    async def block() -> None:
        time.sleep(2.5)

    async with hf.worker(lease=1):
        handle = await block.enqueue()
        await handle.result(20)
        (found,) = await hf.workers.list()
        assert found.state is WorkerState.RUNNING
        assert found.seen_at > found.started_at + 1


async def test_one_that_leaves_says_that_it_is_draining(hf):
    go = asyncio.Event()

    @hf.task
    async def wait() -> None:
        await go.wait()

    async with hf.worker() as service:
        await wait.enqueue()
        await until(lambda: service.worker.runs)
        leaving = asyncio.ensure_future(service.stop())

        async def is_draining():
            return [each.state for each in await hf.workers.list()] == [WorkerState.DRAINING]

        while not await is_draining():
            await asyncio.sleep(0.02)
        go.set()
        await leaving


async def test_a_row_that_cannot_be_written_stops_nobody(hf, monkeypatch):
    @hf.task
    async def greet() -> str:
        return "hello"

    async def fail(*given, **named):
        raise StoreUnavailable("the disk is full")

    for verb in ("register", "beat", "leave"):
        monkeypatch.setattr(hf.store.workers, verb, fail)
    with heard("worker.not_shown") as notes:
        async with hf.worker(lease=1):
            assert await (await greet.enqueue()).result(10) == "hello"
            await until(lambda: notes)
    assert len(notes) == 1, "the same trouble is told once"
    assert await hf.workers.list() == []


async def test_one_that_was_forgotten_registers_again(hf):
    async with hf.worker(lease=1) as service:
        await hf.store.workers.leave(service.name)
        while not await hf.workers.list():
            await asyncio.sleep(0.02)


async def test_of_one_that_has_died_it_is_shown_how_many_jobs_were_put_back(hf):
    @hf.task
    async def greet() -> None: ...

    died = NewWorker(name="died-1", host="h", pid=1, version="1")
    await hf.store.workers.register(died, ttl=30)
    await greet.enqueue_many([{}, {}])
    assert len(await hf.store.claims.claim({"default": 5}, lease=30, worker="died-1")) == 2
    deaths = Deaths(hf.store, hf._inside.registry, hf._inside.portal)
    assert len(await deaths.rescue_worker("died-1")) == 2
    (found,) = await hf.workers.list()
    assert (found.state, found.rescued, found.running) == (WorkerState.DEAD, 2, ())


async def test_jobs_come_back_although_that_cannot_be_counted(hf, monkeypatch):
    @hf.task
    async def greet() -> None: ...

    async def fail(*given, **named):
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(hf.store.workers, "charge", fail)
    monkeypatch.setattr(hf.store.workers, "bury", fail)
    await greet.enqueue()
    await hf.store.claims.claim({"default": 5}, lease=30, worker="died-1")
    assert len(await Deaths(hf.store, hf._inside.registry, hf._inside.portal).rescue_worker("died-1")) == 1


async def test_a_process_without_a_renewer_shows_itself_too(hf):
    relay = NewWorker(name="relay-1", role="relay", host="h", pid=1, version="1")
    service = PresenceService(hf.store, Presence(relay, ttl=1))
    async with Services([service]):
        (first,) = await hf.workers.list()
        assert first.role == "relay"
        while (await hf.workers.list())[0].seen_at == first.seen_at:
            await asyncio.sleep(0.05)
    assert await hf.workers.list() == []
