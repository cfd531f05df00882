"""The caller's session is as it was before, and the caller's settings do not disturb us."""

import json

import asyncpg
import psycopg
import pytest
import sqlalchemy
from callers import ALCHEMY, Asyncpg, Psycopg, PsycopgAsync
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads
from psycopg.types.string import StrDumper

from holdfast.store.postgres.adapters import adopt
from holdfast.store.statements import Statement

SESSION = [
    "SELECT name, setting FROM pg_settings WHERE source = 'session' ORDER BY name",
    "SELECT current_schemas(true), current_user, session_user",
    "SELECT pg_listening_channels()",
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
    "SELECT count(*) FROM pg_cursors WHERE name <> ''",
    "SELECT pg_backend_pid()",
]


def probe():
    rows = yield Statement(
        "SELECT $1::text, $2::float8, $3::jsonb::text", ("a", 1784600000.123457, '{"a": 1}')
    )
    return rows


ANSWER = [("a", 1784600000.123457, '{"a": 1}')]


async def test_the_session_is_as_it_was(caller, store_id):
    await caller.sql("SET LOCAL work_mem = '8MB'")
    for _ in range(2):  # asyncpg, meeting a type for the first time, itself changes a setting
        before = [await caller.sql(sql) for sql in SESSION]
    tx = await adopt(caller.tx, store_id=store_id)
    for _ in range(10):  # psycopg would prepare at the fifth
        assert await tx.run(probe()) == ANSWER
        await tx.execute("SELECT 1")
    assert [await caller.sql(sql) for sql in SESSION] == before


@pytest.mark.parametrize("kind", [Psycopg, PsycopgAsync])
async def test_psycopg_prepares_nothing_for_us(kind, url, store_id):
    caller = kind(url)
    await caller.open()
    tx = await adopt(caller.tx, store_id=store_id)
    for _ in range(10):
        await tx.run(probe())
    assert await caller.sql("SELECT count(*) FROM pg_prepared_statements") == [(0,)]
    await caller.close()


async def test_asyncpg_prepares_nothing_when_the_caller_wants_nothing_prepared(url, store_id):
    connection = await asyncpg.connect(url, statement_cache_size=0)
    async with connection.transaction():
        tx = await adopt(connection, store_id=store_id)
        for _ in range(3):
            await tx.run(probe())
        assert (
            await connection.fetchval(
                "SELECT count(*) FROM pg_prepared_statements WHERE statement ~ 'float8'"
            )
            == 0
        )
    await connection.close()


async def test_the_callers_own_factories_and_adapters_of_psycopg(url, store_id):
    with psycopg.connect(url, row_factory=dict_row, cursor_factory=psycopg.ClientCursor) as connection:
        connection.adapters.register_dumper(str, StrDumper)  # every text is of type text: no uuid from text
        set_json_loads(lambda data: "theirs", connection)
        tx = await adopt(connection, store_id=store_id)
        assert await tx.run(probe()) == ANSWER
        assert await tx.fetch(
            "SELECT count(*) FROM holdfast.job WHERE id = $1", "01890a5d-ac96-774b-bcce-b302099a8057"
        ) == [(0,)]
        assert connection.row_factory is dict_row
        assert connection.cursor_factory is psycopg.ClientCursor
        assert connection.execute("""SELECT '{"a": 1}'::jsonb AS x""").fetchall() == [{"x": "theirs"}]
        assert connection.autocommit is False


@pytest.mark.parametrize("autocommit", [True, False])
async def test_psycopg_in_a_pipeline(url, store_id, autocommit):
    with (
        psycopg.connect(url, autocommit=autocommit) as connection,
        connection.pipeline(),
        connection.transaction(),
    ):
        connection.execute("CREATE TEMP TABLE t (n int) ON COMMIT DROP")
        connection.execute("INSERT INTO t VALUES (1)")
        tx = await adopt(connection, store_id=store_id)
        assert await tx.run(probe()) == ANSWER
        assert await tx.fetch("SELECT n FROM t") == [(1,)]
        assert await tx.execute("INSERT INTO t VALUES (2), (3)") == 2


