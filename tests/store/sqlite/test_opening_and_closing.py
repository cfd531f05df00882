"""Opening and closing a SQLite store: given up half-way, several at once, and again. No thread is left behind."""

import asyncio
import threading

import apsw
import pytest
from waiting import until

from holdfast.kernel.crashpoints import armed
from holdfast.kernel.errors import NotOpen, StoreError, UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.spawn import Reply
from holdfast.store.records import NewJob
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.reader import Reader
from holdfast.store.sqlite.served import Stop, Work
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.writer import Writer

SOON = 5.0  # seconds: only a mistake takes so long


@pytest.fixture
async def store(tmp_path):
    store = SqliteStore(tmp_path / "jobs.db")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def lock(store):
    """Another process's write lock: the writer waits until it is given back."""
    other = Db(store.path)  # of ours: the store refuses to be opened beside anyone else's
    other.begin("IMMEDIATE")
    yield other
    other.close()


def new():
    return NewJob(id=new_id(), task="greet")


async def number_of_jobs(store):
    return sum(count.number for count in await store.jobs.count())


async def turns(number=20):
    for _ in range(number):
        await asyncio.sleep(0)


async def closing(store):
    """A close that waits for the busy writer."""
    task = asyncio.ensure_future(store.close())
    await until(lambda: not store._reader.running)
    await turns()
    assert not task.done()
    return task


async def test_an_open_that_is_given_up_when_its_thread_has_just_failed(tmp_path, left_threads):
    path = tmp_path / "jobs.db"
    path.mkdir()  # a folder where the file should be
    store = SqliteStore(path)
    opening = asyncio.ensure_future(store.open())
    await asyncio.sleep(0)
    store._writer._thread._thread.join()  # the loop stands still: it has not heard of the failure
    opening.cancel()
    await asyncio.wait([opening], timeout=SOON)
    assert opening.cancelled()
    path.rmdir()
    async with asyncio.timeout(SOON):
        await store.open()
        await store.jobs.enqueue([new()])
        await store.close()
    assert not left_threads(Writer.name, Reader.name)


async def test_a_close_that_is_given_up_goes_on_and_the_next_open_waits_for_it(store, lock, left_threads):
    asked = asyncio.ensure_future(store.write(lambda db: db.draw("rank")))
    task = await closing(store)
    task.cancel()
    await asyncio.wait([task])
    opening = asyncio.ensure_future(store.open())
    await turns()
    assert not opening.done()
    lock.rollback()
    async with asyncio.timeout(SOON):
        await opening
        assert await asked > 0
        await store.jobs.enqueue([new()])
        assert await number_of_jobs(store) == 1
        await store.close()
    assert not left_threads(Writer.name, Reader.name)


@pytest.mark.parametrize("steps", range(1, 20))
async def test_a_store_can_be_opened_again_wherever_its_close_was_given_up(store, steps, left_threads):
    task = asyncio.ensure_future(store.close())
    await turns(steps)
    task.cancel()
    await asyncio.wait([task])
    async with asyncio.timeout(SOON):
        await store.open()
        await store.jobs.enqueue([new()])
        await store.close()
    assert not left_threads(Writer.name, Reader.name)


async def test_a_close_that_is_given_up_before_the_last_batch_has_set_out(store, lock):
    asked = [asyncio.ensure_future(store.jobs.enqueue([new()])) for _ in range(3)]
    await turns()
    task = asyncio.ensure_future(store.close())
    await turns()
    assert store._writer.running  # the close waits for those who wait for a batch
    task.cancel()
    await asyncio.wait([task])
    lock.rollback()
    async with asyncio.timeout(SOON):
        answers = await asyncio.gather(*asked, return_exceptions=True)
        await store.open()
    refused = [answer for answer in answers if isinstance(answer, NotOpen)]
    assert await number_of_jobs(store) == len(answers) - len(refused)


async def test_two_closes_wait_for_the_same_end(store, lock, left_threads):
    asked = asyncio.ensure_future(store.write(lambda db: db.draw("rank")))
    first = await closing(store)
    second = asyncio.ensure_future(store.close())
    await turns()
    assert not second.done()
    lock.rollback()
    async with asyncio.timeout(SOON):
        await asyncio.gather(first, second, asked)
    assert not left_threads(Writer.name, Reader.name)


async def test_an_open_waits_for_a_close_that_is_under_way(store, lock):
    asked = asyncio.ensure_future(store.write(lambda db: db.draw("rank")))
    task = await closing(store)
    opening = asyncio.ensure_future(store.open())
    await turns()
    assert not opening.done()
    lock.rollback()
    async with asyncio.timeout(SOON):
        await asyncio.gather(task, opening, asked)
        await store.jobs.enqueue([new()])


