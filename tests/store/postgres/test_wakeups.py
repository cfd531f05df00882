"""Wake-ups on PostgreSQL: what is sent, by which way it is heard, and that it comes back after a cut."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from kit import job, put

from holdfast.kernel.telemetry import subscribe
from holdfast.store.bell import EVERYONE
from holdfast.store.postgres import listener, wakeups
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.postgres.wakeups import payload_of
from holdfast.store.records import Enqueued
from holdfast.testing.conformance.wakeups import LONG, SOON, listen, silence, waiting

LISTENS = "datname = current_database() AND query LIKE 'LISTEN%'"


@pytest.fixture
async def notes():
    heard = []
    stop = subscribe(lambda name, fields: heard.append((name, dict(fields))))
    yield heard
    stop()


@pytest.fixture
async def sent(postgres_url):
    """The payloads of all NOTIFYs, as anyone would hear them."""
    connection = await asyncpg.connect(postgres_url)
    payloads = []
    await connection.add_listener(listener.CHANNEL, lambda *heard: payloads.append(heard[3]))
    yield payloads
    await connection.close()


async def until(fact):
    async with asyncio.timeout(LONG):
        while not fact():
            await asyncio.sleep(0.005)


async def test_nobody_listens_before_someone_waits(store):
    await put(store)
    assert await listening(store) == 0
    await listen(store, "default")
    await store.wakeups.wait(["default"], 0)
    async with asyncio.timeout(LONG):
        while await listening(store) != 1:
            await asyncio.sleep(0.005)


async def listening(store):
    async with store.transaction() as tx:
        [(number,)] = await tx.fetch("SELECT count(*) FROM pg_stat_activity WHERE " + LISTENS)
    return number


async def test_a_job_of_the_future_sends_no_hint(store, sent):
    await store.jobs.enqueue([job(delay=60), job(at=3_000_000_000.0)])
    await store.jobs.enqueue([job(queue="now")])
    await until(lambda: sent)
    assert sent == ["now"]


async def test_a_twin_sends_no_hint(store, sent):
    await put(store, unique="u", queue="first")
    await until(lambda: sent)
    await put(store, unique="u", queue="second")
    await put(store, queue="third")
    await until(lambda: len(sent) > 1)
    assert sent == ["first", "third"]


async def test_a_callers_own_connection_sends_no_hint(store, sent, postgres_url):
    connection = await asyncpg.connect(postgres_url)
    async with connection.transaction():
        await store.jobs.enqueue([job(queue="mine")], tx=connection)
    await connection.close()
    await put(store, queue="ours")
    await until(lambda: sent)
    assert sent == ["ours"]


async def test_many_hints_are_few_notifications(store, sent):
    await asyncio.gather(*(put(store, queue=f"q{number % 5}") for number in range(300)))
    store.wakeups.hint(["last"])
    await until(lambda: any("last" in payload.split("\n") for payload in sent))
    names = {name for payload in sent for name in payload.split("\n")}
    assert names == {"last", *(f"q{number}" for number in range(5))}
    assert len(sent) < 100


async def test_the_last_hint_is_sent_before_the_store_is_closed(postgres_url, sent):
    store = PostgresStore(postgres_url)
    await store.open()
    await put(store, queue="first")
    await put(store, queue="second")
    await store.close()
    await until(lambda: len(sent) >= 2)
    assert {name for payload in sent for name in payload.split("\n")} == {"first", "second"}


def test_too_many_names_are_news_for_everyone():
    assert payload_of({"b", "a"}) == "a\nb"
    assert payload_of({f"{number} {'ü' * 190}" for number in range(30)}) == EVERYONE


async def test_listening_comes_back_after_a_cut(store, other, monkeypatch):
    monkeypatch.setattr(listener, "FIRST_DELAY", 0.01)
    await listen(store, "default")
    async with other.transaction() as tx:
        await tx.fetch("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE " + LISTENS)
    assert await store.wakeups.wait(["default"], LONG) is True  # news may have been missed
    await silence(store, "default")
    task = await waiting(store)
    await put(other)
    assert await task is True


async def test_who_cannot_listen_waits_in_vain_and_says_so_once(postgres_url, notes, monkeypatch):
    monkeypatch.setattr(listener, "FIRST_DELAY", 0.01)
    monkeypatch.setattr(listener, "LONGEST_DELAY", 0.01)
    store = PostgresStore(postgres_url, listen_url="postgresql://postgres@127.0.0.1:1/nowhere")
    await store.open()
    for _ in range(3):
        assert await store.wakeups.wait(["default"], SOON) is False
    await until(lambda: [name for name, _ in notes] and ("wakeups.polling" in [name for name, _ in notes]))
    await put(store)
    assert await store.wakeups.wait(["default"], LONG) is True  # in this process hints need no connection
    await store.close()
    assert [name for name, _ in notes].count("wakeups.polling") == 1


async def test_a_connection_that_hears_nothing_says_so(postgres_url, databases, notes, monkeypatch):
    """As behind a pooler in transaction mode: LISTEN is accepted, and what it hears goes elsewhere."""
    monkeypatch.setattr(listener, "_PROOF", 0.05)
    elsewhere = await databases.create()
    store = PostgresStore(postgres_url, listen_url=elsewhere)
    await store.open()
    await listen(store, "default")
    await until(lambda: "wakeups.polling" in [name for name, _ in notes])
    await store.close()
    await databases.give_back(elsewhere)


async def test_a_hint_that_cannot_be_sent_is_lost(store, notes, monkeypatch):
    monkeypatch.setattr(wakeups, "_NOTIFY", "SELECT 1 / 0 WHERE $1::text IS NOT NULL OR $2::text IS NOT NULL")
    store.wakeups.hint(["default"])
    await until(lambda: "wakeups.hint_lost" in [name for name, _ in notes])
    assert await store.wakeups.wait(["default"], LONG) is True


@pytest.fixture
def sent_apart(store, monkeypatch):
    """The queues of the NOTIFYs that took a round trip of their own."""
    apart, notify = [], store.wakeups._notify

    async def record(names):
        apart.append(names)
        await notify(names)

    monkeypatch.setattr(store.wakeups, "_notify", record)
    return apart


async def test_a_lone_job_is_told_of_with_its_commit(store, sent, sent_apart):
    new = job()
    assert await store.jobs.enqueue([new]) == [Enqueued(new.id, created=True)]
    await until(lambda: sent == ["default"])
    assert not sent_apart


async def test_who_finds_another_telling_with_a_commit_tells_afterwards(store, other, sent, sent_apart):
    async with other.transaction() as tx:
        await tx.fetch(f"SELECT pg_advisory_xact_lock({wakeups.TELLING})")
        await put(store)
        await until(lambda: sent == ["default"])
        assert sent_apart == [{"default"}]


async def test_of_many_jobs_at_once_one_is_told_of_with_its_commit(store, sent, sent_apart, monkeypatch):
    monkeypatch.setattr(wakeups, "BETWEEN", 0.3)  # longer than twenty commits take on a busy machine
    await asyncio.gather(*(put(store, queue=f"q{number}") for number in range(20)))
    await until(lambda: len({name for payload in sent for name in payload.split("\n")}) == 20)
    assert len(sent) < 5
    assert sum(len(names) for names in sent_apart) >= 19


async def test_an_id_that_is_there_is_told_of_as_any_other(store, sent):
    new = job()
    for _ in range(2):
        assert await store.jobs.enqueue([new]) == [Enqueued(new.id, created=True)]
        await asyncio.sleep(2 * wakeups.BETWEEN)
    assert len(await store.jobs.find(limit=5)) == 1


async def test_what_is_told_while_the_last_one_is_being_ended_is_sent(store, sent, monkeypatch):
    ended, told = store.wakeups._sent, []

    def tell_and_end(task):
        if not told:
            told.append(True)
            store.wakeups.tell({"second"})  # nothing is sent for it: the last one is not over yet
        ended(task)

    monkeypatch.setattr(store.wakeups, "_sent", tell_and_end)
    store.wakeups.tell({"first"})
    await until(lambda: sent == ["first", "second"])
