"""Handlers of ends: they write in the transaction in which a job becomes unknown or cancelled, whoever does that."""

from __future__ import annotations

import asyncio

import pytest
from waiting import heard, until

from holdfast import Backoff, Cancel, Job, Snooze, State
from holdfast.errors import UsageError
from holdfast.jobs.deaths import Deaths
from holdfast.kernel.outcomes import Dead
from holdfast.store.records import Finish

ONCE = Backoff(attempts=1)


@pytest.fixture
async def posts(hf):
    """A task whose ends are written down by its handlers."""
    async with hf.transaction() as tx:
        await tx.execute("DROP TABLE IF EXISTS ends")
        await tx.execute("CREATE TABLE ends (job TEXT NOT NULL, state TEXT NOT NULL, why TEXT, post TEXT)")

    @hf.task(name="publish", retry=ONCE)
    async def publish(job: Job, post: int, how: str = "well") -> None:
        if how == "unknown":
            await job.effect("publish", fail, policy="at_most_once")
        if how == "cancel":
            raise Cancel("gone")
        if how == "snooze":
            raise Snooze(0.2)
        if how == "hang":
            await asyncio.sleep(60)

    async def write(job, tx):
        sql = "INSERT INTO ends (job, state, why, post) VALUES ($1, $2, $3, $4)"
        state = (await hf.store.jobs.get(job.id, tx=tx)).state
        await tx.execute(sql, job.id, state, job.reason, str(job.arguments["post"]))

    for declare in (hf.on_unknown, hf.on_cancelled):
        declare("publish")(write)
    hf.publish, hf.write = publish, write
    return hf


async def fail():
    raise ConnectionError("the line is dead")


async def ends_of(hf):
    async with hf.transaction() as tx:
        return await tx.fetch("SELECT job, state, why, post FROM ends ORDER BY job")


async def ended(hf, handle, state):
    async def there():
        return await handle.status() is state

    await until(there)
    [(job, told, why, post)] = await ends_of(hf)
    assert (job, told, post) == (handle.id, state, "7")
    return why


# --- by a run ---


@pytest.mark.parametrize(
    ("how", "state", "why"),
    [("unknown", State.UNKNOWN, "publish"), ("cancel", State.CANCELLED, "gone")],
)
async def test_a_run_that_ends_so_is_told(posts, how, state, why):
    async with posts.worker():
        handle = await posts.publish.enqueue(7, how)
        assert why in await ended(posts, handle, state)


async def test_a_running_job_that_is_cancelled_is_told_by_its_worker(posts):
    async with posts.worker():
        handle = await posts.publish.enqueue(7, "hang")
        await until(lambda: is_in(handle, State.RUNNING))
        assert await handle.cancel("enough") is State.RUNNING
        assert await ended(posts, handle, State.CANCELLED) == "enough"


async def test_one_that_was_asked_to_stop_and_is_put_back_is_told(posts):
    """The store cancels it in place of putting it back."""
    handle = await posts.publish.enqueue(7)
    [claim] = await posts.store.claims.claim({"default": 1}, lease=30, worker="w1")
    assert await handle.cancel("enough") is State.RUNNING
    async with posts.worker() as service:
        [ok] = await service.worker.ends.put_back(
            [claim], lambda some, tx: posts.store.claims.release(some, tx=tx)
        )
    assert ok
    assert await ended(posts, handle, State.CANCELLED) == "enough"


async def test_one_that_snoozes_when_it_was_asked_to_stop_is_told(posts):
    async with posts.worker():
        handle = await posts.publish.enqueue(7, "snooze")
        await until(lambda: is_in(handle, State.RUNNING, State.QUEUED))
        await handle.cancel("enough")
        assert await ended(posts, handle, State.CANCELLED) == "enough"


