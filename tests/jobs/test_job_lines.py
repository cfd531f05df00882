"""What the log says of jobs: each failed attempt, each end that a person should know, and nothing that is secret."""

from __future__ import annotations

import asyncio
import logging

import pytest
from running import record_of, result_of
from waiting import until

from holdfast import Backoff, Cancel, Holdfast, Job, Retry, Secret, Snooze
from holdfast.kernel import floods, logged
from holdfast.kernel.errors import StoreUnavailable
from holdfast.observe import ConsoleFormatter, JsonFormatter
from holdfast.store.states import State

CANARY = "c4nary-t0ken"
SOON = Backoff(attempts=2, first=0.05, ceiling=0.05)


@pytest.fixture(autouse=True)
def fresh(monkeypatch, caplog):
    monkeypatch.setattr(logged, "_floods", floods.Floods(logged._tell_flood))
    caplog.set_level(logging.INFO, logger="holdfast")


def of(caplog, event):
    return [record for record in caplog.records if getattr(record, "event", None) == event]


async def test_each_failed_attempt_and_the_last_one(hf, caplog):
    @hf.task(retry=SOON)
    async def broken() -> None:
        raise KeyError("x")

    async with hf.worker():
        record = await record_of(hf, broken, state=State.DEAD)
    [failed], [died] = of(caplog, "job.failed"), of(caplog, "job.died")
    assert failed.levelno == logging.WARNING
    assert (
        f"job {record.id} of {broken.name} failed, attempt 1 of 2; it runs again in 0." in failed.getMessage()
    )
    assert "KeyError: 'x' (test_job_lines.py:" in failed.getMessage()
    assert (failed.job_id, failed.task, failed.queue, failed.attempt) == (
        record.id,
        broken.name,
        "default",
        1,
    )
    assert failed.correlation_id == record.id
    assert (died.levelno, died.attempt) == (logging.ERROR, 2)
    assert "in broken" in died.exc_text
    assert not failed.exc_text


async def test_what_a_task_says_on_purpose_has_no_traceback(hf, caplog):
    @hf.task(retry=SOON)
    async def later() -> None:
        raise Retry(after=0.01, error="not yet")

    @hf.task
    async def gone() -> None:
        raise Cancel("the order is gone")

    @hf.task
    async def waits(job: Job) -> None:
        if not of(caplog, "job.snoozed"):
            raise Snooze(0.01)

    caplog.set_level(logging.DEBUG, logger="holdfast")
    async with hf.worker():
        await record_of(hf, later, state=State.DEAD)
        await record_of(hf, gone, state=State.CANCELLED)
        await result_of(hf, waits)
    assert of(caplog, "job.failed")[0].getMessage().endswith("not yet")
    assert not any(record.exc_text for record in caplog.records)
    [cancelled] = of(caplog, "job.cancelled")
    assert (cancelled.levelno, cancelled.reason) == (logging.INFO, "the order is gone")


async def test_an_unknown_job_waits_for_a_person(hf, caplog):
    @hf.task(retry=Backoff(attempts=1))
    async def pay(job: Job) -> None:
        async def charge() -> None:
            raise TimeoutError("no answer")

        await job.effect("charge", charge, policy="at_most_once")

    async with hf.worker():
        record = await record_of(hf, pay, state=State.UNKNOWN)
    [unknown] = of(caplog, "job.unknown")
    assert (unknown.levelno, unknown.job_id, unknown.queue) == (logging.ERROR, record.id, "default")
    assert "waits for a person" in unknown.getMessage()