async def test_a_close_ends_an_open_that_is_under_way(tmp_path, monkeypatch, left_threads):
    def locked(**options):
        raise apsw.BusyError("database is locked")

    store = SqliteStore(tmp_path / "jobs.db")
    monkeypatch.setattr(store, "_opened", locked)
    opening = asyncio.ensure_future(store.open())
    await turns()
    with pytest.raises(UsageError, match="open already"):
        await store.open()
    async with asyncio.timeout(SOON):
        await store.close()
        with pytest.raises((StoreError, NotOpen)):
            await opening
    assert not left_threads(Writer.name, Reader.name)


async def test_an_open_waits_for_one_that_is_being_given_up(tmp_path, monkeypatch, left_threads):
    store = SqliteStore(tmp_path / "jobs.db")
    opened = store._opened

    def locked_for_reading(*, reading=False):
        if reading:
            raise apsw.BusyError("database is locked")
        return opened()

    with monkeypatch.context() as busy:
        busy.setattr(store, "_opened", locked_for_reading)
        opening = asyncio.ensure_future(store.open())
        await until(lambda: store._reader.is_begun)
    opening.cancel()
    await asyncio.sleep(0)
    assert not opening.done()
    async with asyncio.timeout(SOON):
        await store.open()
        await store.close()
    assert opening.cancelled()
    assert not left_threads(Writer.name, Reader.name)


async def test_what_is_refused_because_of_a_close_is_not_stored(store, monkeypatch):
    """The thread commits, and ends, while the caller is still handing over its job."""
    inbox, thread = store._writer._inbox, store._writer._thread._thread
    put, committed = inbox.put, threading.Event()

    def linger(item):
        put(item)
        if isinstance(item, Work):
            put(Stop(Reply()))
            committed.wait(SOON)
            thread.join(0.05)  # or for as long as it takes, if it can end now

    monkeypatch.setattr(inbox, "put", linger)
    with armed("store.after_commit", lambda name: committed.set()):
        [enqueued] = await store.jobs.enqueue([new()])
    assert enqueued.created


async def test_whoever_asks_a_reader_that_is_told_to_stop_is_answered(store):
    go_on, behind = threading.Event(), Reply()
    before = asyncio.ensure_future(store.read(lambda db: go_on.wait(SOON)))
    await turns()
    store._reader._inbox.put(Stop(Reply()))
    store._reader._inbox.put(Work(lambda db: 7, behind))
    go_on.set()
    async with asyncio.timeout(SOON):
        assert await before
        assert await behind == 7


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_mistake_that_ends_the_reader_leaves_nobody_waiting(store, monkeypatch):
    def break_down():
        raise ZeroDivisionError

    monkeypatch.setattr(store._reader._db, "rollback", break_down)
    asked = [store.jobs.count() for _ in range(3)]
    async with asyncio.timeout(SOON):
        answers = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(answer) for answer in answers} <= {StoreError, NotOpen}
    await store._reader._thread.ended()  # else its exception may be told in the next test


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_store_whose_thread_has_died_is_opened_again_and_holds_no_lock(
    store, end_thread, left_threads
):
    await end_thread(store)
    async with asyncio.timeout(SOON):
        await store.open()
        await store.jobs.enqueue([new()])
        await store.close()
    assert not left_threads(Writer.name, Reader.name)


async def test_a_transaction_may_be_asked_for_before_the_store_is_opened(tmp_path):
    store = SqliteStore(tmp_path / "jobs.db")
    for _ in range(2):
        tx = store.transaction()
        await store.open()
        async with tx:
            await store.jobs.enqueue([new()], tx=tx)
        await store.close()


async def test_a_loop_that_is_gone_does_not_keep_others_from_hearing_of_jobs(store, tmp_path):
    def look_and_leave():
        loop = asyncio.new_event_loop()
        loop.run_until_complete(store.wakeups.wait(["default"], 0))
        loop.close()  # by hand: its tasks are neither cancelled nor done

    await asyncio.to_thread(look_and_leave)
    await store.wakeups.wait(["default"], 0)
    other = SqliteStore(store.path)
    await other.open()
    waiting = asyncio.ensure_future(store.wakeups.wait(["default"], SOON))
    await until(lambda: store.wakeups._bell.is_awaited)
    await other.jobs.enqueue([new()])
    assert await waiting
    await other.close()
