"""`hf.jobs.story` and `job.story`: one record of all that became of a job."""

import pytest

from holdfast import Backoff, Holdfast, Job, Snooze, Story
from holdfast.guards import Breaker
from holdfast.kernel.ids import new_id
from holdfast.store.states import State
from holdfast.store.steps import Progress
from holdfast.testing import ManualClock, drain
from holdfast.testing.database_clock import database_clock

AT_ONCE = Backoff(attempts=3, first=0, ceiling=0)


@pytest.fixture
async def hf(url):
    """Both stores go by a clock that stands still."""
    with ManualClock() as clock:
        async with Holdfast(url) as opened:
            with database_clock(opened):
                opened.clock = clock
                yield opened


async def test_a_plain_job_is_told_from_its_row(hf):
    @hf.task(name="plain")
    async def plain() -> None: ...

    handle = await plain.enqueue()
    assert (await hf.jobs.story(handle.id)).claims == ()
    await drain(hf)
    story = await hf.jobs.story(handle.id)
    [claim] = story.claims
    assert (story.state, story.planned_at, claim.outcome) == (State.SUCCEEDED, story.enqueued_at, "succeeded")
    assert (claim.worker, claim.ended_at) == ("holdfast.testing", story.finished_at)
    assert (story.holds, story.steps, story.moves, story.decisions, story.forgotten) == ((), (), (), (), 0)
    assert await hf.jobs.story(new_id()) is None


async def test_every_attempt_is_there_with_its_error_and_its_steps(hf):
    @hf.task(name="post", retry=AT_ONCE)
    async def post(job: Job) -> None:
        await job.step("upload", lambda: hf.clock.advance(2))
        hf.clock.advance(3)
        if job.attempt < 3:
            raise ValueError(f"no. {job.attempt}")

    handle = await post.enqueue()
    await drain(hf)
    story = await hf.jobs.story(handle.id)
    assert [(each.attempt, each.outcome) for each in story.claims] == [
        (1, "failed"),
        (2, "failed"),
        (3, "succeeded"),
    ]
    assert ["no. 1" in story.claims[0].error, "no. 2" in story.claims[1].error] == [True, True]
    assert [round(each.ended_at - each.began_at) for each in story.claims] == [5, 3, 3]
    [step] = story.steps
    assert (step.name, step.outcome, step.calls, step.token) == (
        "upload",
        Progress.DONE,
        1,
        story.claims[0].token,
    )
    assert step.begun_at == story.claims[0].began_at


async def test_holds_are_told_with_their_words_and_how_long_they_lasted(hf):
    @hf.task(name="sleepy")
    async def sleepy(job: Job) -> None:
        if len((await job.story()).holds) < 2:
            raise Snooze(60, "the gallery sleeps")

    handle = await sleepy.options(delay=10).enqueue()
    story = await hf.jobs.story(handle.id)
    [planned] = story.holds
    assert (planned.held, planned.since, planned.until) == ("time", story.enqueued_at, None)
    assert story.planned_at == story.enqueued_at + 10
    hf.clock.advance(15)
    await drain(hf)
    planned, asleep = (await hf.jobs.story(handle.id)).holds
    assert planned.until == story.planned_at  # it began five seconds later
    assert (asleep.held, asleep.reason, asleep.until) == ("time", "the gallery sleeps", None)
    record = await hf.jobs.get(handle.id)
    assert (record.reason, record.due_at) == ("the gallery sleeps", story.planned_at)
    hf.clock.advance(100)
    await drain(hf)
    story = await hf.jobs.story(handle.id)
    assert [each.until - each.since for each in story.holds] == [10, 60]
    assert [(each.outcome, each.reason) for each in story.claims] == [
        ("snoozed", "the gallery sleeps"),
        ("succeeded", None),
    ]


async def test_a_guard_that_put_it_off_is_told_with_its_key(hf):
    guard = hf.guard("site", breaker=Breaker(failures=3))

    @hf.task(name="call")
    async def call(job: Job) -> None:
        await job.effect("call", lambda: 1, policy="at_most_once", guard=guard)

    guard.breaker.hold_open()
    handle = await call.enqueue()
    await drain(hf)
    [hold] = (await hf.jobs.story(handle.id)).holds
    assert (hold.held, hold.key, hold.until) == ("guard", "site", None)
    assert "refused by its guard" in hold.reason
    assert (await hf.jobs.get(handle.id)).reason == hold.reason
    hf.clock.advance(7)
    guard.breaker.let_go()
    await drain(hf)
    story = await hf.jobs.story(handle.id)
    [hold] = story.holds
    assert hold.until - hold.since == 7
    assert [each.outcome for each in story.claims] == ["held", "succeeded"]
    assert (await hf.jobs.get(handle.id)).reason is None


async def test_what_holds_it_now_is_told_although_nothing_was_written(hf):
    @hf.task(name="turn")
    async def turn() -> None: ...

    await turn.options(ordered="one", delay=60).enqueue()
    second = await turn.options(ordered="one").enqueue()
    await hf.store.holds.promote()
    [hold] = (await hf.jobs.story(second.id)).holds
    assert (hold.held, hold.key, hold.since, hold.until) == ("ordering", "one", None, None)


async def test_moves_and_decisions_are_told(hf):
    @hf.task(name="move", retry=Backoff(attempts=1))
    async def fail() -> None:
        raise ValueError("no")

    handle = await fail.options(delay=60).enqueue()
    await hf.jobs.move(handle.id, delay=0, priority=5)
    await drain(hf)
    await hf.dead.replay([handle.id], actor="ada")
    story = await hf.jobs.story(handle.id)
    [move] = story.moves
    assert (move.due_at, move.priority, story.planned_at) == (move.at, 5, move.at)
    [decision] = story.decisions
    assert (decision.actor, decision.action) == ("ada", "dead.replay")
    assert [each.outcome for each in story.claims] == ["dead"]
    assert "ValueError: no" in story.claims[0].error


async def test_a_task_stores_its_receipt_with_its_rows(hf):
    @hf.task(name="receipt", retry=AT_ONCE)
    async def receipt(job: Job) -> None:
        if job.attempt == 1:
            raise ValueError("no")
        story = await job.story()
        async with job.commit() as tx:
            await tx.execute("CREATE TABLE IF NOT EXISTS receipt (story TEXT)")
            await tx.execute("INSERT INTO receipt (story) VALUES ($1)", story.as_json())

    handle = await receipt.enqueue()
    await drain(hf)
    async with hf.transaction() as tx:
        [(text,)] = await tx.fetch("SELECT story FROM receipt")
    assert [part in text for part in (handle.id, '"failed"', '"running"')] == [True] * 3


async def test_plain_functions_and_sync_code_have_it_too(hf):
    told = []

    @hf.task(name="plain")
    def plain(job: Job) -> None:
        told.append(job.blocking.story())

    handle = await plain.enqueue()
    await drain(hf)
    [story] = told
    assert isinstance(story, Story)
    assert (story.job_id, story.claims[0].outcome, story.claims[0].ended_at) == (handle.id, "running", None)


async def test_secrets_are_in_no_story(hf):
    from holdfast import Secret

    @hf.task(name="secret", retry=AT_ONCE)
    async def secret(job: Job, password: Secret[str]) -> None:
        if job.attempt == 1:
            raise ValueError(f"{password} is wrong")
        raise Snooze(60, f"{password} is late")

    handle = await secret.enqueue("geheim")
    await drain(hf)
    text = (await hf.jobs.story(handle.id)).as_json()
    assert "geheim" not in text
    assert "is late" in text
