"""What becomes of posts when workers are killed, when all of them are away, and when their clocks are wrong."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import publisher_kit as kit
import pytest
from publisher.desk import scheduling
from publisher_processes import LEASE, SCAN

from tools.waiting import until

POISON = """
import os, signal
from publisher.outside.deviantart import DeviantArt
from publisher.program import hf

_submit = DeviantArt.submit

async def submit(self, token, file, fields):
    if ("title", "Poison") in fields:
        os.kill(os.getpid(), signal.SIGKILL)
    return await _submit(self, token, file, fields)

DeviantArt.submit = submit
"""


async def is_in(state, *post_ids):
    return all([await kit.state_of(each) == state for each in post_ids])


async def job_of(hf, post_id):
    [job] = await hf.jobs.find(unique=f"deviation:{post_id}")
    return job


@pytest.mark.parametrize("endpoint", ["stash/submit", "stash/publish"])
async def test_a_worker_killed_in_the_middle(fleet, any_hf, simulator, ada, endpoint):
    """P45: another goes on within lease + scan, and the seed's waits for up to 15 minutes. Killed in the publishing call, it is looked up."""
    simulator.settings.answers_in = 1.0
    await ada.log_in()
    post_id = await ada.draft()
    await scheduling.publish_now(ada.id, post_id)
    first = await fleet.worker()
    job = await job_of(any_hf, post_id)
    await fleet.called(simulator, endpoint)
    first.signal(signal.SIGKILL)
    killed_at = await any_hf.now()
    await fleet.worker()
    await until(lambda: is_in("published", post_id), 60)
    [lost] = [each for each in (await any_hf.jobs.story(job.id)).claims if each.outcome == "interrupted"]
    assert lost.ended_at - killed_at < LEASE + SCAN
    assert len(simulator.ledger.find("published")) == 1
    async with any_hf.transaction() as tx:
        assert await tx.fetch("SELECT post_count FROM artists") == [(1,)]


async def test_posts_that_fell_due_while_nobody_was_there(fleet, any_hf, simulator, ada):
    """P46: at once when a worker is there again, the oldest first, and each by one job."""
    await ada.log_in()
    now = await any_hf.now()
    posts = [await ada.draft(f"Study {number}") for number in range(6)]
    for number, post_id in enumerate(posts):
        await scheduling.schedule(ada.id, post_id, now - 50 + number)
    began = await any_hf.now()
    await fleet.worker(PUBLISHER_CONCURRENCY="1")
    await until(lambda: is_in("published", *posts), 60)
    published = simulator.ledger.find("published")
    assert [each["title"] for each in published] == [f"Study {number}" for number in range(6)]
    assert published[0]["at"] - began < 35


async def test_a_post_that_kills_its_worker_is_set_aside(fleet, any_hf, simulator, ada):
    """P48: three times while it is alone, and then it has failed, with the reason; others go on."""
    Path(fleet.folder / "poison.py").write_text(POISON)
    await ada.log_in()
    bad = await ada.draft("Poison")
    await scheduling.publish_now(ada.id, bad)
    other = kit.Artist(simulator, "bo-linnet")
    await other.log_in()
    good = [await other.draft(f"Study {number}") for number in range(3)]
    for post_id in good:
        await scheduling.publish_now(other.id, post_id)
    command = [*fleet.holdfast, "worker", "poison:hf", "-q", "deviation-publisher:5", "-p", "2"]
    fleet.start(*command, FOLDERS=str(fleet.folder))
    await until(lambda: is_in("published", *good), 90)
    await until(lambda: is_in("failed", bad), 90)
    async with any_hf.transaction() as tx:
        [(reason,)] = await tx.fetch("SELECT reason FROM posts WHERE id = $1", bad)
    assert reason.startswith("Our publisher stopped in the middle of it, three times.")
    assert "Poison" not in [each["title"] for each in simulator.ledger.find("published")]


@pytest.mark.parametrize("wrong", [3600, -3600])
async def test_a_worker_whose_clock_is_wrong(fleet, any_hf, simulator, ada, wrong):
    """P49: due times and leases are the database's on PostgreSQL; on one machine SQLite has the machine's."""
    if "sqlite" in fleet.url:
        pytest.skip("a file has no clock of its own")
    await ada.log_in()
    soon, later = await ada.draft("Soon"), await ada.draft("Later")
    due = await any_hf.now() + 6
    await scheduling.schedule(ada.id, soon, due)
    await scheduling.schedule(ada.id, later, due + 600)
    await fleet.worker(**fleet.shift(wrong))
    began = time.monotonic()
    await until(lambda: is_in("published", soon), 60)
    assert time.monotonic() - began < 35
    [entry] = simulator.ledger.find("published")
    assert entry["title"] == "Soon"
    assert due <= entry["at"] + 0.1
    async with any_hf.transaction() as tx:
        [(sent_at,)] = await tx.fetch("SELECT sent_at FROM posts WHERE id = $1", soon)
    assert due <= sent_at < due + 35
    assert await kit.state_of(later) == "scheduled"
