"""The writer of a SQLite store: many callers to a commit, one caller's trouble is its own, and time limits hold."""

import asyncio
import os
from pathlib import Path

import apsw
import pytest

from holdfast.kernel.crashpoints import armed
from holdfast.kernel.errors import (
    CommitUnknown,
    NotOpen,
    StoreBusy,
    StoreFull,
    StoreUnavailable,
    TooManyWaiting,
    TransactionEnded,
    UnsupportedStore,
    UsageError,
    WrongConnection,
)
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Done, Retry
from holdfast.store.records import Finish, NewJob
from holdfast.store.sqlite import served, transaction, writer
from holdfast.store.sqlite.store import SqliteStore


@pytest.fixture
async def store(tmp_path):
    store = SqliteStore(tmp_path / "jobs.db")
    await store.open()
    yield store
    await store.close()


def new(**options):
    return NewJob(id=new_id(), task="greet", **options)


async def number_of_jobs(store):
    return sum(count.number for count in await store.jobs.count())


async def test_many_callers_share_commits(store):
    commits = 0

    def count(name):
        nonlocal commits
        commits += 1

    with armed("store.before_commit", count):
        await asyncio.gather(*(store.jobs.enqueue([new()]) for _ in range(200)))
    assert await number_of_jobs(store) == 200
    assert commits <= 20


async def test_a_refusal_disturbs_nobody_in_its_group(store):
    await store.jobs.enqueue([new(max_waiting=1)])
    answers = await asyncio.gather(
        *(store.jobs.enqueue([new()]) for _ in range(5)),
        store.jobs.enqueue([new(max_waiting=1)]),
        *(store.jobs.enqueue([new()]) for _ in range(5)),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers].count(TooManyWaiting) == 1
    assert await number_of_jobs(store) == 11


async def test_a_piece_of_work_that_fails_after_writing_is_rolled_back_alone(store):
    def bad(db):
        db.run("INSERT INTO holdfast_counter VALUES ('junk', 1)")
        raise ZeroDivisionError

    answers = await asyncio.gather(
        store.jobs.enqueue([new()]), store.write(bad), store.jobs.enqueue([new()]), return_exceptions=True
    )
    assert isinstance(answers[1], ZeroDivisionError)
    assert await number_of_jobs(store) == 2
    assert await store.read(lambda db: db.value("SELECT 1 FROM holdfast_counter WHERE name = 'junk'")) is None


async def test_a_lost_answer_is_settled_by_asking_again(store):
    lost = []

    def lose_once(name):
        if not lost:
            lost.append(name)
            raise ConnectionError("the answer was lost")

    job = new()
    with armed("store.after_commit", lose_once):
        [enqueued] = await store.jobs.enqueue([job])
    assert (enqueued.id, enqueued.created) == (job.id, True)
    assert await number_of_jobs(store) == 1

    [claim] = await store.claims.claim({"default": 1}, lease=30, worker="w")
    lost.clear()
    with armed("store.after_commit", lose_once):
        assert await store.claims.finish([Finish(claim, Done())]) == [True]


async def test_an_answer_that_stays_lost_is_unknown_and_a_request_that_was_lost_left_nothing(store):
    def lose(name):
        raise StoreUnavailable("the request was lost")

    with armed("store.before_commit", lose), pytest.raises(StoreUnavailable):
        await store.jobs.enqueue([new()])
    assert await number_of_jobs(store) == 0
    with armed("store.after_commit", lose), pytest.raises(CommitUnknown):
        await store.jobs.enqueue([new()])
    assert await number_of_jobs(store) == 1


async def test_a_transaction_holds_others_back_and_is_seen_whole(store):
    async with store.transaction() as tx:
        await store.jobs.enqueue([new()], tx=tx)
        waiting = asyncio.ensure_future(store.jobs.enqueue([new()]))
        await store.jobs.enqueue([new()], tx=tx)
        assert await number_of_jobs(store) == 0  # readers see the state before
        assert not waiting.done()
    await waiting
    assert await number_of_jobs(store) == 3


