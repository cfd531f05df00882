"""Whose connection it is: callers leave nothing behind in it, and another process or event loop never touches it."""

from __future__ import annotations

import asyncio
import threading

import pytest
from kit import blocked, end, job, put, put_many, take, the
from running import in_child

from holdfast.kernel.errors import TransactionEnded, UsageError
from holdfast.kernel.outcomes import Done
from holdfast.store.postgres import connection as connection_module
from holdfast.store.postgres import transaction as transaction_module
from holdfast.store.postgres.schema import MIGRATIONS
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.records import Finish


@pytest.fixture
async def single(postgres_url):
    """A store with one connection, so that the next one gets the same."""
    store = PostgresStore(f"{postgres_url}?pool_size=1&command_timeout=5")
    await store.open()
    yield store
    await store.close()


async def shown(store, *names):
    async with store.transaction() as tx:
        return [(await tx.fetch(f"SHOW {name}"))[0][0] for name in names]


NAMES = ("synchronous_commit", "search_path", "statement_timeout", "role")


@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_caller_sets_ends_with_its_transaction(single, fails):
    before = await shown(single, *NAMES)
    try:
        async with single.transaction() as tx:
            [(pid,)] = await tx.fetch("SELECT pg_backend_pid()")
            await tx.execute("SET synchronous_commit = off")
            await tx.execute("SET search_path = nowhere")
            await tx.execute("SET statement_timeout = '59min'")
            await tx.execute("SET ROLE pg_monitor")
            await tx.execute("SELECT pg_advisory_lock(7)")
            await tx.execute("CREATE TEMP TABLE mine (n int)")
            if fails:
                raise KeyError
    except KeyError:
        assert fails
    connection = await single.database.pool.acquire()
    try:
        assert connection.get_server_pid() == pid
        assert [await connection.fetchval(f"SHOW {name}") for name in NAMES] == before
        assert await connection.fetchval("SHOW enable_seqscan") == "off", "our own settings are still there"
        assert await connection.fetchval("SHOW plan_cache_mode") == "force_generic_plan"
        assert await connection.fetchval("SHOW application_name") == "holdfast"
        assert await connection.fetchval("SELECT to_regclass('pg_temp.mine')") is None
        assert (
            await connection.fetchval(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            )
            == 0
        )
    finally:
        single.database.pool.release(connection)
    assert await put(single)


async def soil(tx):
    [(pid,)] = await tx.fetch("SELECT pg_backend_pid()")
    await tx.execute("SET search_path = nowhere")
    await tx.execute("SELECT pg_advisory_lock(7)")
    await tx.execute("CREATE TEMP TABLE mine (n int)")
    return pid


