"""Cancel and move with rows of one's own, against the moment at which the job is due: never both, and never neither."""

from __future__ import annotations

import asyncio
import random
import time

import pytest
from waiting import until

from holdfast import Job, Reject, State
from holdfast.errors import UsageError

RACES = 200
SURE = 10  # of them do not race


@pytest.fixture
async def posts(hf):
    """A program that publishes posts: one row for each, in which whoever decides says so."""
    async with hf.transaction() as tx:
        for table in ("posts", "published"):
            await tx.execute(f"DROP TABLE IF EXISTS {table}")  # of an earlier test on this database
        await tx.execute("CREATE TABLE posts (id INTEGER PRIMARY KEY, state TEXT NOT NULL, job TEXT)")
        await tx.execute("CREATE TABLE published (post INTEGER NOT NULL, at REAL)")

    @hf.task(name="publish")
    async def publish(job: Job, post: int) -> None:
        async with job.commit() as tx:
            await tx.execute("INSERT INTO published (post) VALUES ($1)", post)

    async def schedule(post: int, at: float) -> str:
        async with hf.transaction() as tx:
            handle = await publish.options(at=at, tx=tx).enqueue(post)
            await tx.execute("INSERT INTO posts VALUES ($1, 'scheduled', $2)", post, handle.id)
        return handle.id

    hf.publish, hf.schedule = publish, schedule
    return hf


async def race(hf, act):
    """Each post is due within the next second, and `act` comes at about that moment."""
    begins = await hf.store.now() + 0.5
    dues = [begins + random.uniform(0, 1) for _ in range(RACES)]
    ids = [await hf.schedule(post, due) for post, due in enumerate(dues)]

    async def at_its_moment(post: int) -> None:
        if post >= SURE:
            away = dues[post] + random.uniform(-0.02, 0.12) - time.time()
            await asyncio.sleep(max(0.0, away))
        elif post % 2:  # and some are surely late, however busy the machine is; the others surely early
            await until(lambda: is_over(hf, ids[post]), 30)
        await act(post, ids[post])

    async with hf.worker({"default": 20}, poll=0.02):
        await asyncio.gather(*(at_its_moment(post) for post in range(RACES)))
        await until(lambda: nothing_is_left(hf), 30)
    async with hf.transaction() as tx:
        published = [row[0] for row in await tx.fetch("SELECT post FROM published")]
        states = dict(await tx.fetch("SELECT id, state FROM posts"))
    assert len(set(published)) == len(published), "one was published twice"
    return set(published), states


async def is_over(hf, job_id):
    return (await hf.jobs.get(job_id)).state is State.SUCCEEDED


async def nothing_is_left(hf):
    return not await hf.queues.count()


async def test_cancel_and_publish_are_never_both_and_never_neither(posts):
    async def cancel(post: int, job_id: str) -> None:
        async with posts.transaction() as tx:
            met = await posts.jobs.cancel(job_id, "by the artist", running=False, tx=tx)
            state = "cancelled" if met is State.CANCELLED else "too late"
            await tx.execute("UPDATE posts SET state = $1 WHERE id = $2", state, post)

    published, states = await race(posts, cancel)
    cancelled = {post for post, state in states.items() if state == "cancelled"}
    assert published & cancelled == set(), "both"
    assert published | cancelled == set(range(RACES)), "neither"
    assert published, "every cancel was early: no race at all"
    assert cancelled, "every cancel was late: no race at all"


async def test_move_and_publish_are_never_both_and_never_neither(posts):
    """Whoever was moved is published once, and not before its new time."""
    moved_to: dict[int, float] = {}

    async def move(post: int, job_id: str) -> None:
        async with posts.transaction() as tx:
            at = time.time() + 1
            met = await posts.jobs.move(job_id, at=at, tx=tx)
            await tx.execute("UPDATE posts SET state = $1 WHERE id = $2", str(met), post)
        if met is State.QUEUED:
            moved_to[post] = at
            record = await posts.jobs.get(job_id)
            assert record.started_at is None or record.started_at >= at, "it ran although it was moved"

    published, states = await race(posts, move)
    assert published == set(range(RACES)), "neither"
    assert {post for post, state in states.items() if state == "queued"} == set(moved_to)
    assert 0 < len(moved_to) < RACES, "no race at all"


async def test_a_rollback_leaves_the_job_and_the_row(posts):
    job_id = await posts.schedule(1, await posts.store.now() + 60)
    before = await posts.jobs.get(job_id)
    for change in (
        lambda tx: posts.jobs.cancel(job_id, "no", tx=tx),
        lambda tx: posts.jobs.move(job_id, delay=0, priority=5, tx=tx),
    ):
        with pytest.raises(ZeroDivisionError):
            async with posts.transaction() as tx:
                assert await change(tx) in (State.CANCELLED, State.QUEUED)
                raise ZeroDivisionError
        assert await posts.jobs.get(job_id) == before


async def test_what_forgets_tx_is_told_what_to_do(posts):
    job_id = await posts.schedule(1, await posts.store.now() + 60)
    async with posts.transaction() as tx:
        for way in (
            lambda: posts.jobs.cancel(job_id),
            lambda: posts.jobs.move(job_id, delay=0),
            lambda: posts.unknown.resolve(job_id, actor="ada", done=False),
            lambda: posts.dead.replay([job_id], actor="ada"),
            lambda: posts.dead.discard([job_id], actor="ada", reason="no"),
        ):
            with pytest.raises(UsageError, match="Pass tx=tx"):
                await way()
        assert await posts.jobs.move(job_id, delay=0, tx=tx) is State.QUEUED


async def test_a_handle_cancels_in_a_transaction(posts):
    handle = posts.jobs.handle(await posts.schedule(1, await posts.store.now() + 60))
    async with posts.transaction() as tx:
        assert await handle.cancel("gone", running=False, tx=tx) is State.CANCELLED
    assert await handle.status() is State.CANCELLED


async def test_a_dead_job_and_its_row_go_on_together(posts):
    @posts.task(name="broken")
    async def broken(post: int) -> None:
        raise Reject("no")

    handle = await broken.enqueue(1)
    async with posts.worker(poll=0.02):
        await until(lambda: _is(handle, State.DEAD), 10)
    async with posts.transaction() as tx:
        await tx.execute("INSERT INTO posts VALUES (1, 'retrying', NULL)")
        [answer] = await posts.dead.replay([handle.id], actor="artist:7", tx=tx)
        assert answer.outcome == "queued"
        edited = await posts.dead.replay([handle.id], actor="artist:7", tx=tx)
        assert [each.outcome for each in edited] == ["not_dead"]
    assert await handle.status() is State.QUEUED
    with pytest.raises(UsageError, match="rate or tx"):
        async with posts.transaction() as tx:
            await posts.dead.replay([handle.id], actor="ada", rate=1, tx=tx)


async def _is(handle, state):
    return await handle.status() is state
