"""Steps: what is recorded is never done again, in the same order, whatever happens to the run."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pytest

from holdfast import Backoff, Job
from holdfast.kernel.crashpoints import armed
from holdfast.kernel.errors import StepFailed, StoreUnavailable, UsageError
from holdfast.store.states import State
from holdfast.store.steps import Progress
from holdfast.testing import drain

AGAIN = Backoff(attempts=5, first=0, ceiling=0)


class Boom(Exception):
    """A failure of the task."""


@dataclass
class Parcel:
    id: int
    to: str


@pytest.fixture
def calls():
    return []


def fail_once(point):
    """As if the worker had died there; the run ends, and another follows."""
    seen = []

    def fail(_):
        seen.append(point)
        if len(seen) == 1:
            raise Boom(point)

    return armed(point, fail)


async def only(hf):
    [record] = await hf.store.jobs.find(limit=5)
    return record


async def test_a_recorded_step_is_not_run_again_and_has_the_same_result(hf, calls):
    results = []

    async def pack(number: int, *, to: str) -> Parcel:
        calls.append(number)
        return Parcel(number, to)

    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> int:
        parcel = await job.step("pack", partial(pack, to="ada"), 7)
        results.append(parcel)
        if job.attempt < 3:
            raise Boom
        return parcel.id

    await ship.enqueue()
    assert [ran.state for ran in await drain(hf)] == [State.QUEUED, State.QUEUED, State.SUCCEEDED]
    assert calls == [7]
    assert results == [Parcel(7, "ada")] * 3


@pytest.mark.parametrize(("point", "times"), [("step.called", 2), ("step.recorded", 1)])
async def test_a_worker_that_dies_around_the_record(hf, calls, point, times):
    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> int:
        return await job.step("pack", lambda: calls.append(1) or len(calls))

    await ship.enqueue()
    with fail_once(point):
        ran = await drain(hf)
    assert [each.state for each in ran] == [State.QUEUED, State.SUCCEEDED]
    assert (len(calls), ran[-1].result) == (times, times)


async def test_what_the_task_gets_first_is_what_a_later_attempt_gets(hf):
    kinds = []

    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> None:
        kinds.append(await job.step("pair", lambda: (1, {"2": None})))
        if job.attempt == 1:
            raise Boom

    await ship.enqueue()
    await drain(hf)
    assert kinds == [[1, {"2": None}]] * 2


async def test_plain_functions_run_beside_the_loop(hf):
    @hf.task
    async def ship(job: Job) -> bool:
        there = await job.step("where", threading.get_ident)
        return there == threading.get_ident()

    await ship.enqueue()
    assert (await drain(hf))[0].result is False


async def test_steps_side_by_side(hf, calls):
    async def slow(name):
        calls.append(name)
        if name == "b" and calls.count("b") == 1:
            raise Boom
        await asyncio.sleep(0)
        return name

    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> list[str]:
        async def branch(name):
            first = await job.step(name, slow, name)
            return first + await job.step(name * 2, slow, name * 2)

        found = await asyncio.gather(*(branch(name) for name in "abc"), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return [*found, await job.step("last", slow, "last")]

    await ship.enqueue()
    ran = await drain(hf)
    assert ran[-1].result == ["aaa", "bbb", "ccc", "last"]
    assert sorted(calls) == ["a", "aa", "b", "b", "bb", "c", "cc", "last"]


async def test_its_own_retries_and_timeout(hf, calls):
    async def flaky():
        calls.append(1)
        if len(calls) < 3:
            await asyncio.sleep(3600)
        return len(calls)

    @hf.task
    async def ship(job: Job) -> int:
        return await job.step("flaky", flaky, retry=AGAIN, timeout=0.01)

    await ship.enqueue()
    [ran] = await drain(hf)
    assert (ran.result, ran.attempt) == (3, 1)


async def test_a_failure_that_the_task_handles_stays_one(hf, calls):
    """Card A was refused, card B was charged: in a later attempt, A must not be tried again."""

    async def charge(card):
        calls.append(card)
        if card == "a" and len(calls) == 1:
            raise Boom("refused: s3cret")
        return card

    told = []

    @hf.task(retry=AGAIN)
    async def pay(job: Job) -> str:
        try:
            card = await job.step("a", charge, "a")
        except Boom as error:
            told.append((str(error), isinstance(error, StepFailed)))
            card = await job.step("b", charge, "b")
        if job.attempt < 3:
            raise RuntimeError
        return card

    await pay.enqueue()
    assert (await drain(hf))[-1].result == "b"
    assert calls == ["a", "b"]
    assert told == [("refused: s3cret", False), ("refused: s3cret", True), ("refused: s3cret", True)]


async def test_a_failed_step_may_be_asked_for_again(hf, calls):
    async def flaky():
        calls.append(1)
        if len(calls) < 3:
            raise Boom
        return len(calls)

    @hf.task
    async def ship(job: Job) -> int:
        while True:
            with suppress(Boom):
                return await job.step("flaky", flaky)

    handle = await ship.enqueue()
    assert (await drain(hf))[-1].result == 3
    assert [each.progress for each in await hf.store.steps.load(handle.id, 0)] == [Progress.DONE]


async def test_a_plain_function_past_its_timeout_does_not_run_beside_its_next_try(hf, calls):
    running, most = 0, 0

    def slow():
        nonlocal running, most
        calls.append(1)
        running += 1
        most = max(most, running)
        try:
            for _ in range(10_000 if len(calls) < 3 else 0):
                time.sleep(0.001)
        finally:
            running -= 1

    @hf.task
    async def ship(job: Job) -> None:
        await job.step("slow", slow, retry=AGAIN, timeout=0.03)

    await ship.enqueue()
    assert (await drain(hf))[-1].state is State.SUCCEEDED
    assert most == 1


async def cut_off(asking, called):
    """As a timeout around it would: when its function has been called."""
    asking = asyncio.create_task(asking)
    await asyncio.wait([asking, asyncio.create_task(called.wait())], return_when="FIRST_COMPLETED")
    asking.cancel()
    try:
        return await asking
    except asyncio.CancelledError:
        raise TimeoutError from None


async def test_a_step_that_the_task_stopped_waiting_for_stays_so(hf, calls):
    called = asyncio.Event()

    async def charge(card):
        calls.append(card)
        called.set()
        return card if card == "b" else await asyncio.get_running_loop().create_future()

    @hf.task(retry=AGAIN)
    async def pay(job: Job) -> str:
        called.clear()
        try:
            card = await cut_off(job.step("a", charge, "a"), called)
        except TimeoutError:
            card = await job.step("b", charge, "b")
        if job.attempt < 3:
            raise RuntimeError
        return card

    await pay.enqueue()
    assert (await drain(hf))[-1].result == "b"
    assert calls == ["a", "b"]


async def test_a_task_does_not_go_on_from_a_step_that_could_not_be_recorded(hf, calls, monkeypatch):
    """It was done, or it was not: later attempts might go another way. At its end the run tries once more to record it."""
    monkeypatch.setattr("holdfast.jobs.patience.PAUSES", ())
    write, fails = hf.store.steps.write, [StoreUnavailable("away")]

    async def flaky(claim, step):
        if fails and step.name == "a":
            raise fails.pop()
        return await write(claim, step)

    monkeypatch.setattr(hf.store.steps, "write", flaky)

    @hf.task(retry=AGAIN)
    async def pay(job: Job) -> str:
        try:
            await job.step("a", calls.append, "a")
        except Exception:
            await job.step("b", calls.append, "b")
        return "paid"

    await pay.enqueue()
    ran = await drain(hf)
    assert [each.state for each in ran] == [State.QUEUED, State.SUCCEEDED]
    assert "without knowing what became of 'a'" in ran[0].error
    assert calls == ["a"]


def _paying_ahead(hf, calls, *, grouped=False):
    """Begun ahead, awaited later: when the next step is asked for, nobody knows yet what the task makes of it."""

    async def charge(card):
        calls.append(card)
        if calls == ["a"]:
            raise Boom
        return card

    @hf.task(retry=AGAIN)
    async def pay(job: Job) -> list[str]:
        ahead = asyncio.create_task(job.step("a", charge, "a"))
        await asyncio.wait([ahead])
        other = await job.step("b", charge, "b")
        if grouped and ahead.exception() is not None:
            raise ExceptionGroup("all of them", [ahead.exception()])
        return [await ahead, other]

    return pay


@pytest.mark.parametrize("grouped", [False, True])
async def test_a_failure_that_ends_the_run_was_not_handled_by_a_step_in_between(hf, calls, grouped):
    await _paying_ahead(hf, calls, grouped=grouped).enqueue()
    assert (await drain(hf))[-1].result == ["a", "b"]
    assert calls == ["a", "b", "a"]


async def test_a_failure_that_was_not_handled_by_a_run_that_died(hf, calls):
    """The run could not say that the failure would have ended it; the next one does."""
    await _paying_ahead(hf, calls).enqueue()
    with fail_once("step.recorded"):
        ran = await drain(hf)
    assert ran[-1].result == ["a", "b"]
    assert calls == ["a", "b", "a"]


async def test_a_failure_that_ends_the_run_is_tried_again(hf, calls):
    async def charge():
        calls.append(1)
        if len(calls) < 3:
            raise Boom
        return len(calls)

    @hf.task(retry=AGAIN)
    async def pay(job: Job) -> int:
        await job.step("first", lambda: None)
        return await job.step("charge", charge)

    await pay.enqueue()
    assert (await drain(hf))[-1].result == 3


# --- the code has changed ---


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (["b", "a"], "'b' comes before 'a'"),
        (["b"], "'b' comes before 'a'"),
        (["new", "a", "b"], "'new' is new, and 'a'"),
        (["a", "new", "b"], "'new' is new, and 'b'"),
        (["a"], "without asking for 'b'"),
        ([], "without asking for 'a', 'b'"),
    ],
)
async def test_other_steps_than_before_park_the_job(hf, calls, later, words):
    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> None:
        for name in ["a", "b"] if job.attempt == 1 else later:
            await job.step(name, calls.append, name)
        if job.attempt == 1:
            raise Boom

    await ship.enqueue()
    await drain(hf)
    assert calls == ["a", "b"]
    record = await only(hf)
    assert record.state is State.DEAD
    assert words in record.reason
    assert "the code has changed since" in record.reason


async def test_a_task_that_swallows_it_is_parked_all_the_same(hf):
    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> None:
        if job.attempt == 1:
            await job.step("a", lambda: 1)
            raise Boom
        with suppress(Exception):
            await job.step("b", lambda: 1)

    await ship.enqueue()
    assert (await drain(hf))[-1].state is State.DEAD


async def test_a_dead_job_goes_on_where_it_was_when_its_code_is_back(hf, calls):
    order = ["a", "b"]

    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> str:
        for name in order:
            await job.step(name, calls.append, name)
        if order == ["a", "b"] and len(calls) == 2:
            order.reverse()
            raise Boom
        return "done"

    handle = await ship.enqueue()
    assert (await drain(hf))[-1].state is State.DEAD
    order.reverse()
    await hf.dead.replay([handle.id], actor="ada")
    calls.append("replayed")
    assert (await drain(hf))[-1].result == "done"
    assert calls == ["a", "b", "replayed"]


async def test_two_steps_of_one_name_are_refused(hf):
    @hf.task(retry=Backoff(attempts=1))
    async def ship(job: Job) -> None:
        await job.step("a", lambda: 1)
        with pytest.raises(UsageError, match=r"called 'a'.*upload:\{i\}"):
            await job.step("a", lambda: 2)

    await ship.enqueue()
    assert (await drain(hf))[-1].state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda job: job.step("", int), "step"),
        (lambda job: job.step("a", 7), "7 is no function"),
        (lambda job: job.step("a", int, retry=3), "retry is a Backoff"),
        (lambda job: job.step("a", int, timeout=-1), "timeout"),
        (lambda job: job.effect("a", int, policy="often"), "policy is one of"),
        (lambda job: job.effect("a", int, policy="keyed", reconcile=3), "reconcile"),
        (lambda job: job.effect("a", int, policy="keyed", not_done=[ValueError]), "not_done"),
        (lambda job: job.effect("a", int, policy="keyed", settle=-1), "settle"),
    ],
)
async def test_bad_input(hf, ask, words):
    @hf.task(retry=Backoff(attempts=1))
    async def ship(job: Job) -> None:
        with pytest.raises(UsageError, match=words):
            await ask(job)

    handle = await ship.enqueue()
    assert (await drain(hf))[-1].state is State.SUCCEEDED
    assert await hf.store.steps.load(handle.id, 0) == []


async def test_a_result_that_cannot_be_kept(hf, calls):
    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> None:
        await job.step("a", lambda: calls.append(1) or object())

    handle = await ship.enqueue()
    [ran] = await drain(hf)
    assert ran.state is State.DEAD
    assert "its result cannot be kept" in ran.error
    assert calls == [1]
    assert [each.progress for each in await hf.store.steps.load(handle.id, 0)] == [Progress.FAILED]


async def test_a_lost_claim_records_nothing(hf):
    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> int:
        if job.interruptions == 0:
            await hf.store.claims.rescue_worker("holdfast.testing")
        return await job.step("a", lambda: job.interruptions)

    await ship.enqueue()
    ran = await drain(hf)
    assert ran[-1].result == 1


# --- from plain functions ---


async def test_all_of_it_from_a_plain_function(hf, calls):
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS shipped (job TEXT)")
        await tx.execute("DELETE FROM shipped")

    @hf.task
    async def greet(name: str) -> str:
        return name

    @hf.task(retry=AGAIN)
    def ship(job: Job) -> str:
        here = threading.get_ident()
        there = job.blocking.step("where", lambda: calls.append("where") or threading.get_ident())
        if job.attempt == 1:
            assert here == there
        sent = job.blocking.effect("send", lambda: calls.append("send") or "sent", policy="at_most_once")
        if job.attempt == 1:
            raise Boom
        with job.blocking.commit(result=sent) as tx:
            assert tx.execute("INSERT INTO shipped (job) VALUES ($1)", job.id) == 1
            assert tx.fetch("SELECT job FROM shipped") == [(job.id,)]
            greet.options(tx=tx).enqueue_sync("ada")
        return "not this"

    await ship.enqueue()
    ran = await drain(hf)
    assert [(each.state, each.result) for each in ran] == [
        (State.QUEUED, None),
        (State.SUCCEEDED, "sent"),
        (State.SUCCEEDED, "ada"),
    ]
    assert calls == ["where", "send"]


async def test_a_plain_functions_commit_that_fails_leaves_nothing(hf):
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS shipped (job TEXT)")
        await tx.execute("DELETE FROM shipped")

    @hf.task(retry=AGAIN)
    def ship(job: Job) -> int:
        with job.blocking.commit(result=job.attempt) as tx:
            tx.execute("INSERT INTO shipped (job) VALUES ($1)", job.id)
            if job.attempt < 3:
                raise Boom

    await ship.enqueue()
    ran = await drain(hf)
    assert (ran[-1].state, ran[-1].result) == (State.SUCCEEDED, 3)
    async with hf.transaction() as tx:
        assert len(await tx.fetch("SELECT job FROM shipped")) == 1


async def test_no_more_steps_than_a_job_may_have(hf, calls, monkeypatch):
    monkeypatch.setattr("holdfast.jobs.steps.MOST_STEPS", 3)

    @hf.task
    async def ship(job: Job) -> None:
        for number in range(4):
            await job.step(f"part:{number}", calls.append, number)

    await ship.enqueue()
    [ran, *_] = await drain(hf)
    assert "at most 3 steps" in ran.error
    assert calls == [0, 1, 2]