async def test_a_transaction_that_takes_too_long_is_cut_off(store, monkeypatch):
    monkeypatch.setattr(writer, "TRANSACTION_LIMIT", 0.05)
    with pytest.raises(TransactionEnded, match=r"cut off after 0\.05 seconds"):
        async with store.transaction() as tx:
            await store.jobs.enqueue([new()], tx=tx)
            await asyncio.ensure_future(store.jobs.enqueue([new()]))  # waits until the transaction is gone
            await store.jobs.enqueue([new()], tx=tx)
    assert await number_of_jobs(store) == 1


async def test_a_statement_that_takes_too_long_is_cut_off(store, monkeypatch):
    monkeypatch.setattr(writer, "TRANSACTION_LIMIT", 0.05)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises((StoreUnavailable, TransactionEnded)):
        async with store.transaction() as tx:
            await tx.fetch(endless)
    assert (await store.jobs.enqueue([new()]))[0].created


async def test_a_transaction_is_of_no_use_after_its_end_or_before_its_start(store):
    async with store.transaction() as tx:
        pass
    with pytest.raises(TransactionEnded):
        await tx.execute("SELECT 1")
    with pytest.raises(UsageError):
        await store.transaction().execute("SELECT 1")


async def test_a_cancelled_transaction_rolls_back_and_frees_the_lock(store):
    inside = asyncio.Event()

    async def slow():
        async with store.transaction() as tx:
            await store.jobs.enqueue([new()], tx=tx)
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.ensure_future(slow())
    await inside.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.jobs.enqueue([new()])
    assert await number_of_jobs(store) == 1


async def test_another_process_that_holds_the_lock_is_waited_for_and_then_reported(store, monkeypatch):
    other = apsw.Connection(store.path)  # the same library: this stands for another process
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(writer, "LOCK_WAIT", 0.05)
    with pytest.raises(StoreBusy, match="Try again"):
        await store.jobs.enqueue([new()])
    monkeypatch.setattr(writer, "LOCK_WAIT", 10)
    waiting = asyncio.ensure_future(store.jobs.enqueue([new()]))
    await store.jobs.count()
    other.execute("ROLLBACK")
    await waiting
    other.close()
    assert await number_of_jobs(store) == 1


async def test_a_full_disk_refuses_whole_and_recovers(store):
    await store.jobs.enqueue([new()])
    await store.write(lambda db: db.run("PRAGMA max_page_count = 1"))  # SQLite never goes below what there is
    with pytest.raises(StoreFull, match="Nothing was stored"):
        await store.jobs.enqueue([new(args='"' + "x" * 100_000 + '"')])
    assert await number_of_jobs(store) == 1
    await store.write(lambda db: db.run("PRAGMA max_page_count = 1000000"))
    await store.jobs.enqueue([new(args='"' + "x" * 100_000 + '"')])
    assert await number_of_jobs(store) == 2


async def test_a_store_that_is_not_open_says_so(tmp_path):
    store = SqliteStore(tmp_path / "jobs.db")
    with pytest.raises(NotOpen, match="not open"):
        await store.jobs.enqueue([new()])
    await store.open()
    await store.close()
    with pytest.raises(NotOpen):
        await store.jobs.get(new_id())
    await store.close()  # twice is no error


async def test_a_forked_child_may_not_use_its_parents_store(store, monkeypatch):
    pid = os.getpid()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: pid + 1)
        with pytest.raises(NotOpen, match="forked"):
            await store.jobs.count()
        with pytest.raises(NotOpen, match="forked"):
            await store.transaction().__aenter__()


async def test_all_who_share_a_commit_are_told_at_once_that_the_lock_is_held(store, monkeypatch):
    other = apsw.Connection(store.path)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(writer, "LOCK_WAIT", 0.2)
    asked = [store.jobs.enqueue([new()]) for _ in range(50)]
    answers = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 3)
    assert {type(answer) for answer in answers} == {StoreBusy}
    other.close()


