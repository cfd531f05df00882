"""When the server, the wire or the pool fails: nothing is lost, nothing is done twice, and nobody is told a lie."""

from __future__ import annotations

import asyncio

import asyncpg
import msgspec
import pytest
from kit import end, hush, job, put, put_many, take, the

from holdfast.kernel.crashpoints import armed
from holdfast.kernel.errors import (
    CommitUnknown,
    LeaseLost,
    NotOpen,
    SchemaMissing,
    StatementError,
    StoreReadOnly,
    StoreUnavailable,
    TransactionEnded,
    UsageError,
)
from holdfast.kernel.outcomes import Done
from holdfast.store.postgres.schema import MIGRATIONS
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.records import Enqueued, Finish
from holdfast.store.states import Held, State
from tools.wire import Wire


@pytest.fixture
async def wired(postgres_url):
    """A store whose wire we can cut, and the wire. Statements are sent whole, so that their text is on the wire."""
    async with Wire(postgres_url).open() as wire:
        store = PostgresStore(f"{wire.url}?statement_cache_size=0&pool_size=2")
        hush(store)
        await store.open()
        await warm_up(store)
        yield store, wire
        await store.close()


async def warm_up(store):
    """The driver asks about types when it first meets them; that is not the request whose answer we want to lose."""
    await put_many(store, 2)
    await put(store, ordered="warm", unique="warm")
    await store.schedules.tick("warm", 0.0, job())
    await store.holds.promote()
    [first] = await take(store)
    _, claims = await store.claims.finish_and_claim(
        [Finish(first, Done())], {"default": 9}, lease=9, worker="w"
    )
    assert await store.claims.finish([Finish(claim, Done()) for claim in claims]) == [True] * 3
    await store.jobs.enqueue([job(id=first.job_id)], again=True)


async def total(store):
    return sum(count.number for count in await store.jobs.count())


async def kill(store, pid):
    async with store.transaction() as tx:
        await tx.fetch("SELECT pg_terminate_backend($1)", pid)


async def test_an_enqueue_whose_answer_was_lost_is_stored_once_and_says_so(wired, store):
    through, wire = wired
    new = job()
    wire.lose_answer_to(b"INSERT INTO holdfast.job")
    assert await through.jobs.enqueue([new]) == [Enqueued(new.id, created=True)]
    assert wire.cuts == 1
    assert await total(store) == 1


async def test_an_enqueue_whose_answer_was_lost_is_not_stored_again_after_it_ran(wired, store):
    """The job runs and ends between the lost answer and the second try: the history knows it."""
    through, wire = wired
    new = job()
    wire.lose_answer_to(b"INSERT INTO holdfast.job", b"BEGIN")

    async def run_it():
        while not (claims := await take(store)):
            await asyncio.sleep(0.005)
        return await end(store, claims[0])

    running = asyncio.create_task(run_it())
    assert await through.jobs.enqueue([new]) == [Enqueued(new.id, created=True)]
    assert await running
    assert await total(store) == 0
    assert (await the(store, new.id)).state is State.SUCCEEDED


async def test_many_callers_share_a_commit_whose_answer_was_lost(wired, store):
    through, wire = wired
    await through.jobs.enqueue([job()])
    wire.lose_answer_to(b"INSERT INTO holdfast.job", b"INSERT INTO holdfast.job")
    made = [job() for _ in range(30)]
    answers = await asyncio.gather(*(through.jobs.enqueue([new]) for new in made))
    assert answers == [[Enqueued(new.id, created=True)] for new in made]
    assert await total(store) == 31


@pytest.mark.parametrize("keys", [{}, {"ordered": "k"}])
async def test_a_finish_whose_answer_was_lost_is_settled_by_its_token(wired, store, keys):
    through, wire = wired
    job_id = await put(store, **keys)
    await store.holds.promote()
    [claim] = await take(store)
    wire.lose_answer_to(b"COMMIT" if keys else b"DELETE FROM holdfast.job")
    assert await through.claims.finish([Finish(claim, Done("1"))]) == [True]
    assert wire.cuts == 1
    assert (await the(store, job_id)).result == "1"


async def test_finish_and_claim_whose_answer_was_lost_tells_the_truth_about_the_finish(wired, store):
    through, wire = wired
    await put_many(store, 2)
    [claim] = await take(store)
    wire.lose_answer_to(b"DELETE FROM holdfast.job")
    answer = await through.claims.finish_and_claim(
        [Finish(claim, Done())], {"default": 5}, lease=30, worker="w"
    )
    assert answer == ([True], [])
    assert (await the(store, claim.job_id)).state is State.SUCCEEDED


async def test_a_claim_whose_answer_was_lost_is_unknown(wired, store):
    through, wire = wired
    job_id = await put(store)
    wire.lose_answer_to(b"nextval('holdfast.token')")
    with pytest.raises(CommitUnknown):
        await take(through)
    assert (await the(store, job_id)).state is State.RUNNING


