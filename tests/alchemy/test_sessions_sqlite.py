"""What is special about sessions on SQLite: the one lock, its cut-off, cancellation, and what is refused."""

from __future__ import annotations

import asyncio
import gc

import pytest
import sqlalchemy as sa
from models import Base, Order

from holdfast import Holdfast
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import NotOpen, TransactionEnded, UsageError, WrongConnection
from holdfast.sqlalchemy import reading, store_connection
from holdfast.store.sqlite import writer

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
ADD = sa.insert(Order).values(name="a", count=0, version=1)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'shop.db'}"


async def test_a_second_session_that_writes_in_one_task_is_refused_at_once(shop, names):
    async with shop.session() as one, shop.session() as other:
        one.add(Order(name="a"))
        await one.flush()
        other.add(Order(name="b"))
        began = monotonic()
        with pytest.raises(UsageError, match="tx=session"):
            await other.flush()
        with pytest.raises(UsageError, match="tx=session"):
            await shop.greet.enqueue("ada")
        assert monotonic() - began < 1
        await other.rollback()
        await one.commit()
        other.add(Order(name="b"))
        await other.commit()
    assert await names(shop) == ["a", "b"]


async def test_sessions_of_two_tasks_take_turns(shop, names):
    async def add(name):
        async with shop.session() as session, session.begin():
            session.add(Order(name=name))
            await session.flush()
            await asyncio.sleep(0.01)

    await asyncio.gather(*(add(str(number)) for number in range(8)))
    assert len(await names(shop)) == 8


async def test_a_session_that_holds_the_lock_too_long_is_cut_off(shop, names, monkeypatch):
    monkeypatch.setattr(writer, "TRANSACTION_LIMIT", 0.3)
    async with shop.session() as session:
        session.add(Order(name="a"))
        await session.flush()
        await shop.greet.options(tx=session).enqueue("ada")
        await asyncio.create_task(shop.greet.enqueue("grace"))  # waits for the cut-off
        with pytest.raises(TransactionEnded, match="cut off"):
            await session.execute(sa.select(Order))
        with pytest.raises(TransactionEnded, match="cut off"):
            await session.commit()
        await session.rollback()
        session.add(Order(name="b"))
        await session.commit()
    assert await names(shop) == ["b"]


async def test_one_who_is_cancelled_while_he_waits_for_the_lock_leaves_nothing_behind(shop, names):
    async with shop.transaction() as tx:
        await tx.execute("INSERT INTO orders (name, count, version) VALUES ('a', 0, 1)")

        async def add():
            async with shop.session() as session, session.begin():
                session.add(Order(name="b"))

        waiting = asyncio.create_task(add())
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with shop.session() as session, session.begin():
        session.add(Order(name="c"))
    assert await names(shop) == ["a", "c"]


@pytest.mark.parametrize("first", [ADD, sa.select(Order)], ids=["writing", "reading"])
async def test_a_cancelled_statement_is_interrupted(shop, names, first):
    async def run():
        async with shop.session() as session, session.begin():
            await session.execute(first)
            await session.execute(sa.text(ENDLESS))

    running = asyncio.create_task(run())
    await asyncio.sleep(0.2)
    running.cancel()
    began = monotonic()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with shop.session() as session, session.begin():
        session.add(Order(name="b"))
    assert monotonic() - began < 2
    assert await names(shop) == ["b"]


async def test_one_who_is_cancelled_anywhere_leaves_nothing_half_done(shop, queued, names):
    """At each of the moments at which it waits."""

    async def work():
        async with shop.session() as session, session.begin():
            await session.execute(sa.select(Order))
            session.add(Order(name="a"))
            await session.flush()
            async with session.begin_nested():
                await shop.greet.options(tx=session).enqueue("ada")
            await session.execute(sa.select(Order))

    for steps in range(60):
        task = asyncio.create_task(work())
        for _ in range(steps):
            await asyncio.sleep(0)
        await asyncio.sleep(0.0005 * steps)
        task.cancel()
        await asyncio.wait([task])
        done = await asyncio.wait_for(names(shop), 5)
        assert await queued(shop) == len(done)  # the commit is all or nothing
        if not task.cancelled():
            break
        async with shop.transaction() as tx:
            await tx.execute("DELETE FROM orders")
        if done:
            break
    assert shop.sqlalchemy().pool.checkedout() == 0


