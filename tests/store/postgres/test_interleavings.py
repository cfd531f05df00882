"""Two at once, in every order that matters: transactions are held open half-way, and the other one is seen to wait."""

from __future__ import annotations

import asyncio
import random

import pytest
from clocks import advance
from kit import blocked, end, job, put, put_many, take, the

from holdfast.kernel.outcomes import Cancel, Dead, Done, Retry
from holdfast.store.postgres import candidates, claiming, finishes, moves, steps
from holdfast.store.postgres.locks import Keys
from holdfast.store.postgres.low_water import LowWater
from holdfast.store.records import Enqueued, Finish
from holdfast.store.states import Held, State
from holdfast.store.steps import Kind, Progress, Step


class Undo(Exception):
    """Raised in a block to roll its transaction back."""


def running(coroutine):
    return asyncio.get_running_loop().create_task(coroutine)


async def test_two_open_claims_share_nothing(store, other):
    made = await put_many(store, 12)
    async with store.transaction() as first, other.transaction() as second:
        mine = await first.run(claiming.claim({"default": 5}, lease=30, worker="a", water=LowWater()))
        theirs = await second.run(claiming.claim({"default": 10}, lease=30, worker="b", water=LowWater()))
    assert [claim.job_id for claim in mine] == made[:5]
    assert [claim.job_id for claim in theirs] == made[5:]
    assert mine[0].token != theirs[0].token


async def test_many_claims_at_once_never_exceed_their_limit(store):
    made = await put_many(store, 150)
    taken = await asyncio.gather(*(take(store, 10) for _ in range(20)))
    assert all(len(part) <= 10 for part in taken)
    ids = [claim.job_id for part in taken for claim in part]
    assert len(ids) == len(set(ids))
    while part := await take(store, 10):
        ids += [claim.job_id for claim in part]
    assert sorted(ids) == sorted(made)


async def test_a_claim_that_rolls_back_leaves_the_job_ready(store):
    [made] = await put_many(store, 1)
    with pytest.raises(Undo):
        async with store.transaction() as tx:
            assert await tx.run(claiming.claim({"default": 1}, lease=30, worker="a", water=LowWater()))
            assert await take(store) == []
            raise Undo
    [claim] = await take(store)
    assert (claim.job_id, claim.attempt) == (made, 1)


async def test_a_claim_never_fences_with_an_older_token(store):
    job_id = await put(store)
    async with (
        store.transaction() as tx
    ):  # as if a faster claim had drawn a later token and given the job back
        await tx.execute("UPDATE holdfast.job SET token = (1::bigint << 41) WHERE id = $1::uuid", job_id)
    assert await take(store) == []
    await store.raise_epoch()
    await store.raise_epoch()
    [claim] = await take(store)
    assert claim.token > 1 << 41


async def test_cancel_waits_for_a_claim_and_then_asks(store, other):
    job_id = await put(store)
    async with store.transaction() as tx:
        await tx.run(claiming.claim({"default": 1}, lease=30, worker="a", water=LowWater()))
        cancelling = running(other.jobs.cancel(job_id, "changed my mind"))
        await blocked(store)
    assert await cancelling is State.RUNNING
    record = await the(store, job_id)
    assert (record.state, record.reason) == (State.RUNNING, "changed my mind")


async def test_a_claim_passes_over_what_is_being_cancelled(store):
    job_id = await put(store)
    async with store.transaction() as tx:
        met = await tx.run(moves.cancel(job_id, "no"))
        assert met is not None and met.state is State.CANCELLED
        assert await take(store) == []
    assert (await the(store, job_id)).state is State.CANCELLED
    assert await take(store) == []


async def test_cancel_waits_for_a_finish_and_says_what_came_of_it(store, other):
    job_id = await put(store)
    [claim] = await take(store)
    async with store.transaction() as tx:
        await store.claims.finish([Finish(claim, Done())], tx=tx)
        cancelling = running(other.jobs.cancel(job_id, "too late"))
        await blocked(store)
    assert await cancelling is State.SUCCEEDED


async def test_two_finishers_free_slots_of_one_key_one_after_the_other(store, other):
    made = await put_many(store, 4, concurrency="k", concurrency_limit=2)
    await store.holds.promote()
    one, two = await take(store, 10)
    async with store.transaction() as tx:
        await store.claims.finish([Finish(one, Done())], tx=tx)
        finishing = running(other.claims.finish([Finish(two, Done())]))
        await blocked(store)
    assert await finishing == [True]
    assert [(await the(store, job_id)).held for job_id in made[2:]] == [None, None]
    async with store.transaction() as tx:
        assert await tx.fetch("SELECT slot FROM holdfast.job ORDER BY slot") == [(1,), (2,)]


async def test_promote_comes_again_after_the_finish_that_ends_the_turn(store, other):
    _, second = await put(store, ordered="k"), await put(store, ordered="k")
    await store.holds.promote(limit=1)
    [claim] = await take(store)
    async with store.transaction() as tx:
        await store.claims.finish([Finish(claim, Done())], tx=tx)
        assert await other.holds.promote() == 0
    assert await other.holds.promote() == 1
    assert (await the(store, second)).held is None