async def test_psycopg_async_in_a_pipeline(url, store_id):
    connection = await psycopg.AsyncConnection.connect(url)
    async with connection, connection.pipeline():
        await connection.execute("CREATE TEMP TABLE t (n int) ON COMMIT DROP")
        await connection.execute("INSERT INTO t VALUES (1)")
        tx = await adopt(connection, store_id=store_id)
        assert await tx.fetch("SELECT n FROM t") == [(1,)]
        assert await tx.execute("INSERT INTO t VALUES (2), (3)") == 2


async def test_the_callers_own_codecs_of_asyncpg(url, store_id):
    class Record(asyncpg.Record):
        def __iter__(self):
            return iter(["theirs"])

    connection = await asyncpg.connect(url, record_class=Record)
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    async with connection.transaction():
        tx = await adopt(connection, store_id=store_id)
        assert await tx.fetch("SELECT $1::text, $2::text::jsonb::text", "a", '{"a": 1}') == [
            ("a", '{"a": 1}')
        ]
        assert list(await connection.fetchrow("SELECT 1")) == ["theirs"]
    await connection.close()


@pytest.mark.parametrize(
    "setting", ["DateStyle = 'German, DMY'", "extra_float_digits = 0", "TimeZone = 'Asia/Tokyo'"]
)
@pytest.mark.parametrize("kind", [Asyncpg, Psycopg, PsycopgAsync])
async def test_the_callers_formats(kind, url, store_id, setting):
    caller = kind(url)
    await caller.open()
    await caller.begin()
    await caller.sql(f"SET LOCAL {setting}")
    tx = await adopt(caller.tx, store_id=store_id)
    assert await tx.run(probe()) == ANSWER
    sql = "SELECT date_part('epoch', t), t FROM (SELECT to_timestamp($1) AS t) AS s"
    [(seconds, when)] = await tx.fetch(sql, 1784600000.5)
    assert seconds == when.timestamp() == 1784600000.5
    await caller.rollback()
    await caller.close()


@pytest.mark.parametrize("options", [{"stream_results": True}, {"yield_per": 10}, {"max_row_buffer": 5}])
@pytest.mark.parametrize("kind", ALCHEMY)
async def test_the_callers_execution_options_of_sqlalchemy(kind, url, store_id, options):
    caller = kind(url)
    caller.options = {"execution_options": options}
    await caller.open()
    tx = await adopt(caller.tx, store_id=store_id)
    assert await tx.run(probe()) == ANSWER
    await tx.execute("CREATE TEMP TABLE t (n int) ON COMMIT DROP")
    assert await tx.fetch("INSERT INTO t VALUES ($1) RETURNING n", 7) == [(7,)]
    assert await tx.execute("INSERT INTO t VALUES ($1), ($1)", 8) == 2
    await caller.close()


async def test_sqlalchemy_sees_our_statements(url, store_id):
    engine = sqlalchemy.create_engine(url.replace("://", "+psycopg://"))
    seen = []
    sqlalchemy.event.listen(engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    with engine.connect() as connection:
        tx = await adopt(connection, store_id=store_id)
        await tx.run(probe())
    assert any("float8" in sql for sql in seen)
    engine.dispose()


async def test_a_session_is_not_flushed(url, store_id):
    base = sqlalchemy.orm.declarative_base()

    class Nowhere(base):
        __tablename__ = "nowhere"
        id = sqlalchemy.Column(sqlalchemy.Integer, primary_key=True)

    engine = sqlalchemy.create_engine(url.replace("://", "+psycopg://"))
    with sqlalchemy.orm.Session(engine) as session:
        session.add(Nowhere(id=1))
        tx = await adopt(session, store_id=store_id)
        assert await tx.run(probe()) == ANSWER
        assert len(session.new) == 1
    engine.dispose()
