"""Strays: claims whose answer was lost come back soon, uncharged, and to nobody else's harm."""

from __future__ import annotations

import asyncio

import pytest
from waiting import heard, until

from holdfast.jobs.ends import Ends
from holdfast.jobs.ends_of_runs import EndsOfRuns
from holdfast.jobs.strays import Strays
from holdfast.kernel.errors import CommitUnknown


@pytest.fixture
def loses_answers(hf, monkeypatch):
    """The next claim is made, and its answer is lost."""
    claim, lost = hf.store.claims.claim, []

    async def claim_and_lose(*args, **kwargs):
        found = await claim(*args, **kwargs)
        if found and not lost:
            lost.extend(found)
            raise CommitUnknown("the wire was cut")
        return found

    monkeypatch.setattr(hf.store.claims, "claim", claim_and_lose)
    return lost


async def test_a_claim_whose_answer_was_lost_comes_back_before_its_lease_ends(hf, loses_answers):
    @hf.task
    async def greet(name: str) -> str:
        return name

    handles = await greet.enqueue_many([{"name": str(number)} for number in range(5)])
    async with hf.worker({"default": 10}, lease=12):
        assert [await handle.result(10) for handle in handles] == ["0", "1", "2", "3", "4"]
    assert len(loses_answers) == 5
    for handle in handles:
        record = await handle.record()
        assert (record.attempt, record.interruptions, record.suspect) == (1, 0, False)


class Holder:
    """What strays look at of a worker."""

    name, asked, answered = "w", 3, 3

    def __init__(self, hf, *known):
        self.ends = EndsOfRuns(hf.store, Ends(hf.store, hf._inside.registry, hf._inside.portal))
        self.runs = {(claim.job_id, claim.token): None for claim in known}


@pytest.fixture
async def claims(hf):
    @hf.task
    async def any_task() -> None: ...

    await any_task.enqueue_many([{}] * 2)
    return await hf.store.claims.claim({"default": 2}, lease=30, worker="w")


async def test_what_is_known_or_is_seen_for_the_first_time_is_left_alone(hf, claims):
    known, stray = claims
    strays = Strays(hf.store, Holder(hf, known))
    await strays.look()
    assert len(await hf.store.claims.held_by("w")) == 2
    with heard("worker.strays_returned") as notes:
        await strays.look()
    assert await hf.store.claims.held_by("w") == [known]
    assert [note["number"] for note in notes] == [1]
    assert (await hf.store.jobs.get(stray.job_id)).attempt == 0


async def test_what_a_question_may_still_bring_is_left_alone(hf, claims):
    holder = Holder(hf)
    holder.asked = 4  # and its answer is late
    strays = Strays(hf.store, holder)
    for _ in range(5):
        await strays.look()
    assert len(await hf.store.claims.held_by("w")) == 2
    holder.asked, holder.answered = 5, 4  # it never came, and the worker asks again
    await strays.look()
    assert await hf.store.claims.held_by("w") == []


async def test_a_long_job_is_no_stray(hf):
    begun = asyncio.Event()
    over = asyncio.Event()

    @hf.task
    async def long() -> str:
        begun.set()
        await over.wait()
        return "once"

    handle = await long.enqueue()
    async with hf.worker({"default": 1}, lease=1) as service:
        await begun.wait()
        [run] = service.worker.runs.values()
        before = run.until
        await until(lambda: run.until > before + 0.5)  # some looks have been made
        over.set()
        assert await handle.result(10) == "once"
    assert (await handle.record()).attempt == 1