async def test_a_handler_that_fails_is_noted_and_the_job_has_ended(posts):
    @posts.on_cancelled("publish")
    async def broken(job, tx):
        raise ValueError("no such artist")

    with heard("on_cancelled.failed") as notes:
        async with posts.worker():
            handle = await posts.publish.enqueue(7, "cancel")
            await until(lambda: is_in(handle, State.CANCELLED))
    assert await ends_of(posts) == []
    assert "no such artist" in notes[0]["error"]


async def test_a_handler_that_hangs_does_not_keep_the_job(posts, monkeypatch):
    monkeypatch.setattr("holdfast.jobs.ends.HANDLER_LIMIT", 0.1)
    monkeypatch.setattr("holdfast.jobs.ends.Ends.tell.__kwdefaults__", {"limit": 0.1, "of": tuple(State)})

    @posts.on_cancelled("publish")
    async def hangs(job, tx):
        await asyncio.sleep(60)

    with heard("on_cancelled.failed") as notes:
        async with posts.worker():
            handle = await posts.publish.enqueue(7, "cancel")
            await until(lambda: is_in(handle, State.CANCELLED))
    assert "TimeoutError" in notes[0]["error"]


# --- by a person ---


@pytest.mark.parametrize("joins", [True, False])
async def test_a_person_who_cancels_a_queued_one_tells_it(posts, joins):
    handle = await posts.publish.options(delay=60).enqueue(7)
    if joins:
        async with posts.transaction() as tx:
            assert await posts.jobs.cancel(handle.id, "gone", tx=tx) is State.CANCELLED
            assert await tx.fetch("SELECT why FROM ends") == [("gone",)]
    else:
        assert await posts.jobs.cancel(handle.id, "gone") is State.CANCELLED
    assert await ended(posts, handle, State.CANCELLED) == "gone"
    assert await posts.jobs.cancel(handle.id, "gone") is State.CANCELLED
    assert len(await ends_of(posts)) == 1, "it has ended once"


async def test_a_transaction_that_is_rolled_back_has_told_nobody(posts):
    handle = await posts.publish.options(delay=60).enqueue(7)
    with pytest.raises(ZeroDivisionError):
        async with posts.transaction() as tx:
            await handle.cancel("gone", tx=tx)
            raise ZeroDivisionError
    assert await handle.status() is State.QUEUED
    assert await ends_of(posts) == []


async def test_a_handler_that_fails_leaves_nothing_of_a_persons_cancel(posts):
    @posts.on_cancelled("publish")
    async def broken(job, tx):
        raise ValueError("no such artist")

    handle = await posts.publish.options(delay=60).enqueue(7)
    with pytest.raises(ValueError, match="no such artist"):
        await posts.jobs.cancel(handle.id, "gone")
    async with posts.transaction() as tx:
        with pytest.raises(ValueError, match="no such artist"):
            await posts.jobs.cancel(handle.id, "gone", tx=tx)
        await tx.execute("INSERT INTO ends (job, state) VALUES ('mine', 'kept')")
    assert await handle.status() is State.QUEUED
    assert [row[0] for row in await ends_of(posts)] == ["mine"]


async def test_without_tx_inside_a_transaction_it_is_refused(posts):
    handle = await posts.publish.options(delay=60).enqueue(7)
    async with posts.transaction():
        with pytest.raises(UsageError, match="tx=tx"):
            await posts.jobs.cancel(handle.id, "gone")
    assert await handle.status() is State.QUEUED


async def test_a_dead_letter_that_is_discarded_is_told(posts):
    handle = await posts.publish.options(delay=60).enqueue(7)
    async with posts.transaction() as tx:
        await posts.jobs.move(handle.id, at=0, tx=tx)
    [claim] = await posts.store.claims.claim({"default": 1}, lease=30, worker="w1")
    await posts.store.claims.finish([Finish(claim, Dead("no"))])
    assert await posts.dead.discard([handle.id], actor="ada", reason="no use") == [True]
    assert await ended(posts, handle, State.CANCELLED) == "no use"
    assert await posts.dead.discard([handle.id], actor="ada", reason="no use") == [False]


