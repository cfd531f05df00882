"""Sync engines and sessions on both stores: in threads of an open program, and in programs without a loop."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest
import sqlalchemy as sa
from models import Base, Order

from holdfast import Holdfast
from holdfast.kernel.errors import TransactionEnded, UsageError
from holdfast.kernel.threads import ThreadCall, Threads
from holdfast.store.sqlite import writer


@pytest.fixture
def in_thread():
    async def run(call):
        return await asyncio.wait_for(asyncio.to_thread(call), 30)

    return run


@pytest.fixture
def lite(tmp_path):
    """A program without a loop, on a file."""
    hf = Holdfast(f"sqlite:///{tmp_path / 'shop.db'}")

    @hf.task(name="greet")
    def greet(name: str) -> None: ...

    hf.greet = greet
    Base.metadata.create_all(hf.blocking.sqlalchemy())
    yield hf
    hf.blocking.close()


async def test_a_row_and_a_job_commit_together_in_a_thread(shop, in_thread, names, queued):
    def work():
        with shop.blocking.session() as session, session.begin():
            session.add(Order(name="a"))
            session.flush()
            shop.greet.options(tx=session).enqueue_sync("ada")
        with shop.blocking.session() as session:
            session.add(Order(name="b"))
            session.flush()
            shop.greet.options(tx=session).enqueue_sync("ada")
            session.rollback()

    await in_thread(work)
    assert (await names(shop), await queued(shop)) == (["a"], 1)


async def test_on_a_loop_it_is_refused_before_it_waits_for_that_loop(shop, in_thread, names):
    """On SQLite it would wait for the lock that another task of this loop has, until that one is cut off."""

    def work(name):
        with shop.blocking.session() as session, session.begin():
            session.add(Order(name=name))

    async def other():
        async with shop.transaction() as tx:
            await tx.execute("INSERT INTO orders (id, name, count, version) VALUES (7, 'a', 0, 1)")
            holds.set()
            await asyncio.sleep(0.1)

    holds = asyncio.Event()
    writing = asyncio.create_task(other())
    await holds.wait()
    with pytest.raises(UsageError, match=r"async with hf\.session\(\)"):
        work("b")
    with pytest.raises(UsageError, match="event loop of this thread"):
        shop.blocking.sqlalchemy().connect()
    await writing
    await in_thread(lambda: work("c"))
    assert await names(shop) == ["a", "c"]


async def test_constraints_savepoints_and_streams_in_a_thread(shop, in_thread, names):
    def work():
        with shop.blocking.session() as session, session.begin():
            session.add_all([Order(name=str(number)) for number in range(20)])
            session.flush()
            with pytest.raises(sa.exc.IntegrityError), session.begin_nested():
                session.add(Order(name="0"))
                session.flush()
        with shop.blocking.session() as session:
            rows = session.scalars(sa.select(Order.name).execution_options(yield_per=3))
            assert len([name for name in rows]) == 20  # noqa: C416
            rows = session.scalars(sa.select(Order.name).execution_options(yield_per=3))
            next(rows)
            rows.close()
        inspector = sa.inspect(shop.blocking.sqlalchemy())
        assert {column["name"] for column in inspector.get_columns("orders")} >= {"id", "name"}

    await in_thread(work)
    assert len(await names(shop)) == 20


def test_a_stream_in_a_thread_hides_nothing_from_those_after_it(lite, monkeypatch):
    monkeypatch.setattr("holdfast.sqlalchemy.dbapi.cursor._PORTION", 10)

    def number():
        with lite.blocking.session() as session:
            return session.scalar(sa.select(sa.func.count(Order.id)))

    with lite.blocking.session() as session, session.begin():
        session.add_all([Order(name=str(number)) for number in range(100)])
    kept = []
    for end in ("close", "rollback", "commit"):
        with lite.blocking.session() as session:
            rows = session.scalars(sa.select(Order.name).execution_options(yield_per=3))
            next(rows)
            kept.append(rows)  # or the collector would close it
            getattr(session, end)()
        before = number()
        with lite.blocking.session() as session, session.begin():
            session.add(Order(name=end))
        assert number() == before + 1


async def test_threads_take_turns(shop, names):
    def add(number):
        with shop.blocking.session() as session, session.begin():
            order = session.get(Order, 1, with_for_update=True)
            order.count += 1

    async with shop.session() as session, session.begin():
        session.add(Order(id=1, name="a"))
    await asyncio.gather(*(asyncio.to_thread(add, number) for number in range(6)))
    async with shop.session() as session:
        assert (await session.get(Order, 1)).count == 6


def test_a_program_without_a_loop(lite):
    with lite.blocking.session() as session, session.begin():
        session.add(Order(name="a"))
        session.flush()
        lite.greet.options(tx=session).enqueue_sync("ada")
    with lite.blocking.transaction() as tx:
        assert tx.fetch("SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM holdfast_job)") == [
            (1, 1)
        ]


def test_a_thread_that_would_wait_for_itself_is_refused(lite):
    with lite.blocking.session() as session:
        session.add(Order(name="a"))
        session.flush()
        with pytest.raises(UsageError, match="tx=session"):
            lite.greet.enqueue_sync("ada")
        with lite.blocking.session() as other, pytest.raises(UsageError, match="tx=session"):
            other.add(Order(name="b"))
            other.flush()


def test_a_session_that_holds_the_lock_too_long_is_cut_off(lite, monkeypatch):
    monkeypatch.setattr(writer, "TRANSACTION_LIMIT", 0.2)
    with lite.blocking.session() as session:
        session.add(Order(name="a"))
        session.flush()
        other = threading.Thread(target=lite.greet.enqueue_sync, args=("ada",))
        other.start()
        other.join(20)
        with pytest.raises(TransactionEnded, match="cut off"):
            session.commit()
        session.rollback()
        session.add(Order(name="b"))
        session.commit()
        assert list(session.scalars(sa.select(Order.name))) == ["b"]


def test_it_works_again_after_the_store_was_closed(lite):
    with lite.blocking.session() as session, session.begin():
        session.add(Order(name="a"))
    lite.blocking.close()
    with lite.blocking.session() as session:
        assert list(session.scalars(sa.select(Order.name))) == ["a"]


async def test_a_thread_that_is_asked_to_stop_leaves_nothing_behind(shop, names, tmp_path):
    if shop._inside.location.kind == "postgres":
        pytest.skip("psycopg waits in C, and is not interrupted")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    begun = threading.Event()

    def work():
        with shop.blocking.session() as session, session.begin():
            session.add(Order(name="a"))
            session.flush()
            begun.set()
            session.execute(sa.text(endless))

    threads = Threads(1)
    running = asyncio.create_task(threads.run(ThreadCall(), work))
    await asyncio.to_thread(begun.wait, 10)
    await asyncio.sleep(0.2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)
    threads.close()
    async with shop.session() as session, session.begin():
        session.add(Order(name="b"))
    assert await names(shop) == ["b"]


FORKS = """
import os, sys, sqlalchemy as sa
from holdfast import Holdfast
hf = Holdfast("sqlite:///shop.db")
with hf.blocking.session() as session, session.begin():
    session.execute(sa.text("CREATE TABLE t (a)"))
    session.execute(sa.text("INSERT INTO t VALUES (1)"))
reading = hf.blocking.session()
reading.scalar(sa.text("SELECT 1"))
if (child := os.fork()) == 0:
    try:
        with hf.blocking.session() as session, session.begin():
            session.execute(sa.text("INSERT INTO t VALUES (2)"))
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
assert os.waitpid(child, 0)[1] == 0
with hf.blocking.session() as session, session.begin():
    session.execute(sa.text("INSERT INTO t VALUES (3)"))
    print(list(session.scalars(sa.text("SELECT a FROM t ORDER BY a"))))
reading.close()
hf.blocking.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_connections_of_its_own(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FORKS], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "[1, 2, 3]\n", done.stderr