async def test_the_time_limit_of_one_transaction_is_not_that_of_the_next(store, monkeypatch):
    await store.jobs.enqueue([new()])
    monkeypatch.setattr(store._writer, "_cutoff", 0.0)  # as it is long after the last transaction
    monkeypatch.setattr(writer, "TRANSACTION_LIMIT", 5.0)
    store._writer._db.connection.set_progress_handler(store._writer._late, 1)
    await store.jobs.enqueue([new()])
    assert await number_of_jobs(store) == 2


async def test_a_verb_without_tx_inside_a_transaction_is_refused_at_once(store):
    async with store.transaction() as tx:
        with pytest.raises(UsageError, match="Pass tx=tx"):
            await store.jobs.enqueue([new()])
        with pytest.raises(UsageError, match="Pass tx=tx"):
            await store.transaction().__aenter__()
        await store.jobs.enqueue([new()], tx=tx)
    await store.jobs.enqueue([new()])
    assert await number_of_jobs(store) == 2


async def test_a_transaction_of_another_file_is_refused(store, tmp_path):
    other = SqliteStore(tmp_path / "other.db")
    await other.open()
    async with other.transaction() as tx:
        with pytest.raises(WrongConnection, match=r"other\.db"):
            await store.jobs.enqueue([new()], tx=tx)
    await other.close()


