"""Running jobs: results, failures, retries, timeouts, cancellation, locks, hooks, resources."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from waiting import heard, until

from holdfast import Backoff, Cancel, Holdfast, Job, Middleware, Reject, Retry, Secret, Snooze
from holdfast.kernel.context import context
from holdfast.kernel.errors import JobCancelled, JobDead, LeaseLost, UsageError
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.states import Held, State

QUICK = Backoff(attempts=3, first=0.01, ceiling=0.02)


async def result_of(hf, task, *args, seconds=10, **options):
    handle = await task.options(**options).enqueue(*args)
    return await handle.result(seconds)


async def record_of(hf, task, *args, state):
    handle = await task.enqueue(*args)

    async def there():
        record = await handle.record()
        return record if record.state == state else None

    return await until(there)


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


async def test_a_held_lock_puts_off_uncharged(hf):
    running, most = 0, 0

    @hf.task(lock="user:{user}")
    async def alone(user: str) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1

    async with hf.worker({"default": 10}):
        handles = await alone.enqueue_many([{"user": "ada"}] * 3)
        for handle in handles:
            await handle.result(20)
    assert most == 1
    assert {(await handle.record()).attempt for handle in handles} == {1}


async def test_a_stolen_lock_stops_its_holder(hf):
    started = asyncio.Event()
    runs = []

    @hf.task(lock="report")
    async def report(job: Job) -> str:
        runs.append(job.token)
        started.set()
        if len(runs) == 1:
            await asyncio.sleep(60)
        return "done"

    async with hf.worker(lease=1.0):
        handle = await report.enqueue()
        await started.wait()
        assert await hf.store.leases.steal("report", actor="ada", reason="stuck")
        assert await handle.result(20) == "done"
    assert len(runs) == 2
    assert (await handle.record()).attempt == 1


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
    monkeypatch.setattr("holdfast.jobs.executor.HANDLER_LIMIT", 0.1)

    @hf.task(retry=Backoff(attempts=1))
    async def send() -> None:
        raise ValueError("no")

    @hf.on_dead(send)
    async def tell(job, tx):
        await asyncio.sleep(60)

    async with hf.worker():
        await record_of(hf, send, state="dead")


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


async def test_jobs_taken_ahead_are_given_back_when_they_cannot_begin(url):
    async with Holdfast(url) as one, Holdfast(url) as two:
        for hf in (one, two):

            @hf.task(name="work")
            async def work(seconds: float) -> None:
                await asyncio.sleep(seconds)

        async with one.worker({"default": 4}) as first:
            fast = await one.registry.task("work").enqueue_many([{"seconds": 0.0}] * 500)
            for handle in fast:
                await handle.result(20)
            await one.registry.task("work").enqueue_many([{"seconds": 1.0}] * 40)
            await until(lambda: len(first.worker.runs) > 4)
            async with two.worker({"default": 4}, grace=0) as second:
                await until(lambda: len(second.worker.runs) >= 4)
                first._grace = 0


async def test_priority_and_pause(hf):
    order = []

    @hf.task
    async def note(n: int) -> None:
        order.append(n)

    await hf.queues.pause("default", by="ada")
    async with hf.worker({"default": 1}):
        for priority in (0, 5, -5):
            await note.options(priority=priority).enqueue(priority)
        await asyncio.sleep(0.2)
        assert order == []
        await hf.queues.resume("default", by="ada")
        await until(lambda: order == [5, 0, -5])


async def test_ordered_jobs_run_one_at_a_time_in_order(hf):
    order, running = [], 0

    @hf.task
    async def step(n: int) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0.01)
        order.append(n)
        running -= 1

    async with hf.worker({"default": 10}):
        for n in range(5):
            await step.options(ordered="user:42").enqueue(n)
        await until(lambda: order == [0, 1, 2, 3, 4])


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


async def test_concurrency_is_bounded_for_each_key(hf):
    running, most = {"a": 0, "b": 0}, {"a": 0, "b": 0}

    @hf.task(concurrency=("tenant:{tenant}", 2))
    async def work(tenant: str) -> None:
        running[tenant] += 1
        most[tenant] = max(most[tenant], running[tenant])
        await asyncio.sleep(0.03)
        running[tenant] -= 1

    async with hf.worker({"default": 20}):
        handles = await work.enqueue_many([{"tenant": name} for name in "ab" * 6])
        for handle in handles:
            await handle.result(20)
    assert most == {"a": 2, "b": 2}


async def test_a_blocked_loop_is_told_with_its_task(hf):
    @hf.task(name="bad.sleep")
    async def bad() -> None:
        time.sleep(1.8)

    with heard("loop.blocked") as notes:
        async with hf.worker(lease=2.0):
            handle = await bad.enqueue()
            await handle.result(10)
    assert notes[0]["task"] == "bad.sleep"
    assert (await handle.record()).attempt == 1  # the lease was renewed meanwhile


async def test_a_fence_refuses_the_late_finish(hf):
    """Someone else has the job meanwhile: this run's end changes nothing."""
    started, go = asyncio.Event(), asyncio.Event()

    @hf.task
    async def slow() -> str:
        started.set()
        await go.wait()
        return "late"

    with heard("job.finish_refused") as refused:
        async with hf.worker(name="zombie", lease=60):
            handle = await slow.enqueue()
            await started.wait()
            await hf.store.claims.rescue_worker("zombie")
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


async def test_who_has_lost_the_job_commits_nothing(hf):
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS shipped (job TEXT)")
        await tx.execute("DELETE FROM shipped")
    runs = []

    @hf.task
    async def ship(job: Job) -> int:
        runs.append(job.token)
        if len(runs) == 1:
            await hf.store.claims.rescue_worker("zombie")
        async with job.commit(result=len(runs)) as tx:
            await tx.execute("INSERT INTO shipped (job) VALUES ($1)", str(job.token))
        return 0

    with heard("job.lease_lost") as lost:
        async with hf.worker(name="zombie", lease=60):
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
