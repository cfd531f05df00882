"""Enqueue: one, many, with options, in transactions, from sync code; and handles."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from waiting import until

from holdfast.kernel.context import within
from holdfast.kernel.errors import HoldfastError, JobMissing, TooManyWaiting, UsageError
from holdfast.store.states import Held, State


@pytest.fixture
def greet(hf):
    @hf.task(name="greet")
    async def greet(name: str) -> str:
        return f"hello {name}"

    return greet


async def test_a_job_is_stored_with_its_arguments(hf, greet):
    handle = await greet.enqueue("ada")
    record = await hf.jobs.get(handle.id)
    assert handle.created
    assert (record.task, record.args, record.queue, record.state) == (
        "greet",
        '{"name":"ada"}',
        "default",
        "queued",
    )
    assert await handle.status() == "queued"


async def test_many_are_stored_in_order(hf, greet):
    handles = await greet.enqueue_many([{"name": "a"}, greet.bind("b"), greet.bind(name="c")])
    args = [(await handle.record()).args for handle in handles]
    assert args == ['{"name":"a"}', '{"name":"b"}', '{"name":"c"}']
    assert await greet.enqueue_many([]) == []


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "needs 'user' as text"),
        ({"user": "u" * 600}, "too long"),
        ({"user": "a\nb"}, "U\\+000A"),
        ({"user": 1}, "needs 'user' as text.* 1.0"),
    ],
    ids=["none", "long", "line break", "a float for the worker"],
)
async def test_a_lock_that_no_worker_could_take_is_refused(hf, given, why):
    @hf.task(lock="user:{user}")
    async def work(user: str | float | None = None) -> None: ...

    with pytest.raises(UsageError, match=why):
        await work.enqueue(**given)
    assert await hf.store.jobs.find(limit=5) == []
    assert (await work.enqueue("ada")).created


async def test_many_are_stored_all_or_none(hf, greet):
    with pytest.raises(UsageError):
        await greet.enqueue_many([{"name": "a"}, {"nome": "b"}])
    with pytest.raises(UsageError, match=r"greet.bind"):
        await greet.enqueue_many(["a"])
    assert await hf.queues.count() == []


async def test_options_reach_the_store(hf, greet):
    when = datetime.now(UTC) + timedelta(hours=1)
    record = await (
        await greet.options(
            at=when, expires=7200, priority=3, unique="u:1", tenant="acme", queue="mail"
        ).enqueue("ada")
    ).record()
    assert (record.priority, record.unique, record.tenant, record.queue) == (3, "u:1", "acme", "mail")
    assert record.run_at == pytest.approx(when.timestamp(), abs=0.01)
    later = await (await greet.options(delay=timedelta(minutes=1)).enqueue("bob")).record()
    assert later.held is Held.TIME


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colour": 1}, "There is no option 'colour'"),
        ({"delay": -1}, "delay must be from"),
        ({"delay": 1, "at": 5.0}, "delay or at, not both"),
        ({"at": datetime(2026, 1, 1)}, "has no time zone"),  # noqa: DTZ001
        ({"priority": "high"}, "priority must be a whole number"),
        ({"unique": ""}, "must not be empty"),
        ({"tenant": "x" * 501}, "too long"),
        ({"expires": float("nan")}, "expires must be from"),
    ],
)
async def test_bad_options_are_told_and_nothing_is_stored(hf, greet, options, words):
    with pytest.raises(UsageError, match=words):
        await greet.options(**options).enqueue("ada")
    assert await hf.queues.count() == []


async def test_a_unique_job_is_stored_once(greet):
    first = await greet.options(unique="welcome:42").enqueue("ada")
    second = await greet.options(unique="welcome:42").enqueue("ada")
    assert (first.created, second.created, second.id) == (True, False, first.id)


async def test_a_job_exists_if_its_transaction_committed(hf, greet):
    async with hf.transaction() as tx:
        committed = await greet.options(tx=tx).enqueue("ada")
    with pytest.raises(RuntimeError):
        async with hf.transaction() as tx:
            ghost = await greet.options(tx=tx).enqueue("bob")
            raise RuntimeError
    assert await hf.jobs.get(committed.id)
    assert await hf.jobs.get(ghost.id) is None
    with pytest.raises(JobMissing):
        await ghost.status()


async def test_max_waiting_refuses_at_the_call(hf):
    @hf.task(max_waiting=2)
    async def bounded(n: int): ...

    await bounded.enqueue_many([{"n": 1}, {"n": 2}])
    with pytest.raises(TooManyWaiting):
        await bounded.enqueue(3)


async def test_the_story_is_carried_on(greet):
    with within(correlation_id="story", job_id="cause"):
        record = await (await greet.enqueue("ada")).record()
    assert (record.correlation_id, record.causation_id) == ("story", "cause")


async def test_a_queued_job_is_cancelled(greet):
    handle = await greet.enqueue("ada")
    assert await handle.cancel("not needed") is State.CANCELLED
    assert (await handle.record()).reason == "not needed"


async def test_a_result_that_does_not_come_in_time(greet):
    handle = await greet.enqueue("ada")
    with pytest.raises(TimeoutError, match=r"is queued after 0.05 s"):
        await handle.result(timeout=0.05)


async def test_sync_code_enqueues_from_a_thread(hf, greet):
    handle = await asyncio.to_thread(greet.enqueue_sync, "ada")
    assert await handle.status() == "queued"
    handle = await asyncio.to_thread(hf.blocking.enqueue, greet.options(priority=4), "bob")
    assert (await handle.record()).priority == 4


async def test_sync_code_on_a_running_loop_is_told(greet):
    with pytest.raises(UsageError, match=r"Use `await task.enqueue"):
        greet.enqueue_sync("ada")


def test_sync_code_without_any_loop(url, left_threads):
    from holdfast import Holdfast

    hf = Holdfast(url)

    @hf.task
    async def greet(name: str) -> str: ...

    try:
        handle = greet.enqueue_sync("ada")
        with pytest.raises(TimeoutError):
            hf.blocking.result(handle, timeout=0.01)
    finally:
        hf.blocking.close()
    assert not left_threads("holdfast-blocking")


def test_many_threads_may_be_the_first_and_a_loop_takes_over(url, left_threads):
    from holdfast import Holdfast

    hf = Holdfast(url)
    together, before = threading.Barrier(20), set(threading.enumerate())

    @hf.task
    async def greet(name: str) -> None: ...

    def first(name):
        together.wait()
        return greet.enqueue_sync(name).id

    with ThreadPoolExecutor(20) as pool:
        made = set(pool.map(first, map(str, range(20))))
    begun = [each.name for each in set(threading.enumerate()) - before]
    assert begun.count("holdfast-blocking") == 1

    async def later():
        async with hf:
            return sum(count.number for count in await hf.queues.count())

    assert asyncio.run(later()) == len(made) == 20
    assert not left_threads("holdfast-blocking")


def test_a_store_that_cannot_be_opened_leaves_no_thread(tmp_path, left_threads):
    from holdfast import Holdfast

    hf = Holdfast(f"sqlite:///{tmp_path / 'missing' / 'x.db'}")

    @hf.task
    async def greet(name: str) -> None: ...

    for _ in range(2):
        with pytest.raises(HoldfastError):
            greet.enqueue_sync("ada")
    assert not left_threads("holdfast-blocking")


def test_sync_code_in_its_own_transaction(postgres_url):
    import psycopg

    from holdfast import Holdfast

    hf = Holdfast(postgres_url)

    @hf.task
    async def greet(name: str) -> str: ...

    try:
        with psycopg.connect(postgres_url) as connection:
            connection.execute("SELECT 1")
            kept = greet.options(tx=connection).enqueue_sync("ada")
        with pytest.raises(RuntimeError), psycopg.connect(postgres_url) as connection:
            connection.execute("SELECT 1")
            ghost = greet.options(tx=connection).enqueue_sync("bob")
            raise RuntimeError
        assert hf.blocking._portal.run(lambda: hf.jobs.get(kept.id)).task.endswith("greet")
        assert hf.blocking._portal.run(lambda: hf.jobs.get(ghost.id)) is None
    finally:
        hf.blocking.close()


async def test_hooks_hear_of_what_was_stored(hf, greet):
    from holdfast import Middleware

    heard = []

    class Listener(Middleware):
        def on_enqueued(self, job):
            heard.append(job.args)

    hf.use(Listener())
    await greet.options(unique="once").enqueue("ada")
    await greet.options(unique="once").enqueue("ada")
    await until(lambda: heard == ['{"name":"ada"}'])