async def test_a_file_is_the_same_by_whatever_path_it_is_named(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.db").symlink_to(tmp_path / "jobs.db")
    for name in ("jobs.db", "./jobs.db", f"../{tmp_path.name}/jobs.db", "link.db", tmp_path / "link.db"):
        other = SqliteStore(name)
        await other.open()
        async with other.transaction() as tx:
            [made] = await store.jobs.enqueue([new()], tx=tx)
        assert await other.jobs.get(made.id) == await store.jobs.get(made.id) is not None
        await other.close()


async def test_transactions_get_their_turn_however_many_share_commits(store):
    going = True

    async def keep_asking():
        while going:
            await store.jobs.enqueue([new()])

    callers = [asyncio.ensure_future(keep_asking()) for _ in range(600)]
    await asyncio.sleep(0)
    for _ in range(3):
        async with asyncio.timeout(5), store.transaction() as tx:
            await tx.execute("SELECT 1")
    going = False
    await asyncio.gather(*callers)


async def test_a_file_that_was_deleted_takes_no_more_jobs(store):
    await store.jobs.enqueue([new()])
    away = Path(store.path).rename(store.path + ".away")
    with pytest.raises(StoreUnavailable, match="deleted or replaced"):
        await store.jobs.enqueue([new()])
    away.rename(store.path)
    await store.jobs.enqueue([new()])


async def test_work_whose_caller_gave_up_is_not_begun(store):
    async with store.transaction() as tx:
        await store.jobs.enqueue([new()], tx=tx)
        waiting = asyncio.ensure_future(store.claims.claim({"default": 1}, lease=30, worker="w"))
        await store.jobs.count()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    [claim] = await store.claims.claim({"default": 1}, lease=30, worker="w")
    assert claim.attempt == 1


async def test_a_statement_that_ends_the_transaction_by_hand(store, monkeypatch):
    monkeypatch.setattr(transaction, "refuse_end", lambda _: None)  # as if its text did not tell
    with pytest.raises(TransactionEnded, match="by hand"):
        async with store.transaction() as tx:
            await tx.execute("COMMIT")
    await store.jobs.enqueue([new()])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_mistake_that_ends_the_thread_leaves_nobody_waiting(store, end_thread):
    await end_thread(store)
    with pytest.raises(NotOpen):
        await store.jobs.enqueue([new()])
    await asyncio.wait_for(store.close(), 2)


async def test_a_store_is_opened_once(store):
    with pytest.raises(UsageError, match="open already"):
        await store.open()
    await store.jobs.enqueue([new()])


async def test_an_open_that_failed_can_be_tried_again(tmp_path, monkeypatch):
    path = tmp_path / "jobs.db"
    other = apsw.Connection(str(path))
    other.execute("BEGIN EXCLUSIVE")  # before it is in WAL mode: nobody else gets in
    monkeypatch.setattr(served, "LOCK_WAIT", 0.1)
    store = SqliteStore(path)
    with pytest.raises((StoreBusy, UnsupportedStore)):
        await store.open()
    other.close()
    monkeypatch.setattr(served, "LOCK_WAIT", 10)
    await store.open()
    await store.jobs.enqueue([new()])
    await store.close()


async def test_the_callers_list_is_copied_and_a_generator_is_read_once(store):
    jobs = [new() for _ in range(10)]
    asked = asyncio.ensure_future(store.jobs.enqueue(jobs))
    await asyncio.sleep(0)
    jobs.clear()
    assert len(await asked) == 10
    assert len(await store.jobs.enqueue(new() for _ in range(5))) == 5
    assert await number_of_jobs(store) == 15
    claims = await store.claims.claim({"default": 15}, lease=30, worker="w")
    assert await store.claims.finish(Finish(claim, Done()) for claim in claims) == [True] * 15


async def test_of_two_outcomes_for_one_claim_the_first_counts(store):
    await store.jobs.enqueue([new()])
    [claim] = await store.claims.claim({"default": 1}, lease=30, worker="w")
    assert await store.claims.finish(
        [Finish(claim, Retry()), Finish(claim, Done()), Finish(claim, Done())]
    ) == [
        True,
        False,
        False,
    ]
    assert (await store.jobs.get(claim.job_id)).state == "queued"


async def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(StoreUnavailable, match="Does its folder exist"):
        await SqliteStore(tmp_path / "nowhere" / "jobs.db").open()


async def test_a_caller_that_gives_up_waiting_for_a_transaction_does_not_hold_the_lock_later(store):
    async with store.transaction() as tx:
        await store.jobs.enqueue([new()], tx=tx)
        waiting = asyncio.ensure_future(store.transaction().__aenter__())
        await store.jobs.count()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.wait_for(store.jobs.enqueue([new()]), 2)


async def test_what_was_asked_before_closing_is_still_done(tmp_path):
    store = SqliteStore(tmp_path / "jobs.db")
    await store.open()
    asked = [asyncio.ensure_future(store.jobs.enqueue([new()])) for _ in range(20)]
    await asyncio.sleep(0)
    await store.close()
    assert all(enqueued.created for [enqueued] in await asyncio.gather(*asked))


async def test_a_disk_that_fails_during_commit_leaves_the_outcome_unknown_and_the_store_usable(
    store, monkeypatch
):
    def fail():
        raise apsw.IOError("disk I/O error")

    monkeypatch.setattr(store._writer._db, "commit", fail)
    [enqueued] = await store.jobs.enqueue([new()])  # asks again, on a new connection
    assert enqueued.created
    assert await number_of_jobs(store) == 1
    monkeypatch.setattr(store._writer._db, "commit", fail)
    with pytest.raises(CommitUnknown):
        async with store.transaction() as tx:
            await store.jobs.enqueue([new()], tx=tx)
    assert await number_of_jobs(store) == 1


async def test_an_open_that_is_cancelled_leaves_no_thread_behind(tmp_path, left_threads):
    store = SqliteStore(tmp_path / "jobs.db")
    for steps in range(12):
        opening = asyncio.ensure_future(store.open())
        for _ in range(steps):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.wait([opening])
        if not opening.cancelled():
            await store.close()
    await store.open()
    await asyncio.gather(*(store.jobs.enqueue([new()]) for _ in range(50)))
    assert await number_of_jobs(store) == 50
    await store.close()
    assert not left_threads("holdfast-writer", "holdfast-reader")
