"""Claims while dead rows cannot be cleaned away: they begin at a mark, and what the mark hides is found soon after."""

from __future__ import annotations

import asyncio
import time

import pytest
from kit import end, job, put_many

from holdfast.kernel.outcomes import Done, Retry
from holdfast.store.postgres import low_water
from holdfast.store.postgres.low_water import MANY, LowWater, from_the_top
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.records import Finish


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the test moves."""
    now = [100.0]
    monkeypatch.setattr(low_water, "monotonic", lambda: now[0])
    return now


def row(queue, priority, rank):
    return [None, None, None, None, queue, *[None] * 17, priority, rank]


def claim(water, clock, seconds):
    with water.timed({"mail": 5}):
        marks = water.marks({"mail": 5, "bulk": 0})
        clock[0] += seconds
    return marks


def test_without_dead_rows_every_claim_begins_at_the_top(clock):
    water = LowWater()
    water.learn([row("mail", 0, 7)], from_the_top({"mail": 1}))
    water.tell(MANY - 1)
    for _ in range(3):
        marks = claim(water, clock, 1.0)
        assert (marks.used, marks.queues, marks.numbers) == (False, ["mail"], [5])


def test_with_many_dead_rows_one_claim_in_a_while_begins_at_the_top(clock):
    water = LowWater()
    water.tell(MANY)
    assert not claim(water, clock, 0.5).used
    water.learn([row("mail", 5, 90), row("mail", 0, 33), row("mail", 0, 31)], from_the_top({"mail": 3}))
    marks = claim(water, clock, 1.0)
    assert (marks.used, marks.queues, marks.priorities, marks.lows) == (True, ["mail"], [0], [31])
    clock[0] += 4.0  # in all ten times as long as the claim from the top took
    assert not claim(water, clock, 0.5).used


def test_a_mark_hides_nothing_that_the_last_look_from_the_top_did_not_see(clock):
    water = LowWater()
    water.tell(MANY)
    water.learn([row("mail", 5, 90)], from_the_top({"mail": 1, "bulk": 2}))
    assert water.hidden({"mail": 3, "bulk": 2, "other": 1}, []) == {"mail": 3}
    water.learn([row("mail", 4, 95)], from_the_top({"mail": 3}))
    assert water.hidden({"mail": 3}, []) == {}, "there was no more than one"


def test_a_queue_rests_by_itself(clock):
    """Who claims from another queue in turn must not be kept waiting by the first."""
    water = LowWater()
    water.tell(MANY)
    claim(water, clock, 0.5)
    assert claim(water, clock, 0.1).used
    with water.timed({"mail": 0, "bulk": 5}):
        assert not water.marks({"bulk": 5}).used
        clock[0] += 60.0
    assert not water.marks({"mail": 5}).used
    clock[0] += 5.0  # the longest rest
    assert not water.marks({"bulk": 5}).used


def test_a_claim_that_failed_is_a_reason_to_rest_too(clock):
    water = LowWater()
    water.tell(MANY)
    with pytest.raises(TimeoutError), water.timed({"mail": 5}):
        clock[0] += 1.0
        raise TimeoutError
    assert water.marks({"mail": 5}).used


def test_dead_rows_are_counted_every_few_seconds(clock):
    water = LowWater()
    assert water.wants_to_know()
    assert not water.wants_to_know()
    clock[0] += 2.0
    assert water.wants_to_know()


async def test_the_server_knows_how_many_are_dead(postgres_url):
    store = PostgresStore(f"{postgres_url}?pool_size=1")  # an idle session keeps its statistics for 10 s
    await store.open()
    await put_many(store, 300)
    async with store.transaction() as tx:
        await tx.execute("DELETE FROM holdfast.job")
    for _ in range(100):  # statistics arrive when the session is idle
        dead = await store.database.read(low_water.count_dead)
        if dead >= 300:
            break
        await asyncio.sleep(0.05)
    assert dead >= 300
    await store.close()


async def test_marks_lose_no_job(store, other, monkeypatch):
    """Priorities, retries and releases, two processes, and every claim as if there were many dead rows."""
    monkeypatch.setattr(low_water, "MANY", 0)
    await store.jobs.enqueue([job(priority=number % 3, queue=f"q{number % 2}") for number in range(300)])
    done: list[str] = []
    until = time.monotonic() + 30
    while len(done) < 300 and time.monotonic() < until:
        for client in (store, other):
            claims = await client.claims.claim({"q0": 7, "q1": 5}, lease=30, worker="w")
            released = claims[1::4]
            await client.claims.release(released)
            for place, held in enumerate(claims):
                if held in released:
                    continue
                again = held.attempt == 1 and place % 4 == 2
                assert await end(client, held, Retry() if again else None)
                done += [] if again else [held.job_id]
    assert sorted(done) == sorted(set(done))
    assert len(done) == 300


@pytest.mark.parametrize("together", [False, True], ids=["claim", "finish_and_claim"])
async def test_many_priorities_are_claimed_without_waiting_for_the_next_look_from_the_top(
    store, monkeypatch, together
):
    monkeypatch.setattr(low_water, "MANY", 0)
    monkeypatch.setattr(low_water, "_SHARE", 1e6)  # it rests for ever
    monkeypatch.setattr(low_water, "_LONGEST", 1e6)
    await store.jobs.enqueue([job(priority=number % 20) for number in range(100)])
    claims, sizes = [], []
    while len(sizes) < 15:
        if together:
            ended = [Finish(claim, Done()) for claim in claims]
            _, claims = await store.claims.finish_and_claim(ended, {"default": 7}, lease=30, worker="w")
        else:
            claims = await store.claims.claim({"default": 7}, lease=30, worker="w")
        sizes.append(len(claims))
    assert sizes == [7] * 14 + [2]


async def test_looking_for_dead_rows_never_waits_for_a_connection(postgres_url):
    store = PostgresStore(f"{postgres_url}?pool_size=2&pool_wait=0.5")
    await store.open()
    await put_many(store, 2)
    [first, _] = await store.claims.claim({"default": 2}, lease=30, worker="w")
    store.claims._water._looked = float("-inf")  # it is time to look again
    async with store.transaction():  # the other connection is for those who must not wait
        accepted, _ = await store.claims.finish_and_claim(
            [Finish(first, Done())], {"default": 1}, lease=30, worker="w"
        )
    assert accepted == [True]
    await store.close()