async def is_clean(connection):
    return (
        await connection.fetchval("SHOW search_path") == '"$user", public'
        and await connection.fetchval("SELECT to_regclass('pg_temp.mine')") is None
        and await connection.fetchval(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        == 0
    )


async def test_who_waits_for_a_connection_gets_it_clean(single):
    """He cleans it himself, together with his beginning; and his own failure does not bring back what was there."""

    async def fail():
        with pytest.raises(KeyError):
            async with single.transaction() as tx:
                assert await tx.fetch("SHOW search_path") == [('"$user", public',)]
                raise KeyError

    async with single.transaction() as tx:
        pid = await soil(tx)
        waiting = [asyncio.create_task(fail()), asyncio.create_task(single.jobs.count())]
        await asyncio.sleep(0.05)
    await asyncio.gather(*waiting)
    connection = await single.database.pool.acquire()
    assert connection.get_server_pid() == pid
    assert await is_clean(connection)
    single.database.pool.release(connection)


async def test_a_verb_that_waits_for_a_connection_gets_it_clean(single):
    async with single.transaction() as tx:
        await soil(tx)
        waiting = asyncio.create_task(single.jobs.count())
        await asyncio.sleep(0.05)
    await waiting
    connection = await single.database.pool.acquire()
    assert await is_clean(connection)
    single.database.pool.release(connection)


async def test_nothing_is_left_behind_when_who_waited_goes_away(single):
    """He was let in, and is stopped before he takes it: the connection ends, with the locks that it has."""
    async with single.transaction() as tx:
        pid = await soil(tx)
        waiting = asyncio.create_task(single.jobs.count())
        await asyncio.sleep(0.05)
    waiting.cancel()  # the future is done, and the task has not run since
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    connection = await single.database.pool.acquire()
    assert connection.get_server_pid() != pid
    single.database.pool.release(connection)


@pytest.mark.parametrize("verb", ["count", "begin"])
async def test_one_that_cannot_be_cleaned_is_not_for_anybody(single, verb, monkeypatch):
    """That takes longer than what was set in it allows. Who waited for it gets another, and does not hear of it."""
    monkeypatch.setattr(connection_module, "RESET", f"SELECT pg_sleep(0.1); {connection_module.RESET}")

    async def begin():
        async with single.transaction() as tx:
            return await tx.fetch("SELECT pg_sleep(0.01)")

    async with single.transaction() as tx:
        [(pid,)] = await tx.fetch("SELECT pg_backend_pid()")
        await tx.execute("SET synchronous_commit = off")
        await tx.execute("SET statement_timeout = '20ms'")
        waiting = asyncio.create_task(begin() if verb == "begin" else single.jobs.count())
        await asyncio.sleep(0.05)
    await waiting
    connection = await single.database.pool.acquire()
    assert connection.get_server_pid() != pid
    assert await connection.fetchval("SHOW synchronous_commit") == "on"
    single.database.pool.release(connection)


async def test_a_transaction_of_verbs_alone_has_nothing_to_clean(single):
    asked = []
    connection = await single.database.pool.acquire()
    connection.add_query_logger(lambda record: asked.append(record.query))
    single.database.pool.release(connection)
    async with single.transaction() as tx:
        await single.jobs.enqueue([job()], tx=tx)
    await asyncio.sleep(0)
    assert not any("RESET" in sql for sql in asked)
    assert any("INSERT" in sql for sql in asked)


@pytest.fixture
def unseen(monkeypatch):
    """As if its text did not tell that a statement ends the transaction."""
    monkeypatch.setattr(transaction_module, "refuse_end", lambda _: None)


@pytest.mark.parametrize("word", ["COMMIT", "ROLLBACK", "END"])
async def test_a_transaction_that_is_ended_by_hand_writes_nothing_more(single, word, unseen):
    new = job()
    with pytest.raises(TransactionEnded, match="COMMIT or ROLLBACK"):
        async with single.transaction() as tx:
            await tx.execute(word)
            for attempt in (tx.execute("SELECT 1"), tx.fetch("SELECT 1"), single.jobs.enqueue([new], tx=tx)):
                with pytest.raises(TransactionEnded, match="COMMIT or ROLLBACK"):
                    await attempt
    assert await single.jobs.get(new.id) is None


async def test_the_callers_own_error_comes_before_an_end_by_hand(single, unseen):
    with pytest.raises(KeyError):
        async with single.transaction() as tx:
            await tx.fetch("ROLLBACK")
            raise KeyError
    async with single.transaction() as tx:
        await tx.execute("SAVEPOINT a")
        await tx.execute("ROLLBACK TO a")
        await single.jobs.enqueue([job()], tx=tx)
    assert len(await single.jobs.find()) == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
async def test_a_forked_child_keeps_off_the_parents_connections(single):
    await put(single)
    [claim] = await take(single)
    for verb in (
        lambda: single.jobs.enqueue([job()]),
        lambda: single.jobs.count(),
        lambda: single.claims.finish([Finish(claim, Done())]),
        lambda: single.transaction().__aenter__(),
    ):
        assert in_child(verb).startswith("NotOpen: The store was opened before this process was forked")
        assert await single.jobs.count() != []
    assert in_child(single.close) == "None"
    assert in_child(single.open) == "None"
    assert in_child(single.migrate) == "[]"
    connection = await single.database.pool.acquire()
    single.database.pool.release(connection)
    assert not connection.is_closed()
    assert await end(single, claim)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
async def test_a_transaction_that_is_open_during_a_fork_stays_the_parents(single):
    async with single.transaction() as tx:
        await single.jobs.enqueue([job()], tx=tx)
        assert in_child(lambda: tx.execute("SELECT 1")).startswith("NotOpen")
        assert in_child(lambda: tx.__aexit__(None, None, None)).startswith("NotOpen")
    assert len(await single.jobs.find()) == 1


async def test_another_event_loop_is_refused(single):
    said = []

    async def use():
        for attempt in (single.jobs.enqueue([job()]), single.jobs.count(), single.open(), single.close()):
            with pytest.raises(UsageError, match="another event loop"):
                await attempt
            said.append("refused")

    thread = threading.Thread(target=lambda: asyncio.run(use()))
    thread.start()
    await asyncio.to_thread(thread.join)
    assert said == ["refused"] * 4
    assert await put(single)


async def test_migrate_takes_as_long_as_it_takes(empty_postgres_url):
    slow, other = (PostgresStore(f"{empty_postgres_url}?command_timeout=0.4") for _ in range(2))
    await slow.open()
    async with Migrator(other):
        migrating = asyncio.create_task(slow.migrate())
        await asyncio.sleep(1)
        assert not migrating.done(), migrating
    assert await migrating == [each.name for each in MIGRATIONS]
    await slow.close()


class Migrator:
    """Another migrator at work: it has the lock that they take turns by."""

    def __init__(self, store):
        self.store = store

    async def __aenter__(self):
        from holdfast.store.postgres.connection import connect

        self.connection = await connect(self.store.database.target)
        await self.connection.execute("BEGIN; SELECT pg_advisory_xact_lock(1215266048, 0)")

    async def __aexit__(self, *_):
        await self.connection.close()


async def test_a_finish_whose_key_is_taken_does_not_hold_up_others(store, other):
    await put_many(store, 2, concurrency="busy", concurrency_limit=2)
    free = [await put(store, concurrency=f"free{n}", concurrency_limit=1) for n in range(5)]
    await store.holds.promote()
    claims = await take(store, 10)
    first, second = (claim for claim in claims if claim.concurrency == "busy")
    rest = [claim for claim in claims if claim.job_id in free]
    async with store.transaction() as tx:
        await store.claims.finish([Finish(first, Done())], tx=tx)
        blocked = asyncio.create_task(end(other, second))
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            assert await asyncio.gather(*(end(other, claim) for claim in rest[:3])) == [True] * 3
            # The same when it is in the middle of a batch.
            again = asyncio.gather(*(end(other, claim) for claim in (rest[3], second, rest[4])))
            while any([(await the(store, claim.job_id)).lease_until for claim in rest]):
                await asyncio.sleep(0.01)
        assert not blocked.done()
    answers = [await blocked, *await again]
    assert sorted(answers) == [False, True, True, True]


@pytest.mark.parametrize("sql", ["COMMIT AND CHAIN", "/* now */ rollback and chain", "-- x\nEND AND CHAIN"])
@pytest.mark.parametrize("verb", ["execute", "fetch"])
async def test_a_transaction_is_not_exchanged_for_another(single, verb, sql):
    async with single.transaction() as tx:
        await single.jobs.enqueue([job()], tx=tx)
        with pytest.raises(UsageError, match="would begin or end a transaction"):
            await getattr(tx, verb)(sql)
    assert len(await take(single)) == 1


async def half_sent(store, statement="SELECT 1"):
    """A transaction that has a lease's row, of a client that is frozen after the server has prepared its next statement."""
    await store.leases.acquire("a", owner="me", ttl=60)
    connection = await store.database.begin(connection_module.BEGIN)
    await connection.fetch("SELECT 1 FROM holdfast.lease WHERE name = 'a' FOR UPDATE")
    await connection.prepare(statement)
    return connection


async def test_a_client_that_stands_still_in_the_middle_of_a_statement_loses_its_locks(store, other):
    connection = await half_sent(store)
    try:
        assert await other.sessions.end_stuck(after=60) == 0
        released = asyncio.create_task(other.leases.steal("a", actor="test", reason="its row is locked"))
        await blocked(store)
        assert await other.sessions.end_stuck(after=0) == 1
        assert await released
        assert await other.sessions.end_stuck(after=0) == 0
    finally:
        store.database.pool.release(connection, broken=True)


async def test_a_client_that_does_not_take_its_answer_loses_its_locks(store, other):
    sql = "SELECT repeat('x', 100000), name FROM holdfast.lease, generate_series(1, 10000) WHERE name = 'a' FOR UPDATE OF lease"
    await store.leases.acquire("a", owner="me", ttl=60)
    connection = await store.database.pool.acquire()
    connection._transport.pause_reading()
    asking = asyncio.create_task(connection.fetch(sql))
    try:
        async with asyncio.timeout(10):
            while not await other.sessions.end_stuck(after=0):
                await asyncio.sleep(0.01)
    finally:
        connection.terminate()
        store.database.pool.release(connection, broken=True)
    with pytest.raises(Exception):  # noqa: B017  whatever the driver says of a connection that is gone
        await asking


async def test_who_works_or_rests_is_left_alone(store, other):
    """A statement that runs, and a transaction whose client does something else, have limits of their own."""
    async with store.transaction() as tx, other.transaction() as running:
        await tx.execute("SELECT 1")
        busy = asyncio.create_task(running.fetch("SELECT pg_sleep(0.3)"))
        await asyncio.sleep(0.1)
        assert await other.sessions.end_stuck(after=0) == 0
        await busy
        await tx.execute("SELECT 1")