async def test_a_finish_waits_for_promote_and_then_passes_the_turn_on(store, other):
    first, second = await put(store, ordered="k"), await put(store, ordered="k")
    await store.holds.promote(limit=1)
    [claim] = await take(store)
    assert claim.job_id == first
    async with store.transaction() as tx:
        waiting = [candidates.Candidate(second, Keys("k", None), rank=2)]
        assert (await tx.run(candidates.promote(waiting, window=100))).number == 1
        finishing = running(other.claims.finish([Finish(claim, Done())]))
        await blocked(store)
    assert await finishing == [True]
    assert (await the(store, second)).held is None


async def test_the_turn_goes_to_the_next_even_when_a_finish_rolls_back(store):
    _, second = await put_many(store, 2, ordered="k")
    await store.holds.promote()
    [claim] = await take(store)
    with pytest.raises(Undo):
        async with store.transaction() as tx:
            await store.claims.finish([Finish(claim, Done())], tx=tx)
            raise Undo
    assert (await the(store, second)).held is Held.ORDERING
    assert await end(store, claim)
    assert (await the(store, second)).held is None


async def test_the_slot_that_the_next_in_order_needs_is_guarded_too(store, other):
    """Ordering key `o` passes its turn to a job that needs key `c`, while another finish frees a slot of `c`."""
    holder = await put(store, concurrency="c", concurrency_limit=1)
    await store.holds.promote()
    [holding] = await take(store)
    await put(store, ordered="o")
    following = await put(store, ordered="o", concurrency="c", concurrency_limit=1)
    await store.holds.promote()
    [first] = await take(store)
    assert holding.job_id == holder
    async with store.transaction() as tx:
        await store.claims.finish([Finish(holding, Done())], tx=tx)
        finishing = running(other.claims.finish([Finish(first, Done())]))
        await blocked(store)
    assert await finishing == [True]
    assert (await the(store, following)).held is None


@pytest.mark.parametrize("commits", [True, False])
async def test_of_two_open_enqueues_with_one_unique_key_the_second_waits(store, other, commits):
    mine, theirs = job(unique="k"), job(unique="k")
    second = None
    try:
        async with store.transaction() as tx:
            assert await store.jobs.enqueue([mine], tx=tx) == [Enqueued(mine.id, created=True)]
            second = running(other.jobs.enqueue([theirs]))
            await blocked(store)
            if not commits:
                raise Undo
    except Undo:
        pass
    assert await second == [
        Enqueued(mine.id, created=False) if commits else Enqueued(theirs.id, created=True)
    ]
    assert sum(count.number for count in await store.jobs.count()) == 1


async def test_a_unique_key_is_free_for_who_waited_until_its_holder_ended(store, other):
    holder, wanting = job(unique="k"), job(unique="k")
    await store.jobs.enqueue([holder])
    [claim] = await take(store)
    async with store.transaction() as tx:
        await store.claims.finish([Finish(claim, Done())], tx=tx)
        enqueueing = running(other.jobs.enqueue([wanting]))
        await blocked(store)
    assert await enqueueing == [Enqueued(wanting.id, created=True)]


async def test_ordered_jobs_whose_transactions_commit_out_of_order_run_one_at_a_time(store, other):
    early, late = job(ordered="k"), job(ordered="k")
    async with store.transaction() as tx:
        await store.jobs.enqueue([early], tx=tx)
        await other.jobs.enqueue([late])
        assert await other.holds.promote() == 1
        [claim] = await take(other)
        assert claim.job_id == late.id
    assert await store.holds.promote() == 1
    assert (await the(store, early.id)).held is Held.ORDERING
    assert await take(store) == []
    assert await end(other, claim)
    [claim] = await take(store)
    assert claim.job_id == early.id


async def test_rescue_passes_over_what_is_being_finished(store, other):
    job_id = await put(store)
    [claim] = await take(store)
    await advance(store, 31)
    async with store.transaction() as tx:
        await store.claims.finish([Finish(claim, Done())], tx=tx)
        assert await other.claims.rescue() == []
    assert (await the(store, job_id)).state is State.SUCCEEDED


async def test_a_late_finish_waits_for_the_rescue_and_is_lost(store, other):
    job_id = await put(store)
    [claim] = await take(store)
    await advance(store, 31)
    async with store.transaction() as tx:
        [rescue] = await tx.run(finishes.interrupt([finishes.Interrupted(job_id, Keys(None, None))]))
        assert rescue.state is State.QUEUED
        finishing = running(other.claims.finish([Finish(claim, Done())]))
        await blocked(store)
    assert await finishing == [False]
    assert (await the(store, job_id)).state is State.QUEUED


async def test_rescue_passes_over_what_is_being_renewed(store, other):
    await put(store)
    [claim] = await take(store)
    async with store.transaction() as tx:
        assert await tx.run(claiming.renew([claim], lease=300))
        await advance(other, 31)
        assert await other.claims.rescue() == []
    assert await other.claims.rescue() == []
    assert await end(store, claim)


