"""The engine of its own on PostgreSQL: what of the store's URL reaches the driver, and what does not."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from holdfast import Holdfast
from holdfast.errors import StoreUnavailable
from holdfast.sqlalchemy.postgres import PostgresEngines, url_of
from holdfast.store.postgres.url import parse
from holdfast.web.problems import problem_of
from tools.wire import Wire


def test_what_is_ours_is_taken_out_of_the_url():
    target = parse("postgresql+asyncpg://me:p%40ss@host:5433/shop?pool_size=20&patience=1&sslmode=require")
    url = url_of(target, "asyncpg")
    assert (url.username, url.password, url.host, url.port, url.database) == (
        "me",
        "p@ss",
        "host",
        5433,
        "shop",
    )
    assert dict(url.query) == {"ssl": "require"}
    assert dict(url_of(target, "psycopg").query) == {"sslmode": "require"}


def test_behind_a_pooler_without_prepared_statements():
    engines = PostgresEngines("postgresql://me@host/shop?statement_cache_size=0", None)
    assert isinstance(engines.make().pool, NullPool)
    assert isinstance(engines.make_blocking().pool, NullPool)


async def test_it_works_without_a_statement_cache(postgres_url):
    mark = "&" if "?" in postgres_url else "?"
    async with Holdfast(f"{postgres_url}{mark}statement_cache_size=0") as hf, hf.session() as session:
        for number in range(3):
            assert await session.scalar(sa.text("SELECT CAST(:n AS integer)"), {"n": number}) == number
            await session.commit()


async def test_the_planner_is_the_users(postgres_url):
    """Holdfast's own connections have settings that suit its tables, and nobody else's."""
    async with Holdfast(postgres_url) as hf, hf.session() as session:
        assert await session.scalar(sa.text("SHOW enable_seqscan")) == "on"
        assert await session.scalar(sa.text("SHOW plan_cache_mode")) == "auto"


async def test_its_connections_end_with_the_store(postgres_url):
    hf = Holdfast(postgres_url)
    async with hf:
        async with hf.session() as session:
            await session.execute(sa.text("SELECT 1"))
        assert hf.sqlalchemy().pool.checkedin() == 1
    assert hf.sqlalchemy().pool.checkedin() == 0


async def test_two_sessions_of_one_task_write_side_by_side(postgres_url):
    async with Holdfast(postgres_url) as hf, hf.session() as one, hf.session() as other:
        await one.execute(sa.text("CREATE TABLE side (id integer)"))
        await one.commit()
        await one.execute(sa.text("INSERT INTO side VALUES (1)"))
        await other.execute(sa.text("INSERT INTO side VALUES (2)"))
        await other.commit()
        await one.commit()
        assert await one.scalar(sa.text("SELECT count(*) FROM side")) == 2
        await one.execute(sa.text("DROP TABLE side"))
        await one.commit()


async def test_a_connection_that_the_server_has_closed_is_replaced(postgres_url):
    async with Holdfast(postgres_url) as hf:
        async with hf.session() as session:
            ended = await session.scalar(sa.text("SELECT pg_backend_pid()"))
        async with hf.transaction() as tx:
            await tx.fetch("SELECT pg_terminate_backend($1::int)", ended)
        for _ in range(100):  # until the news is here
            await asyncio.sleep(0.01)
        async with hf.session() as session:
            assert await session.scalar(sa.text("SELECT pg_backend_pid()")) != ended


async def test_a_session_that_is_cut_off_is_no_fault_of_the_program(postgres_url):
    """A request that had one is answered with 503, and may be sent again."""
    wire = Wire(postgres_url)
    async with wire.open(), Holdfast(wire.url) as hf, hf.session() as session:
        await session.execute(sa.text("SELECT 1"))
        wire.lose_answer_to(b"pg_sleep")
        with pytest.raises(DBAPIError) as cut:
            await session.execute(sa.text("SELECT pg_sleep(0.01)"))
    assert (problem_of(cut.value).status, problem_of(cut.value).retry_after) == (503, 2)


async def test_a_server_that_takes_no_connection_is_told_in_our_words(postgres_url):
    wire = Wire(postgres_url)
    async with wire.open(), Holdfast(wire.url) as hf:
        wire.last_cut = wire._dead = True  # who comes now is hung up on
        with pytest.raises(StoreUnavailable):
            async with hf.session() as session:
                await session.execute(sa.text("SELECT 1"))
        wire._dead = False
