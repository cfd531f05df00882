"""The answer to a commit is lost, and then the server stays away: what is unknown stays unknown, whatever fails next."""

from __future__ import annotations

import pytest
from kit import hush, job, put, put_many, take, the

from holdfast.kernel.errors import CommitUnknown, NotOpen, StoreUnavailable
from holdfast.kernel.outcomes import Done, Retry
from holdfast.store.event_records import Delivery
from holdfast.store.parts import in_parts
from holdfast.store.postgres import finishes
from holdfast.store.postgres.promotion import CHUNK
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.records import Finish
from holdfast.store.states import Held, State
from holdfast.store.unknown import still_unknown
from holdfast.testing.conformance.outbox import event
from tools.wire import Wire

COMMIT = b"COMMIT\0"  # the statement, not the words of BEGIN


@pytest.fixture
async def doomed(postgres_url):
    """A store whose server cannot be reached any more after the answer that the wire loses."""
    async with Wire(postgres_url).open() as wire:
        store = PostgresStore(f"{wire.url}?statement_cache_size=0&pool_size=2&patience=0.2")
        hush(store)
        await store.open()
        await put(store, queue="warm")
        [claim] = await store.claims.claim({"warm": 1}, lease=9, worker="w")
        await store.claims.finish([Finish(claim, Done())])
        await store.leases.acquire("warm", owner="w", ttl=9)
        await store.queues.pause("warm", by="w")
        wire.last_cut = True
        yield store, wire
        await store.close()


@pytest.mark.parametrize("number", [1, 600], ids=["insert", "copy"])
async def test_enqueue(doomed, store, number):
    through, wire = doomed
    new = [job() for _ in range(number)]
    wire.lose_answer_to(
        b"INSERT INTO holdfast.job" if number == 1 else bytes.fromhex(new[0].id.replace("-", ""))
    )
    with pytest.raises(CommitUnknown) as unknown:
        await through.jobs.enqueue(new)
    assert isinstance(unknown.value.__cause__, StoreUnavailable)
    assert (await the(store, new[0].id)).state is State.QUEUED
    assert wire.cuts == 1


async def test_enqueue_with_a_unique_key(doomed, store):
    through, wire = doomed
    new = [job(unique="a"), job(unique="b")]
    wire.lose_answer_to(COMMIT)
    with pytest.raises(CommitUnknown):
        await through.jobs.enqueue(new)
    await the(store, new[0].id)


@pytest.mark.parametrize("number", [1, 600], ids=["together", "alone"])
async def test_emit(doomed, store, number):
    through, wire = doomed
    new = [event("a") for _ in range(number)]
    wire.lose_answer_to(b"INSERT INTO holdfast.outbox" if number == 1 else COMMIT)
    with pytest.raises(CommitUnknown) as unknown:
        await through.outbox.emit(new)
    assert isinstance(unknown.value.__cause__, StoreUnavailable)
    assert await store.outbox.version("a") == number
    assert (await store.outbox.emit(new[-1:], again=True))[0].version == number


async def test_deliver(doomed, store):
    through, wire = doomed
    made = [Delivery("e", job())]
    wire.lose_answer_to(COMMIT)
    with pytest.raises(CommitUnknown):
        await through.inbox.deliver("g", made)
    assert await store.inbox.deliver("g", made) == [True]
    assert await store.inbox.deliver("g", [Delivery("e", job())]) == [False]


@pytest.mark.parametrize("outcome", [Done(), Retry(after=5)])
@pytest.mark.parametrize("together", [False, True], ids=["finish", "finish_and_claim"])
async def test_finish(doomed, store, outcome, together):
    through, wire = doomed
    await put(store)
    [claim] = await take(store)
    wire.lose_answer_to(b"DELETE FROM holdfast.job" if outcome == Done() else COMMIT)
    with pytest.raises(CommitUnknown):
        if together:
            await through.claims.finish_and_claim(
                [Finish(claim, outcome)], {"default": 1}, lease=9, worker="w"
            )
        else:
            await through.claims.finish([Finish(claim, outcome)])
    assert (await the(store, claim.job_id)).state is not State.RUNNING


async def test_tick(doomed, store):
    through, wire = doomed
    wire.lose_answer_to(COMMIT)
    with pytest.raises(CommitUnknown):
        await through.schedules.tick("nightly", 1000.0, job())
    assert await store.schedules.last("nightly") is not None


async def test_cancel(doomed, store):
    through, wire = doomed
    job_id = await put(store)
    wire.lose_answer_to(COMMIT)
    with pytest.raises(CommitUnknown):
        await through.jobs.cancel(job_id, "no")
    assert (await the(store, job_id)).state is State.CANCELLED


async def test_promote(doomed, store):
    through, wire = doomed
    job_id = await put(store, ordered="k")
    wire.lose_answer_to(COMMIT)
    with pytest.raises(CommitUnknown):
        await through.holds.promote()
    assert (await the(store, job_id)).held is None


async def test_a_lease(doomed, store):
    through, wire = doomed
    wire.lose_answer_to(b"INSERT INTO holdfast.lease")
    with pytest.raises(CommitUnknown):
        await through.leases.acquire("leader", owner="w", ttl=30)
    assert await store.leases.get("leader") is not None


async def test_a_store_that_is_closed_meanwhile_does_not_make_it_known():
    async def closed():
        raise NotOpen("closed")

    first = CommitUnknown("lost")
    with pytest.raises(CommitUnknown) as unknown:
        await still_unknown(first, closed())
    assert unknown.value is first


async def test_a_call_of_several_transactions_says_when_a_part_of_it_is_stored():
    async def write(part):
        if part[0] == 4:
            raise StoreUnavailable("Nothing was stored.")
        return [True] * len(part)

    with pytest.raises(CommitUnknown, match=r"^4 of 6 were written before"):
        await in_parts(range(6), 2, write)
    with pytest.raises(StoreUnavailable):
        await in_parts(range(4, 6), 2, write)
    assert await in_parts([], 2, write) == []


async def test_one_transaction_does_not_lock_more_keys_than_the_servers_lock_table_has_room_for(
    store, monkeypatch
):
    await put_many(store, 1_050, concurrency="shared", concurrency_limit=10_000)
    async with store.transaction() as tx:
        await tx.execute("UPDATE holdfast.job SET concurrency_key = id::text, held = NULL, slot = 1")
    locked = []

    def watched(keys):
        locked.append(len(set(keys)))
        return take_chain(keys)

    take_chain = finishes.take_chain
    monkeypatch.setattr(finishes, "take_chain", watched)
    claims = await take(store, 1_050)
    released, held, rest = claims[:350], claims[350:700], claims[700:]
    assert await store.claims.release(released) == [True] * 350
    assert await store.holds.hold(held, Held.GUARD) == [True] * 350
    assert (
        await store.claims.finish([Finish(claim, Done()) for claim in [*held, *rest]])
        == [False] * 350 + [True] * 350
    )
    assert max(locked) == CHUNK
    assert sum(locked) == 350 + 350 + 700