async def test_no_line_has_a_secret(hf, caplog):
    guard = hf.guard("provider", retry=Backoff(attempts=2, first=0.01, ceiling=0.01))

    @hf.task(retry=SOON)
    async def send(token: Secret[str]) -> None:
        async def call() -> None:
            raise ConnectionError(f"refused {token}")

        logging.getLogger("holdfast.test").warning("in a line of the program: %s", token)
        await guard.call(call)

    @hf.task(retry=SOON)
    async def results(token: Secret[str]) -> object:
        raise ValueError({"token": token})

    @hf.on_dead(results)
    async def fails(job, tx) -> None:
        raise RuntimeError(CANARY)

    caplog.set_level(logging.DEBUG, logger="holdfast")
    lines, forms = [], (ConsoleFormatter(), JsonFormatter(), logging.Formatter("%(message)s %(__dict__)s"))

    class Keeper(logging.Handler):
        def emit(self, record):
            mine = record.name == "holdfast.test"  # formatted by the program itself, it is the program's
            lines.extend(form.format(record) for form in forms[: 2 if mine else 3])

    logging.getLogger("holdfast").addHandler(keeper := Keeper())
    try:
        async with hf.worker():
            for task in (send, results):
                await record_of(hf, task, CANARY, state=State.DEAD)
    finally:
        logging.getLogger("holdfast").removeHandler(keeper)
    assert len(lines) > 12
    assert [line for line in lines if CANARY in line] == []


async def test_arguments_that_cannot_be_read_are_not_told(hf, url, caplog):
    @hf.task(name="typed")
    async def before(token: Secret[str]) -> None: ...

    await before.enqueue(CANARY)
    async with Holdfast(url) as newer:

        @newer.task(name="typed")
        async def after(token: Secret[int]) -> None: ...

        async with newer.worker():
            await until(lambda: of(caplog, "job.died"))
    assert CANARY not in caplog.text


async def test_lines_of_the_program_know_their_job(hf, caplog):
    seen = []

    class Keeper(logging.Handler):
        def emit(self, record):
            seen.append(JsonFormatter().format(record))

    @hf.task
    async def waits(job: Job) -> None:
        logging.getLogger("shop").warning("async of %s", job.id)

    @hf.task
    def blocks(job: Job) -> None:
        logging.getLogger("shop").warning("thread of %s", job.id)

    logging.getLogger("shop").addHandler(keeper := Keeper())
    try:
        async with hf.worker():
            await result_of(hf, waits)
            await result_of(hf, blocks)
    finally:
        logging.getLogger("shop").removeHandler(keeper)
    for line, how in zip(seen, ("async", "thread"), strict=True):
        told = line.partition(f'"message": "{how} of ')[2][:36]
        assert f'"job_id": "{told}"' in line


async def test_a_lost_run_says_what_is_known(hf, caplog, monkeypatch):
    @hf.task
    async def long() -> None:
        await asyncio.sleep(60)

    handle = await long.enqueue()
    service = hf.worker(lease=1)
    await service.start()
    await until(lambda: service.worker.runs and next(iter(service.worker.runs.values())).began)

    async def down(*_, **__):
        raise StoreUnavailable("the server is gone")

    monkeypatch.setattr(type(hf.store.claims), "renew", down)
    await until(lambda: of(caplog, "job.lease_lost"))
    [lost] = of(caplog, "job.lease_lost")
    assert lost.job_id == handle.id
    assert lost.levelno == logging.WARNING
    assert "another worker" not in lost.getMessage()
    assert "it was not renewed for 1 s" in lost.getMessage()
    assert "the server is gone" in lost.getMessage()
    monkeypatch.undo()
    await service.stop(grace=0)


async def test_many_failures_are_few_lines(hf, caplog):
    ran = []

    @hf.task(retry=Backoff(attempts=1))
    async def broken(number: int) -> None:
        ran.append(number)
        raise ValueError(number)

    await broken.enqueue_many([{"number": number} for number in range(1_000)])
    async with hf.worker():
        await until(lambda: len(ran) == 1_000)
    died = of(caplog, "job.died")
    assert sum(getattr(record, "left_out", 1) for record in died) == 1_000
    assert len(died) <= 100, "ten in ten seconds, and one for the others"