async def test_a_tick_whose_answer_was_lost_is_still_ours(wired, store):
    through, wire = wired
    new = job()
    wire.lose_answer_to(b"COMMIT")
    assert await through.schedules.tick("nightly", 1000.0, new) == Enqueued(new.id, created=True)
    assert await store.schedules.tick("nightly", 1000.0, job()) is None
    assert await total(store) == 1


async def test_reading_goes_on_over_a_new_connection(wired, store):
    through, wire = wired
    job_id = await put(store)
    wire.lose_answer_to(b"UNION ALL SELECT h.id")
    assert (await the(through, job_id)).id == job_id
    assert wire.cuts == 1


async def test_the_commit_of_a_callers_transaction_may_be_unknown(wired, store):
    through, wire = wired
    new = job()
    with pytest.raises(CommitUnknown):
        async with through.transaction() as tx:
            await through.jobs.enqueue([new], tx=tx)
            wire.lose_answer_to(b"COMMIT")
    assert await total(store) == 1
    assert await through.jobs.enqueue([new], again=True) == [Enqueued(new.id, created=True)]
    assert await total(store) == 1


async def test_a_killed_backend_ends_the_transaction(store, other):
    with pytest.raises(TransactionEnded, match="cut off"):
        async with store.transaction() as tx:
            await store.jobs.enqueue([job()], tx=tx)
            [(pid,)] = await tx.fetch("SELECT pg_backend_pid()")
            await kill(other, pid)
            await tx.fetch("SELECT 1")
    assert await total(store) == 0


async def test_a_backend_killed_before_commit_leaves_nothing(store, other):
    new = job()
    with pytest.raises((CommitUnknown, TransactionEnded)):  # whether the driver knows already is chance
        async with store.transaction() as tx:
            await store.jobs.enqueue([new], tx=tx)
            [(pid,)] = await tx.fetch("SELECT pg_backend_pid()")
            await kill(other, pid)
    assert await total(store) == 0


async def test_verbs_survive_that_all_connections_were_closed(store, other):
    await asyncio.gather(*(put(store) for _ in range(5)))
    idle = list(store.database.pool._idle)
    async with other.transaction() as tx:
        await tx.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    while not all(connection.is_closed() for connection in idle):
        await asyncio.sleep(0.01)
    assert len(await take(store, 10)) == 5


async def test_a_crash_before_commit_stores_nothing_and_after_it_stores_all(store):
    class Crash(Exception):
        pass

    def crash(name):
        raise Crash(name)

    await put(store, ordered="k")
    for point, held in (("store.before_commit", "arrived"), ("store.after_commit", None)):
        with armed(point, crash), pytest.raises(Crash):
            await store.holds.promote()
        [found] = await store.jobs.find()
        assert found.held == held
    for point, stored in (("transaction.before_commit", 1), ("transaction.after_commit", 2)):
        with armed(point, crash), pytest.raises(Crash):
            async with store.transaction() as tx:
                await store.jobs.enqueue([job()], tx=tx)
        assert await total(store) == stored


async def test_a_lost_lease_rolls_the_callers_transaction_back(store):
    await put(store)
    [claim] = await take(store)
    await store.claims.rescue_worker("w")
    with pytest.raises(LeaseLost):
        async with store.transaction() as tx:
            await store.jobs.enqueue([job()], tx=tx)
            await store.claims.finish([Finish(claim, Done())], tx=tx)
    assert await total(store) == 1


async def test_a_transaction_that_swallowed_an_error_does_not_pretend_to_have_committed(store):
    with pytest.raises(TransactionEnded, match="rolled back"):
        async with store.transaction() as tx:
            await store.jobs.enqueue([job()], tx=tx)
            with pytest.raises(StatementError, match="nowhere"):
                await tx.execute("INSERT INTO nowhere VALUES (1)")
    assert await total(store) == 0


async def test_a_database_that_accepts_no_writes(postgres_url, store):
    admin = await asyncpg.connect(postgres_url)
    name = postgres_url.rpartition("/")[2]
    await admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    reader = PostgresStore(postgres_url)
    await reader.open()
    try:
        assert await reader.jobs.count() == []
        for attempt in (
            reader.jobs.enqueue([job()]),
            take(reader),
            reader.jobs.enqueue([job() for _ in range(600)]),
        ):
            with pytest.raises(StoreReadOnly, match="no writes"):
                await attempt
    finally:
        await reader.close()
        await admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await admin.close()


async def test_a_transaction_leaves_a_server_that_accepts_no_writes(postgres_url, store):
    """The connection may lead to a server that is no longer the first: whoever comes next must not get it again."""
    narrow = PostgresStore(f"{postgres_url}?pool_size=2")
    await narrow.open()
    pids = []
    for _ in range(2):
        with pytest.raises(StoreReadOnly):
            async with narrow.transaction() as tx:
                pids += await tx.fetch("SELECT pg_backend_pid()")
                await tx.execute("SET TRANSACTION READ ONLY")
                await tx.execute("CREATE TABLE never (n int)")
    await narrow.close()
    assert pids[0] != pids[1]