async def test_what_would_change_the_connection_of_all_is_refused(shop):
    async with shop.session() as session:
        for sql in (
            "COMMIT",
            " /* now */ commit",
            "BEGIN",
            "ROLLBACK",
            "END",
            "PRAGMA foreign_keys = OFF",
            "PRAGMA main.user_version=3",
            "ATTACH 'other.db' AS other",
            "CREATE TEMP TABLE t (a)",
            "VACUUM",
        ):
            with pytest.raises(UsageError):
                await session.execute(sa.text(sql))
        assert (await session.execute(sa.text("PRAGMA foreign_keys"))).scalar() == 1
        assert (await session.execute(sa.text("PRAGMA table_info('orders')"))).all()
        await session.execute(sa.text("INSERT INTO orders (name, count, version) VALUES ('commit', 0, 1)"))
        await session.commit()


async def test_two_statements_in_one_text_are_refused(shop, names):
    async with shop.session() as session:
        with pytest.raises(sa.exc.ProgrammingError, match="one statement at a time"):
            await session.execute(sa.text("DELETE FROM orders; COMMIT"))


async def test_a_session_that_nobody_closes_gives_the_lock_back(shop, names):
    async def forget():
        session = shop.session()
        session.add(Order(name="a"))
        await session.flush()

    with pytest.warns(sa.exc.SAWarning):
        await asyncio.create_task(forget())
        gc.collect()
        await asyncio.sleep(0)
        gc.collect()
    async with shop.session() as session, session.begin():
        session.add(Order(name="b"))
    assert await names(shop) == ["b"]


async def test_its_threads_end_with_the_store(tmp_path, left_threads):
    hf = Holdfast(f"sqlite:///{tmp_path / 'a.db'}")
    async with hf:
        async with hf.sqlalchemy().begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        open_still = hf.session()
        await open_still.execute(sa.select(Order))
    assert left_threads("holdfast-session", "holdfast-writer", "holdfast-reader") == []
    with pytest.raises(NotOpen):
        await open_still.execute(sa.select(Order))
    await open_still.close()
    with pytest.raises(NotOpen):
        async with hf.session() as session:
            await session.execute(sa.select(Order))


async def test_its_threads_end_with_the_engine(shop, names, left_threads):
    await names(shop)
    await shop.sqlalchemy().dispose()
    assert left_threads("holdfast-session") == []
    assert await names(shop) == []


async def test_a_stream_is_closed_after_a_while(shop, monkeypatch):
    monkeypatch.setattr(reading, "STREAM_LIMIT", 0.1)
    monkeypatch.setattr("holdfast.sqlalchemy.dbapi.cursor._PORTION", 10)
    async with shop.session() as session, session.begin():
        session.add_all([Order(name=str(number)) for number in range(100)])
    async with shop.session() as session:
        rows = await session.stream(sa.select(Order.id).execution_options(yield_per=10))
        await rows.fetchmany(5)
        await asyncio.sleep(0.3)
        with pytest.raises(sa.exc.OperationalError, match="was open for more than"):
            await rows.fetchall()


async def test_a_session_of_another_store_is_refused(shop, tmp_path):
    async with Holdfast(f"sqlite:///{tmp_path / 'other.db'}") as other, other.session() as session:
        with pytest.raises(WrongConnection, match=r"other\.db"):
            await shop.greet.options(tx=session).enqueue("ada")


async def test_a_connection_of_its_own_is_no_transaction_of_the_store(shop, tmp_path):
    engine = sa.create_engine(f"sqlite+holdfast:///{tmp_path / 'shop.db'}")
    with engine.begin() as connection, pytest.raises(WrongConnection, match="file to itself"):
        await shop.greet.options(tx=connection).enqueue("ada")
    engine.dispose()


async def test_a_constraint_that_is_checked_at_the_end(shop):
    async with shop.transaction() as tx:
        await tx.execute(
            "CREATE TABLE later (id INTEGER PRIMARY KEY, o REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)"
        )
    async with shop.session() as session:
        await session.execute(sa.text("INSERT INTO later (o) VALUES (99)"))
        with pytest.raises(sa.exc.IntegrityError):
            await session.commit()
        await session.rollback()
    async with shop.transaction() as tx:
        await tx.execute("DROP TABLE later")


async def test_one_connection_for_two_tasks_is_refused(shop):
    async with shop.sqlalchemy().connect() as connection:
        results = await asyncio.gather(
            *(connection.execute(sa.text("SELECT 1")) for _ in range(2)), return_exceptions=True
        )
    assert any(isinstance(each, sa.exc.InterfaceError) for each in results)


async def test_who_holds_the_lock_for_long_is_noted(shop, notes, monkeypatch):
    monkeypatch.setattr(store_connection, "LONG", 0.05)
    async with shop.session() as session, session.begin():
        session.add(Order(name="a"))
        await session.flush()
        await asyncio.sleep(0.1)
    [(_, fields)] = [each for each in notes if each[0] == "session.held_lock"]
    assert fields["seconds"] > 0.05
    assert fields["first"].startswith("INSERT INTO orders")
