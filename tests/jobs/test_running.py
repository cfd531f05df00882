"""Running jobs: results, failures, retries, timeouts, cancellation, locks, hooks, resources."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from running import QUICK, record_of, result_of
from waiting import heard, until

from holdfast import Backoff, Cancel, Job, Middleware, Reject, Retry, Secret, Snooze
from holdfast.kernel.context import context
from holdfast.kernel.errors import JobCancelled, JobDead
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.states import Held, State


async def test_results_of_async_and_plain_functions(hf):
    @hf.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    @hf.task
    def add(a: int, b: int) -> int:
        assert threading.current_thread() is not threading.main_thread()
        return a + b

    @hf.task
    async def nothing() -> None: ...

    async with hf.worker():
        assert await result_of(hf, greet, "ada") == "hello ada"
        assert await result_of(hf, add, 1, 2) == 3
        assert await result_of(hf, nothing) is None


async def test_a_failing_task_is_tried_again_and_its_errors_are_kept(hf):
    @hf.task(retry=QUICK)
    async def flaky(job: Job, password: Secret[str]) -> int:
        if job.attempt < 3:
            raise ValueError(f"cannot log in with {password}")
        return job.attempt

    async with hf.worker():
        handle = await flaky.enqueue("hunter2")
        assert await handle.result(10) == 3
    record = await handle.record()
    assert [error.attempt for error in record.errors] == [1, 2]
    assert "ValueError: cannot log in with ***" in record.errors[0].error
    assert "hunter2" not in str(record.errors)
    assert "test_running.py" in record.errors[0].error


async def test_a_job_without_attempts_left_is_dead(hf):
    @hf.task(retry=QUICK)
    async def broken() -> None:
        raise ValueError("always")

    async with hf.worker():
        with pytest.raises(JobDead, match="ValueError: always"):
            await result_of(hf, broken)


async def test_an_error_that_is_never_tried_again(hf):
    @hf.task(retry=Backoff(attempts=5, never=(KeyError,)))
    async def broken() -> None:
        raise KeyError("gone")

    async with hf.worker():
        record = await record_of(hf, broken, state="dead")
    assert record.attempt == 1


async def test_control_exceptions(hf):
    seen = []

    @hf.task(retry=QUICK)
    async def control(job: Job, how: str) -> str:
        seen.append((how, job.attempt))
        if seen.count((how, job.attempt)) > 1 or job.attempt > 1:
            return f"{how} {job.attempt}"
        match how:
            case "retry":
                raise Retry(after=0.01)
            case "snooze":
                raise Snooze(0.01)
            case "cancel":
                raise Cancel("gone")
            case _:
                raise Reject("bad address")

    async with hf.worker():
        assert await result_of(hf, control, "retry") == "retry 2"
        assert await result_of(hf, control, "snooze") == "snooze 1"  # no attempt was charged
        with pytest.raises(JobCancelled, match="gone"):
            await result_of(hf, control, "cancel")
        with pytest.raises(JobDead, match="bad address"):
            await result_of(hf, control, "reject")


async def test_an_endless_retry_is_dead_in_the_end(hf):
    @hf.task(retry=QUICK)
    async def never() -> None:
        raise Retry(after=0)

    async with hf.worker():
        record = await record_of(hf, never, state="dead")
    assert record.attempt == 3


async def test_timeouts_of_both_kinds(hf):
    stopped = []

    @hf.task(timeout=0.1, retry=Backoff(attempts=1))
    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            stopped.append("slow")

    @hf.task(timeout=0.1, retry=Backoff(attempts=1))
    def busy() -> None:
        try:
            while True:
                time.sleep(0.001)
        finally:
            stopped.append("busy")

    async with hf.worker():
        for task in (slow, busy):
            with pytest.raises(JobDead, match=r"TimeoutError: it took longer than its timeout of 0.1 s"):
                await result_of(hf, task)
    assert stopped == ["slow", "busy"]


async def test_a_running_job_is_cancelled(hf):
    started = asyncio.Event()

    @hf.task
    async def long() -> None:
        started.set()
        await asyncio.sleep(60)

    async with hf.worker():  # far sooner than at a third of its lease of 30 s
        handle = await long.enqueue()
        await started.wait()
        assert await handle.cancel("not needed") is State.RUNNING
        with pytest.raises(JobCancelled, match="not needed"):
            await handle.result(5)


async def test_progress_is_seen_from_outside(hf):
    go = asyncio.Event()

    @hf.task
    async def long(job: Job) -> None:
        await job.heartbeat(progress=0.4, note="12 of 30")
        await go.wait()

    async with hf.worker():
        handle = await long.enqueue()

        async def told():
            record = await handle.record()
            return (record.progress, record.note) == (0.4, "12 of 30")

        await until(told)
        go.set()
        await handle.result(10)


@pytest.mark.parametrize("note", ["é" * 300, "word " * 1_000, "a\0b\ud800"], ids=["bytes", "long", "odd"])
async def test_a_note_that_cannot_be_kept_as_it_is_ends_no_job(hf, note):
    @hf.task(retry=Backoff(attempts=1))
    async def long(job: Job) -> str | None:
        await job.heartbeat(note=note)
        record = await hf.jobs.get(job.id)
        return record.note

    async with hf.worker():
        kept = await result_of(hf, long)
        assert 0 < len(kept) <= 500


async def test_progress_from_a_plain_function(hf):
    @hf.task
    def long(job: Job) -> str:
        job.blocking.heartbeat(0.5)
        return job.key_for("charge")

    async with hf.worker():
        first = await result_of(hf, long)
        assert len(first) == 32
        assert first != await result_of(hf, long)


async def test_a_task_that_nobody_knows_waits_and_is_told(hf):
    with heard("job.unknown_task") as notes:
        async with hf.worker():
            job_id = new_id()
            await hf.store.jobs.enqueue([NewJob(id=job_id, task="later.task")])
            record = await until(lambda: _held(hf, job_id))
    assert (record.held, record.attempt) == (Held.UNKNOWN_TASK, 0)
    assert notes[0]["task"] == "later.task"

    @hf.task(name="later.task")
    async def later() -> str:
        return "known now"

    async with hf.worker():
        assert await hf.jobs.handle(job_id).result(10) == "known now"


async def _held(hf, job_id):
    record = await hf.jobs.get(job_id)
    return record if record.held else None


async def test_newer_arguments_wait_for_newer_code(hf):
    @hf.task(name="mail")
    async def mail(to: str) -> None: ...

    job_id = new_id()
    await hf.store.jobs.enqueue([NewJob(id=job_id, task="mail", args='{"to": "a", "subject": "new"}')])
    async with hf.worker():
        record = await until(lambda: _held(hf, job_id))
    assert record.held is Held.UNKNOWN_TASK


async def test_jobs_that_another_did_not_know_are_looked_for_in_a_hundredth_of_the_time(hf, monkeypatch):
    """Often, so that what only the newer version knows waits for seconds; but there may be a million that nobody knows."""

    @hf.task
    async def greet() -> None: ...

    asked, took = [], [0.0]
    here = [1_000.0]

    async def unhold(reason, *, tasks):
        asked.append((reason, list(tasks)))
        here[0] += took[0]
        return 0

    worker = hf.worker()
    monkeypatch.setattr(hf.store.holds, "unhold", unhold)
    monkeypatch.setattr("holdfast.jobs.service.monotonic", lambda: here[0])
    await worker._let_known_go()
    here[0] += 5
    took[0] = 1.0
    await worker._let_known_go()
    assert asked == [(Held.UNKNOWN_TASK, hf._inside.registry.names)] * 2
    here[0] += 98
    await worker._let_known_go()
    assert len(asked) == 2
    here[0] += 1
    await worker._let_known_go()
    assert len(asked) == 3


@pytest.mark.parametrize("args", ['{"to": 5}', '{"to": ', "[]", "{}"])
async def test_arguments_that_cannot_be_read_are_dead_and_kept(hf, args):
    @hf.task(name="mail")
    async def mail(to: str) -> None: ...

    job_id = new_id()
    await hf.store.jobs.enqueue([NewJob(id=job_id, task="mail", args=args)])
    async with hf.worker():
        await until(lambda: _state(hf, job_id, "dead"))
    record = await hf.jobs.get(job_id)
    assert record.args == args
    assert "cannot be read" in record.reason


async def _state(hf, job_id, state):
    return (await hf.jobs.get(job_id)).state == state


async def test_an_old_name_runs_the_task(hf):
    @hf.task(name="new", aliases=["old"])
    async def renamed(n: int) -> int:
        return n

    job_id = new_id()
    await hf.store.jobs.enqueue([NewJob(id=job_id, task="old", args='{"n": 4}')])
    async with hf.worker():
        assert await hf.jobs.handle(job_id).result(10) == 4


async def test_middleware_and_hooks_in_order(hf):
    told = []

    class Outer(Middleware):
        async def run(self, job, call_next):
            told.append(f"outer before {job.task}")
            result = await call_next()
            told.append("outer after")
            return result

        def on_started(self, job):
            told.append(f"started {job.attempt}")

        async def on_succeeded(self, job, result):
            told.append(f"succeeded {result}")

        def on_failed(self, job, error):
            told.append(f"failed {error}")

        def on_retried(self, job, error, after):
            told.append("retried")
            raise RuntimeError("a hook that fails changes nothing")

    class Inner(Middleware):
        async def run(self, job, call_next):
            told.append("inner")
            return await call_next() + 1

    hf.use(Outer())
    hf.use(Inner())

    @hf.task(name="t", retry=QUICK)
    async def task(job: Job) -> int:
        if job.attempt == 1:
            raise ValueError("once")
        return 1

    with heard("hook.failed") as notes:
        async with hf.worker():
            assert await result_of(hf, task) == 2
    assert told == [
        "started 1", "outer before t", "inner", "failed once", "retried",
        "started 2", "outer before t", "inner", "outer after", "succeeded 2",
    ]  # fmt: skip
    assert len(notes) == 1


async def test_middleware_that_is_no_coroutine_answers_instead_of_the_task(hf):
    class Instead(Middleware):
        def run(self, job, call_next):
            return call_next() if job.task == "asked" else 7

    hf.use(Instead())

    @hf.task(name="asked")
    async def asked() -> int:
        return 1

    @hf.task(name="spared", retry=QUICK)
    async def spared() -> int:
        return 1

    async with hf.worker():
        assert [await result_of(hf, asked), await result_of(hf, spared)] == [1, 7]


class Client:
    def __init__(self, name):
        self.name = name


class Session:
    pass


async def test_resources_are_given_by_type(hf):
    life = []

    @hf.task
    async def fetch(n: int, client: Client, session: Session) -> str:
        return f"{client.name} {n} {type(session).__name__}"

    @hf.resource
    async def client() -> AsyncIterator[Client]:
        life.append("open")
        yield Client("http")
        life.append("closed")

    @hf.resource
    def session() -> Iterator[Session]:
        yield Session()

    async with hf.worker():
        assert await result_of(hf, fetch, 5) == "http 5 Session"
        assert life == ["open"]
    assert life == ["open", "closed"]


async def test_the_context_of_a_run(hf):
    @hf.task
    async def child() -> None: ...

    @hf.task
    async def parent(job: Job) -> str:
        assert context().job_id == job.id
        return (await child.enqueue()).id

    async with hf.worker():
        handle = await parent.options(correlation_id="story").enqueue()
        record = await hf.jobs.get(await handle.result(10))
    assert (record.correlation_id, record.causation_id) == ("story", handle.id)


async def test_a_plain_decorator_over_an_async_task(hf):
    def counted(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs)

        return inner

    @hf.task
    @counted
    async def greet(name: str) -> str:
        return f"hello {name}"

    async with hf.worker():
        assert await result_of(hf, greet, "ada") == "hello ada"


async def test_the_next_of_a_key_does_not_wait_for_a_poll(hf):
    @hf.task
    async def step() -> None: ...

    async with hf.worker({"default": 10}, poll=60):
        handles = [await step.options(ordered="user:42").enqueue() for _ in range(5)]
        for handle in handles:
            await handle.result(10)


async def test_a_lone_tenant_does_not_wait_for_a_poll(hf):
    @hf.task
    async def step() -> None: ...

    async with hf.worker({"default": 2}, poll=60):
        for handle in await step.options(tenant="acme").enqueue_many([{}] * 50):
            await handle.result(10)


async def test_a_plain_function_that_a_middleware_gave_up_does_not_run_beside_its_next_attempt(hf):
    running, most, runs = 0, 0, []

    @hf.task(retry=QUICK)
    def slow() -> None:
        nonlocal running, most
        runs.append(1)
        running += 1
        most = max(most, running)
        try:
            for _ in range(10_000 if len(runs) == 1 else 0):
                time.sleep(0.001)
        finally:
            running -= 1

    class Limit(Middleware):
        async def run(self, job, call_next):
            async with asyncio.timeout(0.05):
                return await call_next()

    hf.use(Limit())
    async with hf.worker({"default": 2}):
        await result_of(hf, slow)
    assert (most, len(runs)) == (1, 2)