async def test_renewing_and_finishing_the_same_jobs_at_once_never_deadlocks(store, other):
    for _ in range(10):
        await put_many(store, 50)
        taken = await take(store, 50)
        shuffled = random.sample(taken, len(taken))
        results = await asyncio.gather(
            other.claims.renew(shuffled, lease=30),
            store.claims.finish([Finish(claim, Done()) for claim in taken]),
        )
        assert results[1] == [True] * 50


async def test_finishing_jobs_with_crossed_keys_at_once_leaves_everything_consistent(store, other):
    keys = [{"ordered": f"o{i % 5}", "concurrency": f"c{i % 7}", "concurrency_limit": 2} for i in range(60)]
    await store.jobs.enqueue([job(**key) for key in keys])
    ended = 0
    while ended < 60:
        await asyncio.gather(store.holds.promote(), other.holds.promote())
        taken = await take(store, 60)
        assert taken, "whatever is free should have been passed on"
        outcomes = [Retry() if random.random() < 0.3 else Done() for _ in taken]
        answers = await asyncio.gather(
            *(
                client.claims.finish([Finish(claim, outcome)])
                for client, claim, outcome in zip([store, other] * 30, taken, outcomes, strict=False)
            )
        )
        assert answers == [[True]] * len(taken)
        ended += sum(isinstance(outcome, Done) for outcome in outcomes)
    assert await store.jobs.count() == []


async def test_two_migrators_go_one_after_the_other(empty_postgres_url):
    from holdfast.store.postgres.store import PostgresStore

    stores = [PostgresStore(empty_postgres_url) for _ in range(3)]
    for store in stores:
        await store.open()
    applied = await asyncio.gather(*(store.migrate() for store in stores))
    assert sorted(map(len, applied)) == [0, 0, len(max(applied, key=len))]
    assert await stores[0].pending() == []
    for store in stores:
        await store.close()


async def test_a_finish_that_is_not_committed_yet_keeps_no_other_lease_from_being_renewed(store):
    await put_many(store, 3)
    finishing, *others = await take(store, 3)
    async with store.transaction() as slow:
        await store.claims.finish([Finish(finishing, Done())], tx=slow)
        renewed = await asyncio.wait_for(store.claims.renew([finishing, *others], lease=90), 5)
        assert {renewal.job_id for renewal in renewed} == {
            finishing.job_id,
            *(claim.job_id for claim in others),
        }
        longer = {renewal.job_id for renewal in renewed if renewal.lease_until > finishing.lease_until + 30}
        assert longer == {claim.job_id for claim in others}
    assert await store.claims.renew([finishing], lease=90) == []


async def test_find_merges_what_is_live_and_what_is_over(store):
    ids = sorted([await put(store) for _ in range(6)])  # two of one millisecond are in any order
    for claim in (await take(store, 6))[3:]:
        assert await end(store, claim)
    assert [record.id for record in await store.jobs.find()] == ids[::-1]
    assert [record.id for record in await store.jobs.find(limit=4)] == ids[:1:-1]


async def test_claims_come_in_the_order_of_the_queues_that_are_wanted(store):
    for queue in ("b", "a", "c"):
        for priority in (0, 5):
            await put(store, queue=queue, priority=priority)
    claims = await store.claims.claim({"c": 5, "a": 5, "b": 5}, lease=30, worker="w")
    assert [claim.queue for claim in claims] == ["c", "c", "a", "a", "b", "b"]
    ready = [(await the(store, claim.job_id)).priority for claim in claims]
    assert ready == [5, 0] * 3


async def test_a_report_does_not_wait_for_who_is_finishing(store, other):
    await put(store)
    [claim] = await take(store)
    async with other.transaction() as tx:
        await other.claims.finish([Finish(claim, Done())], tx=tx)
        assert await store.claims.report(claim, progress=0.9)
    assert not await store.claims.report(claim, progress=1.0)


@pytest.mark.parametrize("outcome", [Done(), Dead("x"), Cancel("c")], ids=["done", "dead", "cancel"])
@pytest.mark.parametrize("has_steps", [False, True])
@pytest.mark.parametrize("keys", [{}, {"ordered": "o"}], ids=["plain", "keyed"])
async def test_an_end_sees_the_intent_that_it_waited_for(store, other, keys, has_steps, outcome):
    """Its statement began before the intent was committed, so that its own snapshot has none."""
    await put(store, **keys)
    await store.holds.promote()
    [claim] = await take(store)
    if has_steps:
        assert await store.steps.write(claim, Step(name="upload", number=0))
    intent = Step(name="publish", number=1, kind=Kind.AT_MOST_ONCE, progress=Progress.BEGUN)
    async with other.transaction() as tx:
        assert await tx.run(steps.write([steps.Write(claim, intent)])) == [True]
        ending = running(end(store, claim, outcome))
        await blocked(other)
    assert await ending
    record = await the(store, claim.job_id)
    assert record.state is (State.CANCELLED if isinstance(outcome, Cancel) else State.UNKNOWN)
    assert "effect 'publish'" in record.reason
    assert [each.progress for each in await store.steps.load(claim.job_id, 0)][-1] is Progress.UNKNOWN
