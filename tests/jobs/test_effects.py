"""Effects: the intent is recorded before the call, and what nobody knows is never guessed."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from holdfast import Backoff, CannotTell, Found, Job, NotFound, Retry
from holdfast.jobs.job import attempt_of
from holdfast.kernel.crashpoints import armed
from holdfast.store.states import State
from holdfast.store.steps import Progress
from holdfast.testing import drain

AGAIN = Backoff(attempts=4, first=0, ceiling=0)
BARE = {"policy": "at_most_once"}


class Refused(Exception):
    """The other side says that it did nothing."""


class Provider:
    """Publishes, without idempotency keys; it may be told to fail before or after."""

    def __init__(self):
        self.posts, self.calls, self.asked, self.fails = [], 0, 0, []

    async def publish(self, title: str) -> int:
        self.calls += 1
        failure = self.fails.pop(0) if self.fails else None
        if failure is not None and failure[0] == "before":
            raise failure[1]
        self.posts.append(title)
        if failure is not None:
            raise failure[1]
        return len(self.posts)

    async def find(self, title: str):
        self.asked += 1
        return Found(self.posts.index(title) + 1) if title in self.posts else NotFound


@pytest.fixture
def provider():
    return Provider()


@pytest.fixture
def publish(hf, provider):
    options = dict(BARE)

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> int:
        return await job.effect("publish", provider.publish, "harbour", **options)

    publish.manner = options
    return publish


def die_at(point, times=1):
    seen = []

    def die(_):
        seen.append(point)
        if len(seen) <= times:
            raise RuntimeError("the worker died")

    return armed(point, die)


async def progress(hf, job_id):
    return {each.name: each.progress for each in await hf.store.steps.load(job_id, 0)}


async def test_it_is_done_and_recorded(hf, provider, publish):
    handle = await publish.enqueue()
    [ran] = await drain(hf)
    assert (ran.state, ran.result, provider.calls) == (State.SUCCEEDED, 1, 1)
    assert await progress(hf, handle.id) == {"publish": Progress.DONE}


async def test_the_intent_is_durable_before_the_call(hf, provider, publish):
    seen = []

    async def look(title):
        seen.append(await progress(hf, handle.id))

    provider.publish = look
    handle = await publish.enqueue()
    await drain(hf)
    assert seen == [{"publish": Progress.BEGUN}]


@pytest.mark.parametrize(("point", "posts"), [("effect.begun", 0), ("effect.called", 1)])
async def test_without_a_lookup_a_death_around_the_call_waits_for_a_person(
    hf, provider, publish, point, posts
):
    handle = await publish.enqueue()
    with die_at(point):
        ran = await drain(hf)
    assert [each.state for each in ran] == [State.QUEUED, State.UNKNOWN]
    assert len(provider.posts) == posts
    record = await handle.record()
    assert "Nobody knows whether effect 'publish' was done" in record.reason
    assert await progress(hf, handle.id) == {"publish": Progress.UNKNOWN}


async def test_a_person_says_that_it_was_done(hf, provider, publish):
    handle = await publish.enqueue()
    with die_at("effect.called"):
        await drain(hf)
    assert (await hf.unknown.resolve(handle.id, actor="ada", done=True, result=17)).outcome == "queued"
    assert (await drain(hf))[-1].result == 17
    assert provider.posts == ["harbour"]


async def test_a_person_says_that_it_was_not_done(hf, provider, publish):
    handle = await publish.enqueue()
    with die_at("effect.begun"):
        await drain(hf)
    assert [each.id for each in await hf.unknown.find()] == [handle.id]
    await hf.unknown.resolve(handle.id, actor="ada", done=False)
    assert (await drain(hf))[-1].result == 1
    assert provider.posts == ["harbour"]
    assert await hf.unknown.find() == []


async def test_what_a_lookup_finds_is_the_result(hf, provider, publish):
    publish.manner["reconcile"] = provider.find
    await publish.enqueue()
    with die_at("effect.called"):
        ran = await drain(hf)
    assert (ran[-1].result, provider.calls, provider.asked) == (1, 1, 1)


async def test_not_found_counts_only_when_it_has_settled(hf, provider, publish):
    publish.manner |= {"reconcile": provider.find, "settle": 0.5}
    handle = await publish.enqueue()
    with die_at("effect.begun"):
        ran = await drain(hf)
    assert [each.state for each in ran] == [State.QUEUED, State.QUEUED]
    assert provider.calls == 0
    record = await handle.record()
    assert record.held == "time"
    assert record.attempt == 1  # uncharged
    async with asyncio.timeout(10):
        while not (ran := await drain(hf)):
            await asyncio.sleep(0.05)
    assert (ran[-1].result, provider.posts) == (1, ["harbour"])


async def test_a_lookup_that_cannot_tell(hf, provider, publish):
    async def cannot(title):
        return CannotTell

    publish.manner["reconcile"] = cannot
    handle = await publish.enqueue()
    with die_at("effect.called"):
        assert (await drain(hf))[-1].state is State.UNKNOWN
    assert provider.posts == ["harbour"]
    assert await progress(hf, handle.id) == {"publish": Progress.UNKNOWN}


async def test_a_provider_that_accepts_and_then_times_out(hf, provider, publish):
    """Row 59 of the fault matrix."""
    publish.manner["reconcile"] = provider.find
    provider.fails = [("after", TimeoutError("no answer"))]
    await publish.enqueue()
    [ran] = await drain(hf)
    assert (ran.state, ran.result, provider.posts) == (State.SUCCEEDED, 1, ["harbour"])


async def test_an_error_whose_meaning_nobody_knows(hf, provider, publish):
    provider.fails = [("after", ConnectionResetError("cut"))]
    handle = await publish.enqueue()
    [ran] = await drain(hf)
    assert ran.state is State.UNKNOWN
    assert "cut" in (await handle.record()).reason
    assert provider.calls == 1


@pytest.mark.parametrize("failure", [Refused("422"), Retry(0, "later")])
async def test_a_failure_that_is_known_is_tried_again(hf, provider, publish, failure):
    publish.manner["not_done"] = (Refused,)
    provider.fails = [("before", failure)] * 2
    await publish.enqueue()
    ran = await drain(hf)
    assert [each.state for each in ran] == [State.QUEUED, State.QUEUED, State.SUCCEEDED]
    assert (provider.calls, provider.posts) == (3, ["harbour"])


async def test_its_own_retries_follow_only_what_is_known_to_have_failed(hf, provider, publish):
    publish.manner |= {"not_done": (Refused,), "retry": AGAIN}
    provider.fails = [("before", Refused("422"))] * 2 + [("after", OSError("cut"))]
    await publish.enqueue()
    [ran] = await drain(hf)
    assert (ran.state, ran.attempt, provider.calls) == (State.UNKNOWN, 1, 3)


async def test_a_refusal_that_the_task_handles_stays_one(hf, provider):
    provider.fails = [("before", Refused("card a"))]
    told = []

    @hf.task(retry=AGAIN)
    async def pay(job: Job) -> int:
        try:
            paid = await job.effect("a", provider.publish, "a", **BARE, not_done=(Refused,))
        except Refused as error:
            told.append(str(error))
            paid = await job.effect("b", provider.publish, "b", **BARE)
        if job.attempt < 3:
            raise RuntimeError
        return paid

    await pay.enqueue()
    assert (await drain(hf))[-1].result == 1
    assert (provider.posts, told) == (["b"], ["card a"] * 3)


async def test_a_task_may_stop_waiting_for_what_is_known_not_to_be_done(hf, provider, monkeypatch):
    """It waits for its next try, and nothing is in doubt."""
    provider.fails = [("before", Refused("busy"))]
    waits = asyncio.Event()

    async def endless(_seconds):
        waits.set()
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr("holdfast.jobs.effects.sleep", endless)

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> str:
        asking = asyncio.create_task(
            job.effect("publish", provider.publish, "harbour", **BARE, not_done=(Refused,), retry=AGAIN)
        )
        await waits.wait()
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        return await job.step("without", lambda: "went on")

    handle = await publish.enqueue()
    assert (await drain(hf))[-1].result == "went on"
    assert (await progress(hf, handle.id))["publish"] is Progress.HANDLED


async def test_at_least_once_is_called_again(hf, provider, publish):
    publish.manner["policy"] = "at_least_once"
    provider.fails = [("after", TimeoutError("no answer"))]
    await publish.enqueue()
    ran = await drain(hf)
    assert (ran[-1].state, provider.posts) == (State.SUCCEEDED, ["harbour", "harbour"])


async def test_a_key_makes_a_second_call_harmless_while_it_is_remembered(hf, provider):
    keys = []

    @hf.task(retry=AGAIN)
    async def charge(job: Job) -> str:
        async def call(key: str) -> str:
            keys.append(key)
            return key

        return await job.effect("charge", call, job.key_for("charge"), policy="keyed")

    handle = await charge.enqueue()
    with die_at("effect.called"):
        ran = await drain(hf)
    assert ran[-1].state is State.SUCCEEDED
    assert keys == [ran[-1].result] * 2
    assert await progress(hf, handle.id) == {"charge": Progress.DONE}


async def test_a_key_that_is_no_longer_remembered_is_none(hf, provider, publish):
    publish.manner |= {"policy": "keyed", "key_ttl": 0.0}
    await publish.enqueue()
    with die_at("effect.called"):
        ran = await drain(hf)
    assert (ran[-1].state, provider.calls) == (State.UNKNOWN, 1)


async def test_a_key_that_was_used_is_not_taken_for_unused_when_a_later_call_was_refused(hf, provider):
    """The first call may have been done: when its key is forgotten, a third would do it again."""
    provider.fails = [("after", OSError("cut")), ("before", Refused("429"))]

    @hf.task(retry=AGAIN)
    async def charge(job: Job) -> int:
        remembered = 3600.0 if provider.calls < 2 else 0.0
        return await job.effect(
            "charge", provider.publish, "harbour", policy="keyed", not_done=(Refused,), key_ttl=remembered
        )

    await charge.enqueue()
    assert (await drain(hf))[-1].state is State.UNKNOWN
    assert (provider.calls, provider.posts) == (2, ["harbour"])


async def test_other_arguments_than_those_it_was_begun_with(hf, provider):
    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> int:
        return await job.effect(
            "publish",
            provider.publish,
            f"harbour {job.attempt}",
            policy="at_most_once",
            reconcile=provider.find,
        )

    handle = await publish.enqueue()
    with die_at("effect.called"):
        ran = await drain(hf)
    assert (ran[-1].state, provider.posts, provider.asked) == (State.UNKNOWN, ["harbour 1"], 0)
    assert "with other arguments than now" in (await handle.record()).reason


async def test_a_task_that_swallows_it_is_unknown_all_the_same(hf, provider):
    provider.fails = [("after", OSError("cut"))]

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        with suppress(Exception):
            await job.effect("publish", provider.publish, "harbour", **BARE)

    await publish.enqueue()
    assert (await drain(hf))[-1].state is State.UNKNOWN


async def test_a_commit_does_not_hide_an_unknown_effect(hf, provider):
    provider.fails = [("after", OSError("cut"))]

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        with suppress(Exception):
            await job.effect("publish", provider.publish, "harbour", **BARE)
        async with job.commit():
            pass

    await publish.enqueue()
    assert (await drain(hf))[-1].state is State.UNKNOWN


@pytest.mark.parametrize("commits", [False, True])
async def test_a_task_that_stops_waiting_for_an_effect_does_not_succeed_without_it(hf, provider, commits):
    """As with a timeout of its own around it: nobody knows what became of the call."""
    called = asyncio.Event()

    async def endless(title: str) -> int:
        provider.posts.append(title)
        called.set()
        return await asyncio.get_running_loop().create_future()

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        called.clear()
        asking = asyncio.create_task(job.effect("publish", endless, "harbour", **BARE))
        await asyncio.wait([asking, asyncio.create_task(called.wait())], return_when="FIRST_COMPLETED")
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        if commits:
            async with job.commit():
                pass

    handle = await publish.enqueue()
    ran = await drain(hf)
    assert [each.state for each in ran] == [State.QUEUED, State.UNKNOWN]
    assert "without knowing what became of 'publish'" in ran[0].error
    assert provider.posts == ["harbour"]
    assert await progress(hf, handle.id) == {"publish": Progress.UNKNOWN}


async def test_a_lookup_that_fails_and_a_task_that_swallows_it(hf, provider):
    provider.fails = [("after", OSError("cut"))]
    fails = [OSError("down")]

    async def find(title: str):
        if fails:
            raise fails.pop()
        return await provider.find(title)

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> int | None:
        with suppress(OSError):
            return await job.effect("publish", provider.publish, "harbour", **BARE, reconcile=find)

    await publish.enqueue()
    ran = await drain(hf)
    assert [each.state for each in ran] == [State.QUEUED, State.SUCCEEDED]
    assert (ran[-1].result, provider.posts) == (1, ["harbour"])


async def test_what_is_recorded_while_the_time_runs_out_does_not_become_unknown(hf, provider, monkeypatch):
    write = hf.store.steps.write

    async def slow(claim, step):
        answer = await write(claim, step)
        if step.progress is Progress.DONE and not stopped:
            stopped.append(step.name)
            await asyncio.sleep(60)  # it is stored, and its run is stopped before it hears of that
        return answer

    stopped = []
    monkeypatch.setattr(hf.store.steps, "write", slow)

    @hf.task(retry=Backoff(attempts=1), timeout=0.05)
    async def publish(job: Job) -> int:
        return await job.effect("publish", provider.publish, "harbour", **BARE)

    handle = await publish.enqueue()
    await drain(hf)
    record = await handle.record()
    [step] = await hf.store.steps.load(record.id, record.generation)
    assert (record.state, step.progress, step.result) == (State.DEAD, Progress.DONE, "1")


async def test_a_job_whose_attempts_are_used_up_during_an_effect_is_unknown_and_not_dead(hf, provider):
    @hf.task(retry=Backoff(attempts=1), timeout=0.05)
    async def publish(job: Job) -> None:
        async def endless() -> None:
            provider.posts.append("harbour")
            await asyncio.sleep(3600)

        await job.effect("publish", endless, **BARE)

    handle = await publish.enqueue()
    assert (await drain(hf))[-1].state is State.UNKNOWN
    reason = (await handle.record()).reason
    assert "longer than its timeout" in reason
    assert "nobody knows whether effect 'publish' was done" in reason
    assert await progress(hf, handle.id) == {"publish": Progress.UNKNOWN}


@pytest.mark.parametrize("failure", ["fails", "has other steps"])
async def test_a_job_that_dies_before_it_comes_to_an_effect_that_was_begun(hf, provider, failure):
    """An earlier run has begun it: that this one did not ask for it does not make it known."""

    @hf.task(retry=Backoff(attempts=2, first=0, ceiling=0))
    async def publish(job: Job) -> None:
        if job.attempt == 2:
            if failure == "fails":
                raise RuntimeError("too early")
            await job.step("publish", lambda: None)
        await job.effect("publish", provider.publish, "harbour", **BARE)

    handle = await publish.enqueue()
    with die_at("effect.called"):
        ran = await drain(hf)
    assert [each.state for each in ran] == [State.QUEUED, State.UNKNOWN]
    assert await progress(hf, handle.id) == {"publish": Progress.UNKNOWN}
    await hf.unknown.resolve(handle.id, actor="ada", done=True, result=1)


async def test_a_lookup_that_fails_is_asked_again(hf, provider, publish):
    fails = [OSError("down"), OSError("down")]

    async def find(title: str):
        if fails:
            raise fails.pop()
        return await provider.find(title)

    publish.manner["reconcile"] = find
    await publish.enqueue()
    with die_at("effect.called"):
        ran = await drain(hf)
    assert (ran[-1].state, ran[-1].attempt, provider.calls) == (State.SUCCEEDED, 4, 1)


async def test_no_effect_is_begun_by_whom_may_have_lost_the_job(hf, provider):
    tokens = set()

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> int:
        tokens.add(job.token)
        if len(tokens) == 1:
            attempt_of(job)._hold.until = 0.0
        return await job.effect("publish", provider.publish, "harbour", **BARE)

    handle = await publish.enqueue()
    ran = await drain(hf)
    assert (ran[-1].state, provider.calls) == (State.SUCCEEDED, 1)
    assert await progress(hf, handle.id) == {"publish": Progress.DONE}


@pytest.mark.parametrize("failure", [Refused("no"), TimeoutError("no answer")])
async def test_calls_that_go_on_beside_one_that_failed_are_recorded(hf, provider, failure):
    """asyncio.gather raises at once, and cancels nothing: they get their answers."""
    provider.fails = [("before", failure)]

    async def slow(title: str) -> int:
        await asyncio.sleep(0.1)
        return await provider.publish(title)

    @hf.task(retry=AGAIN)
    async def publish_both(job: Job) -> list[int]:
        calls = {"quay": provider.publish, "buoy": slow}
        return await asyncio.gather(
            *(job.effect(title, call, title, not_done=(Refused,), **BARE) for title, call in calls.items())
        )

    handle = await publish_both.enqueue()
    await drain(hf)
    if isinstance(failure, TimeoutError):
        assert await progress(hf, handle.id) == {"quay": Progress.UNKNOWN, "buoy": Progress.DONE}
        await hf.unknown.resolve(handle.id, actor="ada", done=False)
        await drain(hf)
    assert (await handle.record()).state is State.SUCCEEDED
    assert sorted(provider.posts) == ["buoy", "quay"]


async def test_a_call_that_does_not_end_is_not_waited_for(hf, provider, monkeypatch):
    monkeypatch.setattr("holdfast.jobs.steps.LAST_CALLS", 0.1)
    provider.fails = [("before", Refused("no"))]

    @hf.task(retry=Backoff(attempts=1))
    async def publish_both(job: Job) -> None:
        hanging = job.effect("buoy", asyncio.sleep, 600, **BARE)
        quay = job.effect("quay", provider.publish, "quay", not_done=(Refused,), **BARE)
        await asyncio.gather(hanging, quay)

    await publish_both.enqueue()
    [ran] = await drain(hf)
    assert ran.state is State.UNKNOWN
    assert "nobody knows whether effect 'buoy' was done" in ran.error


@pytest.mark.parametrize("how", ["timed out", "cut off by its task", "drained"])
@pytest.mark.parametrize("policy", ["at_most_once", "at_least_once"])
async def test_an_answer_that_was_about_to_be_recorded_is_known_to_the_next_attempt(
    hf, provider, monkeypatch, how, policy
):
    write, writing = hf.store.steps.write, asyncio.Event()

    async def slow(claim, step):
        if step.progress is Progress.DONE and not writing.is_set():
            writing.set()
            await asyncio.sleep(60)  # its run is stopped before it is stored
        return await write(claim, step)

    monkeypatch.setattr(hf.store.steps, "write", slow)

    @hf.task(retry=AGAIN, timeout=0.3 if how == "timed out" else None)
    async def publish(job: Job) -> int:
        async with asyncio.timeout(0.3 if how == "cut off by its task" else None):
            return await job.effect("publish", provider.publish, "harbour", policy=policy)

    await publish.enqueue()
    if how == "drained":
        async with hf.worker(grace=0.1):
            await writing.wait()
    ran = await drain(hf)
    assert (ran[-1].state, ran[-1].result, provider.posts) == (State.SUCCEEDED, 1, ["harbour"])
