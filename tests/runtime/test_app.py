"""The Holdfast object: no I/O until it is entered, and one transaction for the caller's rows and jobs."""

import asyncio
import json
import threading

import pytest
from running import in_child
from waiting import until

from holdfast import Holdfast
from holdfast.kernel.errors import CommitUnknown, HoldfastError, NotOpen, UsageError
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.states import State


async def test_no_file_is_made_before_it_is_entered(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}")
    assert not list(tmp_path.iterdir())
    with pytest.raises(NotOpen):
        await hf.jobs.get(new_id())
    async with hf:
        assert await hf.jobs.get(new_id()) is None
        with pytest.raises(UsageError, match="open already"):
            await hf.__aenter__()
    async with hf:  # it may be entered again after it was left
        assert await hf.migrate() == []


async def test_rows_and_jobs_commit_together_or_not_at_all(tmp_path):
    async with Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}") as hf:
        async with hf.transaction() as tx:
            assert await tx.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)") == 0
        kept, gone = NewJob(id=new_id(), task="t"), NewJob(id=new_id(), task="t")
        async with hf.transaction() as tx:
            assert await tx.execute("INSERT INTO orders (name, id) VALUES ($2, $1), ('b', 2)", 1, "a") == 2
            await hf.store.jobs.enqueue([kept], tx=tx)
        with pytest.raises(ZeroDivisionError):
            async with hf.transaction() as tx:
                await tx.execute("INSERT INTO orders (id) VALUES ($1)", 3)
                await hf.store.jobs.enqueue([gone], tx=tx)
                raise ZeroDivisionError
        async with hf.transaction() as tx:
            assert await tx.fetch("SELECT id, name FROM orders WHERE id <> $1 ORDER BY id", 9) == [
                (1, "a"),
                (2, "b"),
            ]
        assert await hf.jobs.get(kept.id) is not None
        assert await hf.jobs.get(gone.id) is None


def test_it_shows_where_it_is_without_a_password():
    assert repr(Holdfast("postgresql://ada:s3cret@h/d")) == "Holdfast(postgresql://ada:***@h/d)"


async def test_leaving_stops_the_workers_that_still_run(tmp_path, caplog):
    hf, started, ended = Holdfast(f"sqlite:///{tmp_path / 'x.db'}"), asyncio.Event(), []

    @hf.task
    async def long() -> None:
        started.set()
        await asyncio.sleep(0.2)
        ended.append(True)

    async with hf:
        await long.enqueue()
        service = hf.worker(grace=10)
        await service.start()
        await started.wait()
    assert ended
    assert not service.is_running
    async with hf:
        [record] = await hf.store.jobs.find(limit=5)
        assert record.state is State.SUCCEEDED
    assert "trouble" not in caplog.text


async def test_a_program_that_keeps_all_threads_of_its_loop_busy_is_entered_and_left(url):
    """They are its own: asyncio has few, and a program may wait for ever in each."""
    hf, go, loop = Holdfast(url), threading.Event(), asyncio.get_running_loop()
    busy = [loop.run_in_executor(None, go.wait) for _ in range(64)]
    loop.call_later(15, go.set)
    async with hf, hf.worker(grace=1):
        pass
    assert not go.is_set()
    go.set()
    await asyncio.gather(*busy)


async def test_a_cancelled_exit_does_not_close_the_store_under_its_jobs(url):
    hf, started, go = Holdfast(url), asyncio.Event(), asyncio.Event()

    @hf.task
    async def long() -> None:
        started.set()
        await go.wait()

    await hf.__aenter__()
    service = hf.worker(grace=10)
    await service.start()
    handle = await long.enqueue()
    await started.wait()
    leaving = asyncio.create_task(hf.__aexit__(None, None, None))
    await until(lambda: service.worker._draining)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    go.set()
    async with hf:  # waits for the end of the exit
        assert not service.is_running
        assert await handle.status() is State.SUCCEEDED


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # what ran there is thrown away
def test_an_exit_that_was_cut_off_with_its_loop_is_over(tmp_path, by_hand):
    hf, started = Holdfast(f"sqlite:///{tmp_path / 'x.db'}"), []

    @hf.task
    async def long() -> None:
        started.append(True)
        await asyncio.sleep(3600)

    async def give_up():
        await hf.__aenter__()
        await hf.worker(grace=3600).start()
        await long.enqueue()
        await until(lambda: started)
        leaving = asyncio.create_task(hf.__aexit__(None, None, None))
        await until(lambda: hf._leaving is not None)
        leaving.cancel()
        await asyncio.sleep(0)

    async def again():
        service = hf.worker(grace=0)  # made before it is entered
        async with asyncio.timeout(10):
            async with hf:
                await service.start()
            return service.is_running

    if by_hand:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(give_up())
        loop.close()
    else:
        asyncio.run(give_up())
    assert not asyncio.run(again())


async def test_of_two_who_enter_at_once_the_second_takes_nothing_from_the_first(url):
    hf = Holdfast(url)

    @hf.task
    async def greet() -> None: ...

    told = await asyncio.gather(hf.__aenter__(), hf.__aenter__(), return_exceptions=True)
    assert [type(each) for each in told] == [Holdfast, UsageError]
    handle = await asyncio.to_thread(greet.enqueue_sync)
    assert await handle.status() is State.QUEUED
    await hf.__aexit__(None, None, None)


async def test_threads_that_enqueue_while_it_is_left_and_entered(url, left_threads):
    """Acknowledged is stored, refused is not; nobody hangs, and no loop is left behind."""
    hf, stored, refused, over = Holdfast(url), set(), set(), threading.Event()

    @hf.task
    async def count(n: int) -> None: ...

    def call(first):
        for n in range(first, first + 100_000):
            if over.is_set():
                return
            try:
                count.enqueue_sync(n)
            except CommitUnknown:
                continue  # it happened or it did not
            except HoldfastError:
                refused.add(n)
            else:
                stored.add(n)

    async with asyncio.timeout(60):
        callers = [asyncio.create_task(asyncio.to_thread(call, place * 100_000)) for place in range(2)]
        try:
            for _ in range(15):
                async with hf:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.01)
        finally:
            over.set()
        await asyncio.gather(*callers)
        async with hf, hf.transaction() as tx:
            table = "holdfast_job" if "sqlite" in url else "holdfast.job"
            rows = await tx.fetch(f"SELECT args FROM {table}")
    found = {json.loads(args)["n"] for (args,) in rows}
    assert stored
    assert stored <= found
    assert not refused & found
    assert not left_threads("holdfast-blocking")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
async def test_a_forked_child_leaves_at_once_and_takes_nothing_from_its_parent(url):
    hf = Holdfast(url)

    @hf.task
    async def greet() -> str:
        return "hello"

    async def leave():
        async with asyncio.timeout(10):
            await service.stop()
            await hf.__aexit__(None, None, None)
            async with hf:
                return (await greet.enqueue()).created

    async with hf, hf.worker() as service:
        await (await greet.enqueue()).result(10)
        assert in_child(leave) == "True"
        assert await (await greet.enqueue()).result(10) == "hello"


async def test_one_worker_that_cannot_be_stopped_leaves_the_others_no_reason_to_go_on(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}")
    with pytest.raises(RuntimeError, match="no"):
        async with hf:
            services = [hf.worker() for _ in range(3)]
            for service in services:
                await service.start()
            services[1]._stack.callback(fail)
    assert not any(service.is_running for service in services)
    async with hf:
        assert await hf.jobs.get(new_id()) is None


def fail():
    raise RuntimeError("no")
