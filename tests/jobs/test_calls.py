"""When the call of a step began that counted, and how many were made."""

from __future__ import annotations

import pytest

from holdfast import Backoff, Holdfast, Job, NotFound
from holdfast.errors import Refused
from holdfast.kernel.crashpoints import armed
from holdfast.store.states import State
from holdfast.testing import ManualClock, drain
from holdfast.testing.database_clock import database_clock

AGAIN = Backoff(attempts=5, first=0, ceiling=0)


class Elsewhere(Exception):
    """The other side says that it did nothing."""


@pytest.fixture
async def hf(url):
    """Both stores go by a clock that stands still."""
    with ManualClock() as clock:
        async with Holdfast(url) as opened:
            with database_clock(opened):
                opened.clock = clock
                yield opened


async def drain_all(hf, times=8):
    """Every second once more, for what is put off."""
    for _ in range(times):
        await drain(hf)
        hf.clock.advance(2)


async def calls(hf, job_id):
    return {each.name: each.calls for each in await hf.store.steps.load(job_id, 0)}


async def run(hf, function, **options):
    options = {"policy": "at_most_once", **options}

    @hf.task(name="publish", retry=AGAIN)
    async def publish(job: Job) -> int:
        return await job.effect("publish", function, **options)

    handle = await publish.enqueue()
    await drain_all(hf)
    [step] = await hf.store.steps.load(handle.id, 0)
    return step, await handle.record()


def answering(*answers):
    """Each call takes the next answer: a value, or an error that it raises."""
    left = list(answers)

    async def call():
        answer = left.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return call


async def test_one_call(hf):
    step, _ = await run(hf, answering(7))
    assert step.calls == 1
    assert step.first_at == step.begun_at <= step.at


async def test_a_refusal_before_the_call_does_not_count(hf):
    function = answering(Refused("not now", retry_after=0), Refused("not now", retry_after=0), 7)
    step, record = await run(hf, function, not_done=(Refused,))
    assert (record.state, step.calls) == (State.SUCCEEDED, 1)
    assert step.begun_at == step.at == step.first_at + 4


async def test_a_call_that_had_no_effect_counts(hf):
    step, _ = await run(
        hf, answering(Elsewhere(), Refused("not now"), Elsewhere(), 7), not_done=(Elsewhere, Refused)
    )
    assert step.calls == 3


async def test_a_refusal_after_a_call_leaves_the_time_of_that(hf):
    """It fails for good after the refusal: what is told is the one call that was made."""
    began = []

    async def call():
        began.append(await hf.store.now())
        hf.clock.advance(3)
        raise Elsewhere if len(began) == 1 else Refused("not now")

    @hf.task(name="publish", retry=Backoff(attempts=1))
    async def publish(job: Job) -> None:
        for _ in range(3):
            try:
                await job.effect("publish", call, policy="at_most_once", not_done=(Elsewhere, Refused))
            except (Elsewhere, Refused):
                hf.clock.advance(10)

    handle = await publish.enqueue()
    await drain(hf)
    [step] = await hf.store.steps.load(handle.id, 0)
    assert len(began) == 3
    assert step.calls == 1
    assert (step.begun_at, step.at) == (began[0], began[2] + 3)


@pytest.mark.parametrize("policy", ["at_least_once", "keyed"])
async def test_a_refusal_that_is_not_named_does_not_count_where_it_does_no_harm(hf, policy):
    step, _ = await run(hf, answering(Refused("not now", retry_after=0), 7), policy=policy)
    assert step.calls == 1


async def test_a_refusal_in_doubt_leaves_the_doubtful_call(hf):
    """Of the first call nobody knows; the second was refused: one call may have been made, and it stays open."""
    function = answering(RuntimeError("lost"), Refused("not now", retry_after=0), 7)
    step, _ = await run(hf, function, policy="at_least_once", not_done=(Refused,))
    assert step.calls == 2


async def test_a_worker_that_dies_before_its_call_may_have_made_it(hf):
    died = []

    def die(_):
        if not died:
            died.append(1)
            raise RuntimeError("the worker died")

    async def nothing():
        return NotFound

    with armed("effect.begun", die):
        step, record = await run(hf, answering(7), reconcile=nothing, settle=0)
    assert (record.state, step.calls) == (State.SUCCEEDED, 2)


async def test_retries_of_an_effect_count(hf):
    function = answering(Elsewhere(), Elsewhere(), 7)
    step, _ = await run(hf, function, not_done=(Elsewhere,), retry=AGAIN)
    assert step.calls == 3


async def test_a_plain_step_says_when_it_began_and_how_often_it_was_called(hf):
    tries = []

    async def upload():
        tries.append(await hf.store.now())
        hf.clock.advance(20)
        if len(tries) < 3:
            raise Elsewhere
        return 7

    @hf.task(name="upload")
    async def task(job: Job) -> int:
        return await job.step("upload", upload, retry=AGAIN)

    handle = await task.enqueue()
    await drain(hf)
    [step] = await hf.store.steps.load(handle.id, 0)
    assert step.calls == 3
    assert (step.begun_at, step.at) == (tries[2], tries[2] + 20)


async def test_a_step_in_a_thread_is_counted_too(hf):
    @hf.task(name="upload")
    def task(job: Job) -> int:
        return job.blocking.step("upload", lambda: 7) + job.blocking.effect(
            "send", lambda: 8, policy="at_most_once"
        )

    handle = await task.enqueue()
    await drain(hf)
    assert await calls(hf, handle.id) == {"upload": 1, "send": 1}


async def test_steps_of_a_saga_are_counted_and_so_are_their_undos(hf):
    async def fine(*_):
        return 1

    async def broken():
        raise Elsewhere

    @hf.saga("trip")
    async def trip(saga, request):
        await saga.step("flight", fine, undo=fine)
        await saga.step("look", fine)
        await saga.step("hotel", broken, retry=Backoff(attempts=2, first=0, ceiling=0))

    await trip.start(None, id="trip:1")
    await drain_all(hf)
    [job] = await hf.store.jobs.find()
    assert await calls(hf, job.id) == {"flight": 1, "look": 1, "hotel": 2, "undo/flight": 1}
