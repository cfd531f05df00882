"""Plain functions that hear of deaths: in a thread, in the transaction that makes the job dead."""

import threading
import time

import pytest
from running import record_of
from waiting import heard

from holdfast import Backoff, Job
from holdfast.jobs.blocking import BlockingTx
from holdfast.jobs.deaths import Deaths
from holdfast.store.states import State


@pytest.fixture
async def letters(hf):
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS letters (job TEXT PRIMARY KEY)")
        await tx.execute("DELETE FROM letters")

    async def read():
        async with hf.transaction() as tx:
            return [job for (job,) in await tx.fetch("SELECT job FROM letters")]

    return read


@pytest.fixture
def send(hf):
    @hf.task(retry=Backoff(attempts=1))
    def send(n: int = 0) -> None:
        raise ValueError("no")

    return send


def write(job: Job, tx: BlockingTx) -> None:
    tx.execute("INSERT INTO letters (job) VALUES ($1)", job.id)


async def test_what_it_writes_commits_with_the_death(hf, letters, send):
    threads = []

    @hf.task
    def mourn(n: int) -> None: ...

    @hf.on_dead(send)
    def tell(job: Job, tx: BlockingTx) -> None:
        threads.append(threading.current_thread())
        write(job, tx)
        assert tx.fetch("SELECT count(*) FROM letters") == [(1,)]
        mourn.options(tx=tx, delay=60).enqueue_sync(1)

    async with hf.worker():
        record = await record_of(hf, send, state="dead")
    assert await letters() == [record.id]
    assert [job.task for job in await hf.store.jobs.find(state=State.QUEUED)] == [mourn.name]
    assert threads != [threading.main_thread()]


async def test_one_that_fails_rolls_back_and_the_job_is_dead(hf, letters, send):
    @hf.on_dead(send)
    def tell(job, tx):
        write(job, tx)
        raise RuntimeError("mail server is down")

    with heard("on_dead.failed") as notes:
        async with hf.worker():
            await record_of(hf, send, state="dead")
    assert await letters() == []
    assert "mail server is down" in notes[0]["error"]


async def test_one_that_hangs_is_given_up(hf, letters, send, monkeypatch):
    monkeypatch.setattr("holdfast.jobs.judge.HANDLER_LIMIT", 0.1)

    @hf.on_dead(send)
    def tell(job, tx):
        write(job, tx)
        while True:
            time.sleep(0.01)

    with heard("on_dead.failed") as notes:
        async with hf.worker():
            await record_of(hf, send, state="dead")
    assert await letters() == []
    assert len(notes) == 1


async def test_an_async_one_behind_a_plain_decorator_is_awaited(hf, letters, send):
    def logged(function):
        return lambda job, tx: function(job, tx.inner)

    @hf.on_dead(send)
    @logged
    async def tell(job, tx):
        await tx.execute("INSERT INTO letters (job) VALUES ($1)", job.id)

    async with hf.worker():
        record = await record_of(hf, send, state="dead")
    assert await letters() == [record.id]


async def test_it_hears_of_a_job_that_has_killed_its_workers(hf, letters):
    @hf.task(name="killer")
    async def killer() -> None: ...

    hf.on_dead(killer)(write)
    dying = await killer.enqueue()
    for number in range(4):
        worker = f"w{number}"
        await hf.store.claims.claim_suspect(["default"], lease=60, worker=worker)
        await hf.store.claims.claim({"default": 1}, lease=60, worker=worker)
        await Deaths(hf.store, hf._inside.registry, hf._inside.portal).rescue_worker(worker)
    assert await dying.status() == State.DEAD
    assert await letters() == [dying.id]
