"""Whatever a task, a hook or a handler raises: its slot is free again, and no secret is told."""

from __future__ import annotations

import asyncio

import pytest
from running import record_of, result_of
from waiting import heard, until

from holdfast import Backoff, Cancel, Job, Middleware, Reject, Secret, Snooze
from holdfast.kernel.errors import JobCancelled, JobDead, LeaseLost, UsageError
from holdfast.testing import drain


async def test_on_dead_writes_in_the_same_transaction(hf):
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS letters (job TEXT PRIMARY KEY)")
        await tx.execute("DELETE FROM letters")

    @hf.task(name="mail.send", retry=Backoff(attempts=1))
    async def send() -> None:
        raise ValueError("no")

    @hf.on_dead("mail.send")
    async def tell(job, tx):
        await tx.execute("INSERT INTO letters (job) VALUES ($1)", job.id)

    async with hf.worker():
        record = await record_of(hf, send, state="dead")
    async with hf.transaction() as tx:
        assert await tx.fetch("SELECT job FROM letters") == [(record.id,)]


async def test_an_on_dead_that_fails_rolls_back_and_the_job_is_dead(hf):
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS letters (job TEXT PRIMARY KEY)")
        await tx.execute("DELETE FROM letters")

    @hf.task(retry=Backoff(attempts=1))
    async def send() -> None:
        raise ValueError("no")

    @hf.on_dead(send)
    async def tell(job, tx):
        await tx.execute("INSERT INTO letters (job) VALUES ($1)", job.id)
        raise RuntimeError("mail server is down")

    with heard("on_dead.failed") as notes:
        async with hf.worker():
            await record_of(hf, send, state="dead")
    assert "mail server is down" in notes[0]["error"]
    async with hf.transaction() as tx:
        assert await tx.fetch("SELECT job FROM letters") == []


async def test_a_result_that_cannot_be_kept(hf):
    @hf.task
    async def odd() -> object:
        return object()

    async with hf.worker():
        with pytest.raises(JobDead, match="ran to its end, but its result cannot be kept"):
            await result_of(hf, odd)


class Weird(BaseException):
    pass


class Unread(Reject):
    def __init__(self):  # no super: it has no outcome
        Exception.__init__(self)


class Unprintable(Exception):
    def __str__(self):
        raise ZeroDivisionError


RAISED = {
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "cancelled": asyncio.CancelledError(),
    "lost": LeaseLost("of something else"),
    "weird": Weird(),
    "generator": GeneratorExit(),
    "group": BaseExceptionGroup("several", [Weird(), ValueError("inner")]),
    "unread": Unread(),
    "unprintable": Unprintable(),
    "stop": StopIteration(5),
    "recursion": RecursionError("deep"),
}


@pytest.mark.parametrize("how", list(RAISED))
@pytest.mark.filterwarnings("ignore")
async def test_whatever_a_task_raises_its_slot_is_free_again(hf, how):
    @hf.task(retry=Backoff(attempts=1))
    async def odd() -> None:
        raise RAISED[how]

    @hf.task(retry=Backoff(attempts=1))
    def odd_in_a_thread() -> None:
        raise RAISED[how]

    @hf.task
    async def fine() -> str:
        return "fine"

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    async with hf.worker({"default": 1}) as service:
        for task in (odd, odd_in_a_thread):
            with pytest.raises(JobDead):
                await result_of(hf, task)
        assert await result_of(hf, fine) == "fine"
        await until(lambda: not service.worker.runs)


async def test_a_hook_that_hangs_or_cancels_changes_nothing(hf, monkeypatch):
    monkeypatch.setattr("holdfast.jobs.hooks.HOOK_LIMIT", 0.1)

    class Odd(Middleware):
        async def on_succeeded(self, job, result):
            raise asyncio.CancelledError

        async def on_started(self, job):
            await asyncio.sleep(60)

    hf.use(Odd())

    @hf.task
    async def fine(job: Job) -> int:
        return job.attempt

    with pytest.raises(UsageError, match="such as Timing"):
        hf.use(Odd)
    async with hf.worker():
        assert await result_of(hf, fine) == 1


async def test_an_on_dead_handler_that_hangs_is_given_up(hf, monkeypatch):
    monkeypatch.setattr("holdfast.jobs.judge.HANDLER_LIMIT", 0.1)

    @hf.task(retry=Backoff(attempts=1))
    async def send() -> None:
        raise ValueError("no")

    @hf.on_dead(send)
    async def tell(job, tx):
        await asyncio.sleep(60)

    async with hf.worker():
        await record_of(hf, send, state="dead")


async def test_no_form_of_a_secret_is_kept(hf):
    secret = "top'sec\nret"

    @hf.task(retry=Backoff(attempts=1))
    async def leak(how: str, password: Secret[str]) -> None:
        match how:
            case "cancel":
                raise Cancel(f"bad password {password}")
            case "long":
                raise ValueError("x" * 1990 + password)
            case "repr":
                raise ValueError(f"bad {password!r}")
            case _:
                raise Reject(f"bad {password}")

    async with hf.worker():
        for how in ("cancel", "long", "repr", "reject"):
            handle = await leak.enqueue(how, secret)
            with pytest.raises((JobDead, JobCancelled)) as raised:
                await handle.result(10)
            record = await handle.record()
            for text in (str(raised.value), record.reason, str(record.errors)):
                assert "top" not in text, how
    assert "top" not in repr(leak.bind("x", secret))


class Panic(BaseException):
    """As extensions raise that are written in other languages."""


async def test_what_is_no_exception_is_a_failure_like_any_other(hf):
    told = []

    @hf.task(retry=Backoff(attempts=1))
    async def panics() -> None:
        raise Panic("index out of bounds")

    @hf.on_dead(panics)
    async def tell(job, tx):
        told.append(job.id)

    async with hf.worker():
        record = await record_of(hf, panics, state="dead")
    assert told == [record.id]
    assert "index out of bounds" in record.reason


async def test_what_is_no_exception_after_a_completion_that_was_rolled_back_is_charged(hf):
    @hf.task(retry=Backoff(attempts=2, first=0))
    async def panics(job: Job) -> None:
        async with hf.transaction() as tx:
            await job.complete(tx=tx)
            raise Panic("index out of bounds")

    async with hf.worker():
        record = await record_of(hf, panics, state="dead")
    assert record.attempt == 2


@pytest.mark.parametrize("alone", [True, False])
async def test_what_one_of_many_coroutines_asks_for_is_what_the_task_asks_for(hf, alone):
    """Unless another has failed beside it."""

    async def snooze():
        raise Snooze(3600)

    async def fail():
        raise RuntimeError

    @hf.task(retry=Backoff(attempts=2, first=3600, ceiling=3600))
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(snooze())
            if not alone:
                group.create_task(fail())

    handle = await work.enqueue()
    await drain(hf)
    assert (await handle.record()).attempt == (0 if alone else 1)
