"""Effects of which nobody knows whether they were done: no second one by a guess, a clock, a deploy or a wrong word."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from holdfast import Backoff, CannotTell, Found, Job, NotFound
from holdfast.errors import JobUnknown
from holdfast.kernel.crashpoints import armed
from holdfast.store.states import State
from holdfast.store.steps import Progress
from holdfast.testing import drain

AGAIN = Backoff(attempts=4, first=0, ceiling=0)


@dataclass
class Post:
    id: int


@pytest.mark.parametrize("now", ["keyed", "at_least_once"])
async def test_a_deploy_does_not_make_a_bare_effect_repeatable(hf, now):
    calls = []

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        policy = "at_most_once" if job.attempt == 1 else now
        await job.effect("publish", lambda: calls.append(1), policy=policy)

    def die(_):
        raise RuntimeError

    handle = await publish.enqueue()
    with armed("effect.called", die):
        await drain(hf)
    assert await handle.status() is State.UNKNOWN
    assert calls == [1]


@pytest.mark.parametrize("now", ["keyed", "at_least_once"])
async def test_a_deploy_does_not_make_it_repeatable_after_a_look_that_found_nothing(hf, now):
    calls, answers = [], [OSError("the lookup is down"), NotFound, CannotTell]

    async def lost() -> None:
        calls.append(1)
        raise TimeoutError("no answer")

    async def find():
        if isinstance(answer := answers.pop(0), Exception):
            raise answer
        return answer

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        policy = "at_most_once" if job.attempt == 1 else now
        await job.effect("publish", lost, policy=policy, reconcile=find, settle=0.1)

    handle = await publish.enqueue()
    async with hf.worker():
        async with asyncio.timeout(10):
            while answers or await handle.status() in (State.QUEUED, State.RUNNING):
                await asyncio.sleep(0.02)
    assert await handle.status() is State.UNKNOWN
    assert calls == [1]
    await handle.cancel()
    assert "nobody knows whether effect 'publish' was done" in (await handle.record()).reason


async def test_a_refused_connection_says_nothing_by_itself(hf):
    posts = []

    async def publish_and_tell() -> None:
        posts.append(1)
        raise ConnectionRefusedError("the log server is down")

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        await job.effect("publish", publish_and_tell, policy="at_most_once")

    handle = await publish.enqueue()
    await drain(hf)
    assert await handle.status() is State.UNKNOWN
    assert posts == [1]


@pytest.mark.parametrize("not_done", [TimeoutError, OSError])
async def test_its_own_timeout_says_nothing_whatever_the_other_sides_do(hf, not_done):
    posts = []

    async def slow() -> None:
        posts.append(1)
        await asyncio.sleep(3600)

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        await job.effect(
            "publish", slow, policy="at_most_once", timeout=0.05, not_done=(not_done,), retry=AGAIN
        )

    handle = await publish.enqueue()
    await drain(hf)
    assert await handle.status() is State.UNKNOWN
    assert posts == [1]


async def test_settling_begins_when_it_was_first_looked_for(hf):
    """However long its call took."""
    posts, listed = [], []

    async def slow() -> None:
        await asyncio.sleep(0.5)
        posts.append(1)
        raise TimeoutError("no answer")

    async def find():
        return Found(None) if listed else NotFound

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        await job.effect("publish", slow, policy="at_most_once", reconcile=find, settle=0.4)

    handle = await publish.enqueue()
    await drain(hf)
    [step] = await hf.store.steps.load(handle.id, 0)
    assert (await handle.status(), step.progress) == (State.QUEUED, Progress.SOUGHT)
    listed.append(1)
    async with hf.worker():
        await handle.result(10)
    assert posts == [1]


async def test_settling_is_not_begun_anew_by_every_look(hf):
    calls = []

    async def lost() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise TimeoutError("no answer")
        return "there"

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> str:
        return await job.effect(
            "publish", lost, policy="at_most_once", reconcile=lambda: NotFound, settle=0.3
        )

    handle = await publish.enqueue()
    async with hf.worker():
        assert await handle.result(10) == "there"
    assert calls == [1, 1]


async def test_a_key_is_not_used_after_a_wait_in_which_it_was_forgotten(hf, monkeypatch):
    calls = []
    monkeypatch.setattr(Backoff, "delay", lambda *_: 0.5)

    async def charge() -> None:
        calls.append(1)
        raise TimeoutError("no answer")

    @hf.task(retry=AGAIN)
    async def pay(job: Job) -> None:
        await job.effect("charge", charge, policy="keyed", key_ttl=0.3, retry=AGAIN)

    handle = await pay.enqueue()
    await drain(hf)
    assert await handle.status() is State.UNKNOWN
    assert calls == [1]


async def test_a_key_is_not_younger_when_the_task_asks_again(hf):
    calls = []

    async def charge() -> None:
        calls.append(1)
        raise TimeoutError("no answer")

    @hf.task(retry=AGAIN)
    async def pay(job: Job) -> None:
        for _ in range(3):
            try:
                await job.effect("charge", charge, policy="keyed", key_ttl=0.3)
            except TimeoutError:
                await asyncio.sleep(0.4)

    handle = await pay.enqueue()
    await drain(hf)
    assert await handle.status() is State.UNKNOWN
    assert calls == [1]


async def test_a_keyed_effect_in_doubt_is_not_replaced_by_another(hf):
    calls, answers = [], [TimeoutError("no answer")]

    async def stripe() -> str:
        calls.append("stripe")
        if answers:
            raise answers.pop()
        return "paid"

    @hf.task(retry=AGAIN)
    async def pay(job: Job) -> str:
        try:
            return await job.effect("stripe", stripe, policy="keyed")
        except TimeoutError:
            return await job.effect("paypal", lambda: calls.append("paypal"), policy="keyed")

    handle = await pay.enqueue()
    ran = await drain(hf)
    assert ran[-1].result == "paid"
    assert calls == ["stripe", "stripe"]
    assert [each.name for each in await hf.store.steps.load(handle.id, 0)] == ["stripe"]


async def test_what_a_lookup_has_found_must_be_what_the_task_expects(hf):
    """Else it would be recorded for good, and every attempt would fail with it."""

    async def lost() -> Post:
        raise TimeoutError("no answer")

    async def find():
        return Found("a post, surely")

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> int:
        return (await job.effect("publish", lost, policy="at_most_once", reconcile=find)).id

    handle = await publish.enqueue()
    await drain(hf)
    assert await handle.status() is State.UNKNOWN
    await hf.unknown.resolve(handle.id, actor="ada", done=True, result=Post(7))
    assert (await drain(hf))[-1].result == 7


async def test_an_effect_whose_result_cannot_be_kept_waits_for_a_person_who_gives_one(hf):
    results = []

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        results.append(await job.effect("publish", object, policy="at_most_once"))

    handle = await publish.enqueue()
    await drain(hf)
    assert await handle.status() is State.UNKNOWN
    assert "was done, but its result cannot be kept" in (await handle.record()).reason
    await hf.unknown.resolve(handle.id, actor="ada", done=True, result=7)
    await drain(hf)
    assert await handle.status() is State.SUCCEEDED
    assert results == [7]


@pytest.mark.parametrize("wrong", [{"wrong": 1}, None])
async def test_a_result_that_a_person_gave_and_that_does_not_fit_is_asked_for_again(hf, wrong):
    async def lost() -> Post:
        raise TimeoutError("no answer")

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> int:
        return (await job.effect("publish", lost, policy="at_most_once")).id

    handle = await publish.enqueue()
    await drain(hf)
    await hf.unknown.resolve(handle.id, actor="ada", done=True, result=wrong)
    await drain(hf)
    assert await handle.status() is State.UNKNOWN
    assert "does not fit" in (await handle.record()).reason
    await hf.unknown.resolve(handle.id, actor="ada", done=True, result={"id": 7})
    assert (await drain(hf))[-1].result == 7


async def test_a_lookup_has_no_more_time_than_its_effect(hf):
    async def lost() -> None:
        raise TimeoutError("no answer")

    async def never():
        await asyncio.sleep(3600)

    @hf.task(retry=Backoff(attempts=1))
    async def publish(job: Job) -> None:
        await job.effect("publish", lost, policy="at_most_once", reconcile=never, timeout=0.1)

    handle = await publish.enqueue()
    async with asyncio.timeout(10):
        await drain(hf)
    assert await handle.status() is State.UNKNOWN


@pytest.mark.parametrize("policy", ["keyed", "at_least_once", "at_most_once"])
async def test_a_lookup_that_answers_nonsense_is_told_so(hf, policy):
    calls = []

    async def lost() -> None:
        calls.append(1)
        raise TimeoutError("no answer")

    @hf.task(retry=Backoff(attempts=1))
    async def publish(job: Job) -> None:
        await job.effect("publish", lost, policy=policy, reconcile=lambda: "yes")

    await publish.enqueue()
    [ran] = await drain(hf)
    assert "reconcile answers Found(result), NotFound or CannotTell" in ran.error
    assert calls == [1]


async def test_settling_begins_anew_with_a_second_call(hf):
    """What was waited for is the first one."""
    calls = []

    async def lost() -> None:
        calls.append(1)
        raise TimeoutError("no answer")

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        settle = 0.2 if len(calls) < 2 else 3600
        await job.effect("publish", lost, policy="at_most_once", reconcile=lambda: NotFound, settle=settle)

    handle = await publish.enqueue()
    async with hf.worker():
        async with asyncio.timeout(10):
            while len(calls) < 2:
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.5)
    assert calls == [1, 1]
    assert await handle.status() is State.QUEUED


async def test_who_waits_for_the_result_is_told_that_nobody_knows_and_may_wait_again(hf):
    async def lost() -> str:
        raise TimeoutError("no answer")

    @hf.task
    async def publish(job: Job) -> str:
        return await job.effect("publish", lost, policy="at_most_once")

    handle = await publish.enqueue()
    await drain(hf)
    with pytest.raises(JobUnknown, match="Nobody knows whether effect 'publish' was done"):
        await handle.result(5)
    await hf.unknown.resolve(handle.id, actor="ada", done=True, result="7")
    await drain(hf)
    assert await handle.result(5) == "7"