async def test_an_unknown_job_that_is_cancelled_is_told_twice_of_two_ends(posts):
    async with posts.worker():
        handle = await posts.publish.enqueue(7, "unknown")
        await until(lambda: is_in(handle, State.UNKNOWN))
    assert await handle.cancel("never mind") is State.CANCELLED
    assert [row[1] for row in await ends_of(posts)] == ["unknown", "cancelled"]


async def test_sync_code_cancels_and_a_plain_handler_writes(hf):
    async with hf.transaction() as tx:
        await tx.execute("DROP TABLE IF EXISTS ends")
        await tx.execute("CREATE TABLE ends (job TEXT NOT NULL)")

    @hf.task
    def work(n: int) -> None: ...

    @hf.on_cancelled(work)
    def write(job, tx):
        tx.execute("INSERT INTO ends (job) VALUES ($1)", job.id)

    one, two = [await work.options(delay=60).enqueue(n) for n in range(2)]

    def in_a_thread():
        assert hf.blocking.jobs.cancel(one.id, "gone") is State.CANCELLED
        with hf.blocking.transaction() as tx:
            assert two.cancel_sync("gone", tx=tx) is State.CANCELLED

    await asyncio.to_thread(in_a_thread)
    async with hf.transaction() as tx:
        assert {row[0] for row in await tx.fetch("SELECT job FROM ends")} == {one.id, two.id}


@pytest.mark.parametrize("fails", [False, True])
async def test_a_session_carries_the_end_and_what_its_handler_writes(posts, fails):
    if fails:

        @posts.on_cancelled("publish")
        async def broken(job, tx):
            raise ValueError("no such artist")

    handle = await posts.publish.options(delay=60).enqueue(7)
    async with posts.session() as session:
        if fails:
            with pytest.raises(ValueError, match="no such artist"):
                await posts.jobs.cancel(handle.id, "gone", tx=session)
        else:
            assert await posts.jobs.cancel(handle.id, "gone", tx=session) is State.CANCELLED
        await session.commit()
    assert await handle.status() is (State.QUEUED if fails else State.CANCELLED)
    assert [row[1] for row in await ends_of(posts)] == ([] if fails else ["cancelled"])


# --- by upkeep ---


async def test_one_that_expires_is_told(posts):
    handle = await posts.publish.options(delay=60, expires=0.01).enqueue(7)
    await asyncio.sleep(0.05)
    deaths = Deaths(posts.store, posts._inside.registry, posts._inside.portal)
    await deaths.expire()
    assert await ended(posts, handle, State.CANCELLED) == "expired"


async def test_a_handler_that_fails_does_not_keep_others_from_expiring(posts):
    @posts.on_cancelled("publish")
    async def broken(job, tx):
        if job.arguments["post"] == 8:
            raise ValueError("no such artist")

    handles = [await posts.publish.options(delay=60, expires=0.01).enqueue(post) for post in (7, 8, 9)]
    await asyncio.sleep(0.05)
    with heard("on_cancelled.failed") as notes:
        await Deaths(posts.store, posts._inside.registry, posts._inside.portal).expire()
    assert [await each.status() for each in handles] == [State.CANCELLED] * 3
    assert {row[3] for row in await ends_of(posts)} == {"7", "9"}
    assert [each["job"] for each in notes] == [handles[1].id]


async def test_one_that_is_rescued_after_it_was_asked_to_stop_is_told(posts):
    handle = await posts.publish.enqueue(7)
    await posts.store.claims.claim({"default": 1}, lease=30, worker="w1")
    await handle.cancel("enough")
    await Deaths(posts.store, posts._inside.registry, posts._inside.portal).rescue_worker("w1")
    assert await ended(posts, handle, State.CANCELLED) == "enough"


async def is_in(handle, *states):
    return await handle.status() in states
