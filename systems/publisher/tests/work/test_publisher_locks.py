"""The six tests of the lock that the publisher's decision asks for: its lock is the claim of the post's job."""

from __future__ import annotations

import signal
import time

import publisher_kit as kit
from publisher.core import PUBLISHING
from publisher.desk import scheduling
from publisher_processes import LEASE, SCAN, calls

from holdfast import State
from tools.waiting import until

SLOTS = {PUBLISHING: 5}


async def begun(hf, simulator, artist, *, seconds=0.0):
    """A post that is due now; each call of the other side takes so long."""
    simulator.settings.answers_in = seconds
    await artist.log_in()
    post_id = await artist.draft()
    await scheduling.publish_now(artist.id, post_id)
    return post_id


async def job_of(hf, post_id):
    [job] = await hf.jobs.find(unique=f"deviation:{post_id}")
    return await hf.jobs.get(job.id)


async def is_published(post_id):
    return await kit.state_of(post_id) == "published"


async def ended(hf, post_id, job_id):
    await until(lambda: is_published(post_id), 30)
    return await until(lambda: over(hf, job_id), 30)


async def over(hf, job_id):
    job = await hf.jobs.get(job_id)
    return job if job.state is State.SUCCEEDED else None


async def running(hf, job_id):
    job = await hf.jobs.get(job_id)
    return job if job.state is State.RUNNING else None


async def test_lock_one_worker_acquires_it(any_hf, simulator, ada):
    """Holder, since when and its number can be seen."""
    post_id = await begun(any_hf, simulator, ada, seconds=0.5)
    job_id = (await job_of(any_hf, post_id)).id
    async with any_hf.worker(SLOTS) as worker:
        held = await until(lambda: running(any_hf, job_id), 30)
        assert held.worker == worker.name
        assert held.token > 0
        assert held.started_at <= await any_hf.now() < held.lease_until
        await ended(any_hf, post_id, job_id)


async def test_lock_a_second_worker_skips_it(any_hf, simulator, ada):
    """It uses no attempt, and publishes another one meanwhile."""
    post_id = await begun(any_hf, simulator, ada, seconds=0.5)
    job_id = (await job_of(any_hf, post_id)).id
    async with any_hf.worker(SLOTS):
        held = await until(lambda: running(any_hf, job_id), 30)
        async with any_hf.worker(SLOTS):
            other = kit.Artist(simulator, "bo-linnet")
            await other.log_in()
            second = await other.draft("Low sun")
            await scheduling.publish_now(other.id, second)
            await until(lambda: is_published(second), 30)
            done = await ended(any_hf, post_id, job_id)
    assert (done.attempt, done.token) == (1, held.token)
    assert calls(simulator, "stash/publish") == 2


async def test_lock_is_free_after_success(any_hf, simulator, ada):
    post_id = await begun(any_hf, simulator, ada)
    job_id = (await job_of(any_hf, post_id)).id
    async with any_hf.worker(SLOTS):
        done = await ended(any_hf, post_id, job_id)
    assert (done.lease_until, done.finished_at is not None) == (None, True)
    assert [each.number for each in await any_hf.queues.count() if each.state is State.RUNNING] == []


async def test_lock_is_free_after_failure(any_hf, simulator, ada):
    simulator.faults.put("stash/submit", "server-error", times=1)
    post_id = await begun(any_hf, simulator, ada)
    job_id = (await job_of(any_hf, post_id)).id

    async def failed():
        job = await any_hf.jobs.get(job_id)
        return job if job.errors and job.state is State.QUEUED else None

    async with any_hf.worker(SLOTS):
        job = await until(failed, 30)
        assert (job.worker, job.lease_until) == (None, None)
        await any_hf.jobs.move(job_id, at=await any_hf.now())
        await ended(any_hf, post_id, job_id)
    assert calls(simulator, "stash/submit") == 2


async def test_lock_that_is_stale_is_released(fleet, any_hf, simulator, ada):
    """Its holder stands still past the lease: another takes it, and what the first does later is refused."""
    post_id = await begun(any_hf, simulator, ada, seconds=2.0)
    job_id = (await job_of(any_hf, post_id)).id
    first = await fleet.worker()
    await fleet.called(simulator, "stash/submit")
    first.signal(signal.SIGSTOP)
    frozen_at = time.monotonic()
    held = await any_hf.jobs.get(job_id)
    await fleet.worker()

    async def taken():
        job = await any_hf.jobs.get(job_id)
        return (
            job if job.token is not None and job.token > held.token and job.state is State.RUNNING else None
        )

    second = await until(taken, LEASE + SCAN)
    assert time.monotonic() - frozen_at < LEASE + SCAN
    first.signal(signal.SIGCONT)
    done = await ended(any_hf, post_id, job_id)
    assert done.token >= second.token
    assert len(simulator.ledger.find("published")) == 1
    [claim] = [each for each in (await any_hf.jobs.story(job_id)).claims if each.token == held.token]
    assert claim.outcome == "interrupted"


async def test_lock_has_a_version_that_grows(any_hf, simulator, ada):
    """With each claim; so whoever has an older one is refused."""
    simulator.faults.put("stash/submit", "server-error", times=2)  # a third would open the breaker
    post_id = await begun(any_hf, simulator, ada)
    job_id = (await job_of(any_hf, post_id)).id

    async def hurried():
        await any_hf.jobs.move(job_id, at=await any_hf.now())
        return await is_published(post_id)

    async with any_hf.worker(SLOTS):
        await until(hurried, 30)
        await ended(any_hf, post_id, job_id)
    tokens = [each.token for each in (await any_hf.jobs.story(job_id)).claims if each.token is not None]
    assert len(tokens) == 3
    assert tokens == sorted(set(tokens))