async def test_an_exhausted_pool_says_so_and_loses_no_lease(postgres_url):
    store = PostgresStore(f"{postgres_url}?pool_size=3&pool_wait=0.2")
    await store.open()
    await put_many(store, 2)
    one, two = await take(store, 2)
    async with store.transaction(), store.transaction():
        with pytest.raises(StoreUnavailable, match=r"All 3 connections.*pool_size"):
            await put(store)
        with pytest.raises(StoreUnavailable):
            async with store.transaction():
                pass
        assert len(await store.claims.renew([one, two], lease=30)) == 2
        assert await end(store, one)
        assert await store.claims.release([two]) == [True]
    assert await put(store)
    await store.close()


async def test_who_waits_for_a_connection_gets_the_first_that_is_free(postgres_url):
    store = PostgresStore(f"{postgres_url}?pool_size=2&pool_wait=30")
    await store.open()
    async with store.transaction():
        waiting = [asyncio.create_task(put(store)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
    assert len({await waiting[0], await waiting[2]}) == 2
    await store.close()


async def test_no_server_is_unavailable_not_unknown():
    store = PostgresStore("postgresql://postgres@127.0.0.1:1/nothing?patience=0.1")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await store.open()
    with pytest.raises(NotOpen):
        await store.jobs.count()


async def test_without_tables_every_verb_says_migrate(empty_postgres_url):
    store = PostgresStore(empty_postgres_url)
    await store.open()
    for attempt in (store.jobs.enqueue([job()]), take(store), store.jobs.count(), store.now()):
        with pytest.raises(SchemaMissing, match="holdfast migrate"):
            await attempt
    assert await store.pending() == [each.name for each in MIGRATIONS]
    await store.close()


def spoilt(new):
    """As if a check had missed it: PostgreSQL cannot keep a NUL."""
    msgspec.structs.force_setattr(new, "args", "\x00")
    return new


async def test_one_bad_row_fails_only_its_own_caller(store):
    good = [job() for _ in range(20)]
    bad = spoilt(job())
    answers = await asyncio.gather(
        *(store.jobs.enqueue([new]) for new in [*good[:10], bad, *good[10:]]), return_exceptions=True
    )
    assert isinstance(answers.pop(10), UsageError)
    assert answers == [[Enqueued(new.id, created=True)] for new in good]
    assert await total(store) == 20


@pytest.fixture
async def never_promoted(store):
    """A task whose jobs the table refuses once they are promoted. Databases are used again: it is taken back."""
    check = "CHECK (task <> 'poison' OR coalesce(held, '') = 'arrived')"
    async with store.transaction() as tx:
        await tx.execute(f"ALTER TABLE holdfast.job ADD CONSTRAINT never_promoted {check}")
    yield
    async with store.transaction() as tx:
        await tx.execute("ALTER TABLE holdfast.job DROP CONSTRAINT never_promoted")


@pytest.mark.usefixtures("never_promoted")
async def test_one_job_that_cannot_be_promoted_keeps_no_other_from_it(store):
    poison = await put(store, task="poison", ordered="o")
    behind = await put(store, ordered="o")
    others = await put_many(store, 150, tenant="a")
    for _ in range(2):
        assert await store.holds.promote(limit=100) in (50, 100)
    assert [(await the(store, job_id)).held for job_id in others].count(None) == 100  # a full window
    assert [(await the(store, job_id)).held for job_id in (poison, behind)] == [Held.ARRIVED] * 2


async def test_a_large_batch_is_all_or_nothing_and_may_be_repeated(store):
    made = [job() for _ in range(700)]
    assert len(await store.jobs.enqueue(made)) == 700
    assert await store.jobs.enqueue([*made, job()]) != []
    assert await total(store) == 701
    with pytest.raises(UsageError):
        await store.jobs.enqueue([*(job() for _ in range(700)), spoilt(job())])
    assert await total(store) == 701


async def test_settings_that_could_lose_acknowledged_jobs_are_refused(postgres_url):
    from holdfast.kernel.errors import UnsupportedStore

    store = PostgresStore(f"{postgres_url}?synchronous_commit=off")
    with pytest.raises(UnsupportedStore, match="synchronous_commit"):
        await store.open()


async def test_the_time_inside_a_transaction_needs_no_second_connection(postgres_url):
    """Tasks that hold all connections and ask for the time would wait for each other."""
    store = PostgresStore(f"{postgres_url}?pool_size=3&pool_wait=0.5")
    await store.open()
    both_hold = asyncio.Barrier(2)

    async def ask():
        async with store.transaction() as tx:
            await tx.fetch("SELECT 1")
            await both_hold.wait()
            return await store.now()

    one, two = await asyncio.gather(ask(), ask())
    assert abs(one - two) < 5
    with pytest.raises(TransactionEnded):
        async with store.transaction() as tx:
            with pytest.raises(StatementError):
                await tx.fetch("SELECT nothing FROM nowhere")
            assert await store.now() >= one  # it can be asked also when the transaction has failed
    await store.close()
