"""Sessions of SQLAlchemy on both stores: models, transactions with jobs and events, locks, errors."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from models import Kinds, Line, Order, Size
from sqlalchemy import exc
from sqlalchemy.orm.exc import StaleDataError

from holdfast import Holdfast, Job, State
from holdfast.kernel.errors import NotOpen, TransactionEnded, UsageError, WrongConnection

ZURICH = ZoneInfo("Europe/Zurich")


def kinds(**given):
    """A row of which only that matters."""
    at = datetime(2026, 11, 18)  # noqa: DTZ001  the column has no zone
    rest = {
        "at": at,
        "day": at.date(),
        "data": {},
        "size": Size.SMALL,
        "price": Decimal(1),
        "raw": b"",
        "ok": True,
    }
    return Kinds(id=uuid.uuid4(), **{**rest, **given})


async def test_models_with_relationships_and_cascades(shop):
    async with shop.session() as session:
        session.add(Order(name="a", lines=[Line(text="one"), Line(text="two")]))
        await session.commit()
    async with shop.session() as session:
        order = await session.scalar(sa.select(Order))
        assert [line.text for line in order.lines] == ["one", "two"]
        del order.lines[0]
        await session.commit()
        await session.delete(order)
        await session.commit()
        assert await session.scalar(sa.select(sa.func.count(Line.id))) == 0


async def test_each_type_comes_back_as_it_was(shop):
    given = {
        "id": uuid.uuid4(),
        "at": datetime(2026, 11, 18, 12, 30, 1, 123456),  # noqa: DTZ001  the column has no zone
        "moment": datetime(2026, 11, 18, 12, 30, 1, 5, tzinfo=ZURICH),
        "day": date(2026, 11, 18),
        "data": {"a": [1, None, "ä"]},
        "size": Size.LARGE,
        "price": Decimal("12.50"),
        "raw": b"\x00\xff",
        "ok": True,
    }
    async with shop.session() as session, session.begin():
        session.add(Kinds(**given))
    async with shop.session() as session:
        found = await session.get(Kinds, given["id"])
        assert {name: getattr(found, name) for name in given} == given


async def test_a_moment_has_its_zone_on_both_stores(shop):
    """It comes back in UTC, compares with moments of other zones, and is refused where its zone would be lost."""
    noon = datetime(2026, 7, 1, 12, tzinfo=ZURICH)
    async with shop.session() as session, session.begin():
        session.add(kinds(moment=noon))
    later = sa.select(Kinds).where(Kinds.moment > noon - timedelta(minutes=1), Kinds.moment <= noon)
    async with shop.session() as session:
        found = await session.scalar(later)
        assert (found.moment, found.moment.utcoffset()) == (noon, timedelta(0))
        assert await session.scalar(later.where(Kinds.moment != noon.astimezone(UTC))) is None
    with pytest.raises((exc.StatementError, UsageError)):  # its zone would be lost
        async with shop.session() as session, session.begin():
            session.add(kinds(at=noon))


async def test_what_the_database_says_of_now_is_a_moment(shop):
    began = datetime.now(UTC) - timedelta(minutes=1)
    async with shop.session() as session, session.begin():
        session.add(kinds(moment=sa.func.now()))
    async with shop.session() as session:
        assert (
            began < await session.scalar(sa.select(Kinds.moment)) < datetime.now(UTC) + timedelta(minutes=1)
        )


@pytest.mark.parametrize("sql", ["COMMIT", "-- so\nrollback", "BEGIN", "End"])
async def test_a_text_that_ends_the_transaction_is_refused(shop, names, queued, sql):
    """What stood before it would be stored, the job too, whatever becomes of the session."""
    async with shop.session() as session:
        session.add(Order(name="a"))
        await session.flush()
        await shop.greet.options(tx=session).enqueue("ada")
        with pytest.raises(UsageError, match="behind SQLAlchemy's back"):
            await session.execute(sa.text(sql))
    assert (await names(shop), await queued(shop)) == ([], 0)


async def test_a_statement_that_only_has_the_word_is_not(shop):
    async with shop.session() as session:
        assert await session.scalar(sa.text("SELECT 'COMMIT'")) == "COMMIT"


async def test_the_version_column_finds_what_was_overtaken(shop):
    async with shop.session() as session, session.begin():
        session.add(Order(id=1, name="a"))
    async with shop.session() as one, shop.session() as other:
        mine, theirs = await one.get(Order, 1), await other.get(Order, 1)
        mine.count = 1
        await one.commit()
        theirs.count = 2
        with pytest.raises(StaleDataError):
            await other.commit()


async def test_many_rows_with_their_ids_in_order(shop):
    async with shop.session() as session, session.begin():
        orders = [Order(name=f"{number:04}") for number in range(500)]
        session.add_all(orders)
        await session.flush()
        ids = [order.id for order in orders]
        assert ids == sorted(ids)
        insert = sa.insert(Order).values(name="x", count=1, version=1).returning(Order.id, Order.name)
        assert (await session.execute(insert)).one().name == "x"
        changed = await session.execute(sa.update(Order).where(Order.name < "0010").values(count=7))
        assert changed.rowcount == 10


async def test_a_row_a_job_and_an_event_commit_together(shop, names, queued):
    async with shop.session() as session, session.begin():
        session.add(Order(name="a"))
        await shop.greet.options(tx=session).enqueue("ada")
        await shop.emit("order.placed", {"id": 1}, tx=session)
    assert await names(shop) == ["a"]
    assert await queued(shop) == 1
    assert len(await shop.outbox.find()) == 1


async def test_or_not_at_all(shop, names, queued):
    async with shop.session() as session:
        session.add(Order(name="a"))
        await session.flush()
        await shop.greet.options(tx=session).enqueue("ada")
        await shop.emit("order.placed", {"id": 1}, tx=session)
        await session.rollback()
    assert (await names(shop), await queued(shop), await shop.outbox.find()) == ([], 0, [])


async def test_a_job_is_moved_and_cancelled_with_the_row(shop, names):
    later, gone = [await shop.greet.options(delay=60).enqueue(name) for name in ("ada", "bob")]
    async with shop.session() as session, session.begin():
        session.add(Order(name="a"))
        await session.flush()
        assert await shop.jobs.move(later.id, delay=0, tx=session) is State.QUEUED
        assert await shop.jobs.cancel(gone.id, "no", running=False, tx=session) is State.CANCELLED
    assert await names(shop) == ["a"]
    assert [(await each.record()).state for each in (later, gone)] == [State.QUEUED, State.CANCELLED]
    assert (await later.record()).held is None


async def test_a_connection_is_a_transaction_too(shop, queued):
    async with shop.sqlalchemy().begin() as connection:
        await shop.greet.options(tx=connection).enqueue("ada")
    assert await queued(shop) == 1


async def test_an_enqueue_may_come_first(shop, names, queued):
    async with shop.session() as session:
        await shop.greet.options(tx=session).enqueue("ada")
        session.add(Order(name="a"))
        await session.commit()
    assert (await names(shop), await queued(shop)) == (["a"], 1)


async def test_a_savepoint_takes_the_job_back_with_it(shop, names, queued):
    async with shop.session() as session, session.begin():
        session.add(Order(name="a"))
        with pytest.raises(exc.IntegrityError):
            async with session.begin_nested():
                await shop.greet.options(tx=session).enqueue("ada")
                session.add(Order(name="a"))
                await session.flush()
        session.add(Order(name="b"))
        await shop.greet.options(tx=session).enqueue("grace")
    assert (await names(shop), await queued(shop)) == (["a", "b"], 1)


async def test_a_violated_constraint_is_what_sqlalchemy_calls_it(shop):
    async with shop.session() as session:
        session.add_all([Order(name="a"), Order(name="a")])
        with pytest.raises(exc.IntegrityError, match=r"(?i)unique"):
            await session.commit()
        await session.rollback()
        session.add(Line(order_id=12345, text="of nothing"))
        with pytest.raises(exc.IntegrityError, match=r"(?i)foreign key"):
            await session.commit()


async def test_a_wrong_statement_and_a_wrong_value(shop):
    async with shop.session() as session:
        with pytest.raises(exc.DBAPIError):
            await session.execute(sa.text("SELECT nothing FROM nowhere"))
        await session.rollback()
        with pytest.raises(exc.DBAPIError):
            await session.execute(sa.text("SELECT :one"), {"one": object()})
        await session.rollback()
        assert await session.scalar(sa.text("SELECT 1")) == 1


async def test_rows_read_for_update_are_not_overtaken(shop):
    async with shop.session() as session, session.begin():
        session.add(Order(id=1, name="a"))

    async def increment():
        async with shop.session() as session, session.begin():
            order = await session.get(Order, 1, with_for_update=True)
            await asyncio.sleep(0.01)
            order.count += 1

    await asyncio.gather(*(increment() for _ in range(4)))
    async with shop.session() as session:
        assert (await session.get(Order, 1)).count == 4


async def test_a_session_that_has_only_read_blocks_nobody(shop, queued):
    async with shop.session() as session:
        await session.execute(sa.select(Order))
        await asyncio.wait_for(shop.greet.enqueue("ada"), 2)
    assert await queued(shop) == 1


async def test_it_sees_what_others_commit_meanwhile(shop, names):
    async with shop.session() as session:
        assert await session.scalar(sa.select(sa.func.count(Order.id))) == 0
        async with shop.transaction() as tx:
            await tx.execute("INSERT INTO orders (id, name, count, version) VALUES (1, 'a', 0, 1)")
        assert await session.scalar(sa.select(sa.func.count(Order.id))) == 1


async def test_rows_are_streamed(shop):
    async with shop.session() as session, session.begin():
        session.add_all([Order(name=f"{number:05}") for number in range(2000)])
    async with shop.session() as session:
        rows = await session.stream_scalars(
            sa.select(Order.name).order_by(Order.name).execution_options(yield_per=100)
        )
        found = [name async for name in rows]
        assert found == [f"{number:05}" for number in range(2000)]
        rows = await session.stream_scalars(sa.select(Order.name).execution_options(yield_per=10))
        assert await rows.fetchmany(3)  # the rest is left
        await session.rollback()
        assert await session.scalar(sa.select(sa.func.count(Order.id))) == 2000


@pytest.mark.parametrize("end", ["leave", "rollback", "commit"])
async def test_a_stream_that_was_not_read_to_its_end_hides_nothing_from_those_after_it(
    shop, names, end, monkeypatch
):
    """Its snapshot would be that of every session that gets the connection later."""
    monkeypatch.setattr("holdfast.sqlalchemy.dbapi.cursor._PORTION", 10)
    async with shop.session() as session, session.begin():
        session.add_all([Order(name=f"{number:05}") for number in range(100)])
    async with shop.session() as session:
        rows = await session.stream_scalars(sa.select(Order.name).execution_options(yield_per=10))
        async for _ in rows:
            break
        if end != "leave":
            await getattr(session, end)()
            if "sqlite" in str(shop):
                with pytest.raises(exc.OperationalError, match="was closed by the commit or rollback"):
                    await rows.all()
            assert await session.scalar(sa.select(sa.func.count(Order.id))) == 100
    async with shop.session() as session, session.begin():
        session.add(Order(name="z"))
    assert len(await names(shop)) == 101


async def test_a_stream_of_a_transaction_that_has_written_sees_its_rows(shop):
    async with shop.session() as session:
        session.add(Order(name="a"))
        await session.flush()
        rows = await session.stream_scalars(sa.select(Order.name))
        assert [name async for name in rows] == ["a"]


async def test_autocommit(shop, names):
    engine = shop.sqlalchemy().execution_options(isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(sa.insert(Order).values(name="a", count=0, version=1))
        assert await names(shop) == ["a"]
        with pytest.raises(WrongConnection, match="AUTOCOMMIT"):
            await shop.greet.options(tx=connection).enqueue("ada")
    async with shop.session() as session:  # the level went back with the connection
        session.add(Order(name="b"))
        await session.flush()
        await session.rollback()
    assert await names(shop) == ["a"]


async def test_reflection(shop):
    def look(connection):
        inspector = sa.inspect(connection)
        return (
            {column["name"] for column in inspector.get_columns("orders")},
            inspector.get_foreign_keys("lines")[0]["referred_table"],
            inspector.has_table("kinds"),
        )

    async with shop.sqlalchemy().connect() as connection:
        columns, referred, there = await connection.run_sync(look)
    assert (columns, referred, there) == ({"id", "name", "count", "version"}, "orders", True)


async def test_an_engine_or_a_failed_session_is_no_transaction(shop):
    with pytest.raises(WrongConnection):
        await shop.greet.options(tx=shop.sqlalchemy()).enqueue("ada")
    async with shop.session() as session:
        session.add_all([Order(name="a"), Order(name="a")])
        with pytest.raises(exc.IntegrityError):
            await session.flush()
        with pytest.raises(WrongConnection):
            await shop.greet.options(tx=session).enqueue("ada")
        await session.rollback()
        await shop.greet.options(tx=session).enqueue("ada")
        await session.commit()


async def test_the_engine_is_one_and_goes_on_after_the_store_was_closed(shop, names):
    engine = shop.sqlalchemy()
    await shop.__aexit__(None, None, None)
    await shop.__aenter__()
    assert shop.sqlalchemy() is engine
    assert await names(shop) == []


async def test_a_job_is_completed_with_the_rows_of_a_session(shop, names):
    @shop.task
    async def ship(job: Job, order: str) -> None:
        async with shop.session() as session, session.begin():
            session.add(Order(name=order))
            await job.complete(tx=session)

    async with shop.worker(poll=0.05):
        handle = await ship.enqueue("a")
        await handle.result(20)
    assert await names(shop) == ["a"]


async def test_after_a_failed_statement_the_transaction_does_nothing_more(shop, names):
    """On SQLite it could go on, and a program that was tested there would fail on PostgreSQL."""
    async with shop.sqlalchemy().connect() as connection:
        await connection.execute(sa.insert(Order).values(name="a", count=0, version=1))
        with pytest.raises(exc.IntegrityError):
            await connection.execute(sa.insert(Order).values(name="a", count=0, version=1))
        with pytest.raises((TransactionEnded, exc.DBAPIError)):
            await connection.execute(sa.insert(Order).values(name="b", count=0, version=1))
        await connection.rollback()
        await connection.execute(sa.insert(Order).values(name="c", count=0, version=1))
        await connection.commit()
    assert await names(shop) == ["c"]


async def test_it_is_used_where_the_store_is_open_and_nowhere_else(url):
    """A connection of another event loop breaks with its first statement, and each one after it."""
    hf = Holdfast(url)

    async def ask():
        async with hf.session() as session:
            return await session.scalar(sa.text("SELECT 1"))

    def elsewhere():
        return asyncio.run(ask())

    for _ in range(2):
        with pytest.raises(NotOpen):
            await ask()
    async with hf:
        assert await ask() == 1
        if "sqlite" not in url:  # there connections are threads, and belong to no loop
            with pytest.raises(UsageError, match="another event loop"):
                await asyncio.to_thread(elsewhere)
        assert await ask() == 1
    with pytest.raises(NotOpen):
        await ask()
    async with hf:
        assert await ask() == 1
