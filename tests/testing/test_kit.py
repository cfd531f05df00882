"""The kit for users' tests: drain, inline, what is enqueued, a fresh store, and a clock turned by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

import pytest

from holdfast import Backoff, Cancel, Holdfast, Job, Reject, Secret, Snooze
from holdfast.guards import Breaker
from holdfast.kernel.context import NO_CONTEXT, context
from holdfast.kernel.errors import JobDead, JobUnknown, UsageError
from holdfast.store.states import Held, State
from holdfast.testing import assert_enqueued, drain, enqueued, fresh, inline

pytest_plugins = ["holdfast_pytest"]


class Client:
    open = False


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, holdfast_url):
    return holdfast_url if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
async def hf(url):
    async with fresh(Holdfast("sqlite:///never-made.db"), url) as opened:
        yield opened


@pytest.fixture
async def timed(manual_clock, fresh_holdfast):
    """On SQLite, whose clock is the manual one."""
    async with fresh_holdfast(Holdfast("sqlite:///never-made.db")) as opened:
        yield opened


@pytest.fixture
def seen(hf):
    names = []

    @hf.task(name="greet")
    async def greet(name: str) -> str:
        names.append(name)
        return f"hello {name}"

    greet.seen = names
    return greet


# --- drain ---


async def test_drain_runs_what_is_ready_in_order_and_tells(hf, seen):
    @hf.task
    def plain(number: int) -> int:
        return number + 1

    await seen.enqueue("ada")
    await plain.options(queue="other").enqueue(1)
    await seen.options(priority=5).enqueue("urgent")
    await seen.options(delay=60).enqueue("late")
    ran = await drain(hf)
    assert [(each.task.rpartition(".")[2], each.result) for each in ran] == [
        ("greet", "hello urgent"),
        ("greet", "hello ada"),
        ("plain", 2),
    ]
    assert {each.state for each in ran} == {State.SUCCEEDED}
    assert seen.seen == ["urgent", "ada"]
    assert await drain(hf) == []


async def test_what_a_job_enqueues_is_drained_too(hf):
    @hf.task
    async def child(number: int) -> int:
        return number

    @hf.task
    async def parent() -> None:
        await child.enqueue_many([{"number": 1}, {"number": 2}])

    await parent.enqueue()
    assert [each.result for each in await drain(hf)] == [None, 1, 2]


async def test_keys_and_limits_are_kept(hf):
    @hf.task(concurrency=("one", 1), tenant="t{number}", ordered="all")
    async def turn(number: int) -> int:
        return number

    for number in range(5):
        await turn.enqueue(number)
    assert [each.result for each in await drain(hf)] == list(range(5))


async def test_every_end_of_a_run_is_told(hf):
    @hf.task(retry=Backoff(attempts=2, first=0, ceiling=0))
    async def end(job: Job, how: str) -> int | None:
        match how:
            case "fail":
                raise ValueError("no")
            case "cancel":
                raise Cancel("gone")
            case "reject":
                raise Reject("bad")
            case "snooze":
                raise Snooze(60)
            case "commit":
                async with job.commit(result=7):
                    pass

    for how in ("fail", "cancel", "reject", "snooze", "commit"):
        await end.enqueue(how)
    ran = await drain(hf)
    assert [(each.attempt, each.state) for each in ran] == [
        (1, State.QUEUED),
        (1, State.CANCELLED),
        (1, State.DEAD),
        (1, State.QUEUED),
        (1, State.SUCCEEDED),
        (2, State.DEAD),
    ]
    assert "ValueError: no" in ran[0].error
    assert ran[2].error == "bad"
    assert ran[4].result == 7


async def test_a_death_raises_on_request(hf):
    @hf.task(retry=Backoff(attempts=1))
    async def broken() -> None:
        raise ValueError("no such address")

    await broken.enqueue()
    with pytest.raises(JobDead, match=r"broken.* died in attempt 1: ValueError: no such address"):
        await drain(hf, raise_dead=True)


async def test_an_unknown_effect_is_told_and_decided(hf):
    async def post(title: str) -> int:
        raise TimeoutError("no answer")

    @hf.task(retry=Backoff(attempts=3, first=0, ceiling=0))
    async def publish(job: Job, title: str) -> int:
        return await job.effect("post", post, title, policy="at_most_once")

    handle = await publish.enqueue("harbour")
    [ran] = await drain(hf)
    assert (ran.state, ran.attempt) == (State.UNKNOWN, 1)
    assert ran.error == "Nobody knows whether effect 'post' was done: no answer."
    assert await drain(hf) == []
    await hf.unknown.resolve(handle.id, actor="ada", done=True, result=7)
    assert (await drain(hf))[0].result == 7
    await publish.enqueue("quay")
    with pytest.raises(JobUnknown, match=r"publish.* is unknown after attempt 1: Nobody knows .* no answer"):
        await drain(hf, raise_dead=True)
    with inline(hf, raise_dead=True) as inlined, pytest.raises(JobUnknown):
        await publish.enqueue("pier")
    assert [each.state for each in inlined] == [State.UNKNOWN]


async def test_a_drain_says_what_is_held_and_why(hf, seen):
    guard = hf.guard("api", breaker=Breaker(failures=1))

    @hf.task(name="ask", guard=guard)
    async def ask() -> None: ...

    held = await ask.enqueue()
    await hf.store.holds.shut_gates(["default"], keys=["api"])
    later = await ask.options(delay=60).enqueue()
    ran = await drain(hf)
    assert ran == []
    assert [job.id for job in ran.held] == [held.id, later.id]
    assert repr(ran) == "[] (held: ask by guard 'api', ask by time)"


async def test_an_endless_drain_is_told(hf):
    @hf.task
    async def again() -> None:
        await again.enqueue()

    await again.enqueue()
    with pytest.raises(
        AssertionError, match=r"has run 20 jobs, and there are more.*does a task enqueue itself"
    ):
        await drain(hf, most=20)


async def test_a_paused_queue_rests(hf, seen):
    await hf.queues.pause("default")
    await seen.enqueue("ada")
    await seen.options(queue="other").enqueue("bob")
    assert [each.result for each in await drain(hf)] == ["hello bob"]


async def test_resources_are_opened_and_closed(hf):
    @hf.resource
    async def client() -> AsyncIterator[Client]:
        Client.open = True
        yield Client()
        Client.open = False

    @hf.task
    async def use(client: Client) -> bool:
        return client.open

    await use.enqueue()
    assert [each.result for each in await drain(hf)] == [True]
    assert Client.open is False


async def test_the_timeout_of_an_async_task_is_kept(hf):
    @hf.task(timeout=0.05, retry=Backoff(attempts=1))
    async def hang() -> None:
        await asyncio.Event().wait()

    await hang.enqueue()
    async with asyncio.timeout(10) as limit:
        [ran] = await drain(hf)
    assert not limit.expired()
    assert ran.state is State.DEAD
    assert "TimeoutError: it took longer than its timeout of 0.05 s" in ran.error


async def test_a_drain_that_is_cancelled_puts_its_job_back(hf):
    begun = asyncio.Event()

    @hf.task(retry=Backoff(attempts=1))
    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    await hang.enqueue()
    draining = asyncio.create_task(drain(hf))
    await begun.wait()
    draining.cancel()
    with pytest.raises(asyncio.CancelledError):
        await draining
    [waiting] = await enqueued(hf, hang)
    assert (waiting.record.attempt, waiting.record.held) == (0, None)


async def test_what_a_drained_job_is_about_stays_with_it(hf, seen):
    await seen.enqueue("ada")
    await drain(hf)
    assert context() == NO_CONTEXT
    assert (await (await seen.enqueue("bob")).record()).causation_id is None


async def test_a_lock_that_is_held_puts_the_job_off(hf):
    @hf.task(lock="report")
    async def report() -> None: ...

    await report.enqueue()
    async with hf.lock("report"):
        [ran] = await drain(hf)
    assert ran.state is State.QUEUED
    [waiting] = await enqueued(hf, report)
    assert waiting.record.held is Held.TIME


# --- inline ---


async def test_inline_runs_each_job_inside_its_enqueue(hf, seen):
    with inline(hf) as ran:
        handle = await seen.enqueue("ada")
        assert await handle.result(0) == "hello ada"
        await seen.enqueue_many([{"name": "b"}, {"name": "c"}])
        await seen.options(delay=60).enqueue("late")
    assert [each.result for each in ran] == ["hello ada", "hello b", "hello c"]
    await seen.enqueue("after")
    assert seen.seen == ["ada", "b", "c"]


async def test_a_job_of_a_transaction_waits_for_a_drain(hf, seen):
    with inline(hf):
        async with hf.transaction() as tx:
            await seen.options(tx=tx).enqueue("first")
        await seen.enqueue("second")
        assert seen.seen == ["second"]
    assert [each.result for each in await drain(hf)] == ["hello first"]


async def test_inline_in_inline_and_a_unique_twin(hf, seen):
    @hf.task
    async def outer() -> str:
        handle = await seen.enqueue("inner")
        return await handle.result(0)

    with inline(hf) as ran:
        assert await (await outer.enqueue()).result(0) == "hello inner"
        await seen.options(unique="u", delay=60).enqueue("late")
        await seen.options(unique="u").enqueue("twin")
    assert [each.task.rpartition(".")[2] for each in ran] == ["greet", "outer"]


async def test_what_an_inline_job_is_about_stays_with_it(hf, seen):
    @hf.task
    async def outer() -> list[str]:
        return [(await seen.enqueue(name)).id for name in ("first", "second")]

    with inline(hf):
        await seen.enqueue("before")
        handle = await outer.enqueue()
        assert (await handle.record()).causation_id is None
        for inner in await handle.result(0):
            assert (await hf.jobs.get(inner)).causation_id == handle.id
    assert context() == NO_CONTEXT


async def test_inline_raises_on_request(hf):
    @hf.task(retry=Backoff(attempts=1))
    async def broken() -> None:
        raise ValueError("no")

    with inline(hf):
        await broken.enqueue()
    with inline(hf, raise_dead=True), pytest.raises(JobDead, match="ValueError: no"):
        await broken.enqueue()


async def test_inline_for_sync_code(hf, seen):
    with inline(hf):
        handle = await asyncio.to_thread(seen.enqueue_sync, "ada")
    assert await handle.result(0) == "hello ada"


# --- what is enqueued ---


async def test_what_is_enqueued(hf, seen):
    @hf.task
    async def other() -> None: ...

    await seen.enqueue("ada")
    await seen.options(delay=60).enqueue("late")
    await other.enqueue()
    assert [each.arguments for each in await enqueued(hf, seen)] == [{"name": "ada"}, {"name": "late"}]
    assert [each.arguments for each in await enqueued(hf, "greet")] == [{"name": "ada"}, {"name": "late"}]
    [waiting] = await assert_enqueued(hf, seen, name="late")
    assert waiting.record.held is Held.TIME
    await assert_enqueued(hf, seen, count=2)
    await assert_enqueued(hf, seen, count=None)
    await assert_enqueued(hf, seen, count=0, name="nobody")
    await drain(hf)
    await assert_enqueued(hf, seen, name="late")


async def test_an_assertion_says_what_is_there(hf, seen):
    @hf.task(name="mail.digest")
    async def digest() -> None: ...

    with pytest.raises(AssertionError) as failed:
        await assert_enqueued(hf, seen, name="ada")
    assert str(failed.value) == (
        "Expected 1 job of 'greet' with name='ada' to be queued; there are 0.\nNo job of 'greet' is queued."
    )
    await seen.enqueue("bob")
    await seen.options(delay=60, queue="slow").enqueue("eve")
    await digest.enqueue()
    with pytest.raises(AssertionError) as failed:
        await assert_enqueued(hf, seen, count=3, name="ada")
    assert str(failed.value) == (
        "Expected 3 jobs of 'greet' with name='ada' to be queued; there are 0.\n"
        "Queued of 'greet':\n"
        "  name='bob' (queue 'default')\n"
        "  name='eve' (queue 'slow', held: time)\n"
        "Other jobs are queued: 1 of 'mail.digest'."
    )
    with pytest.raises(UsageError, match=r"There is no task 'nobody'. There are: greet, mail.digest."):
        await enqueued(hf, "nobody")


async def test_an_argument_that_the_task_does_not_have_is_no_proof(hf, seen):
    await seen.enqueue("ada")
    with pytest.raises(UsageError, match=r"no argument 'nome' to look at\. Its arguments: name\."):
        await assert_enqueued(hf, seen, count=0, nome="ada")


async def test_an_argument_that_was_not_given_has_its_default(hf):
    @hf.task
    async def send(to: str, copies: int = 1) -> None: ...

    await send.enqueue("ada")
    await assert_enqueued(hf, send, copies=1)
    await assert_enqueued(hf, send, count=0, copies=2)
    with pytest.raises(AssertionError):
        await assert_enqueued(hf, send, count=0, copies=1)


async def test_secrets_are_not_in_messages(hf):
    @hf.task(name="login")
    async def login(user: str, password: Secret[str]) -> None: ...

    await login.enqueue("ada", "hunter2")
    with pytest.raises(AssertionError) as failed:
        await assert_enqueued(hf, login, count=0)
    assert "hunter2" not in str(failed.value)
    assert "user='ada', password=*** (queue 'default')" in str(failed.value)
    await assert_enqueued(hf, login, password="hunter2")


# --- a clock turned by hand ---


async def test_delays_and_retries_without_waiting(timed, manual_clock):
    @timed.task(retry=Backoff(attempts=3, first=10, ceiling=100))
    async def flaky(job: Job) -> int:
        if job.attempt < 3:
            raise ValueError("not yet")
        return job.attempt

    await flaky.options(delay=3600).enqueue()
    assert await drain(timed) == []
    manual_clock.advance(3600)
    assert [each.state for each in await drain(timed)] == [State.QUEUED]
    manual_clock.advance(10)
    assert [each.state for each in await drain(timed)] == [State.QUEUED]
    manual_clock.advance(20)
    assert [each.result for each in await drain(timed)] == [3]


async def test_schedules_without_waiting(manual_clock, fresh_holdfast):
    app, fired = Holdfast("sqlite:///never-made.db"), []

    @app.cron("0 * * * *", missed="all")
    async def hourly(nominal: datetime) -> None:
        fired.append(nominal.hour)

    async with fresh_holdfast(app) as hf:
        assert await drain(hf) == []
        manual_clock.advance(2 * 3600)
        assert len(await drain(hf)) == 2
        manual_clock.advance(3600)
        assert len(await drain(hf, schedules=False)) == 0
        assert len(await drain(hf)) == 1
    assert fired == [fired[0], (fired[0] + 1) % 24, (fired[0] + 2) % 24]


async def test_what_has_expired_is_not_run(timed, manual_clock):
    @timed.task(expires=60)
    async def soon() -> None: ...

    handle = await soon.enqueue()
    manual_clock.advance(61)
    assert await drain(timed) == []
    assert await handle.status() is State.CANCELLED


# --- a fresh store ---


async def test_a_program_is_as_before_after_its_fresh_store():
    app = Holdfast("sqlite:///never-made.db")

    @app.task
    async def work() -> None: ...

    for _ in range(2):
        async with fresh(app) as hf:
            assert hf is app
            await assert_enqueued(hf, work, count=0)
            await work.enqueue()
            with pytest.raises(UsageError, match="Leave it before you point it"):
                app._point_at("sqlite:///other.db")
    assert app._inside.location.address == "never-made.db"
