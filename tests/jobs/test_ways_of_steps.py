"""The way that a task takes from step to step: later attempts take the same, and none that a stop or a failure made up."""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress

import pytest

from holdfast import Backoff, Cancel, Job, Reject, Retry, Snooze
from holdfast.kernel.errors import UsageError
from holdfast.store.states import State
from holdfast.store.steps import Progress
from holdfast.testing import drain

AGAIN = Backoff(attempts=4, first=0, ceiling=0)


class Busy(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Refused(Exception):
    """The other side says that it did nothing."""


async def progress(hf, handle):
    return {each.name: each.progress for each in await hf.store.steps.load(handle.id, 0)}


@pytest.mark.parametrize("how", ["drained", "timed out"])
@pytest.mark.parametrize("kind", ["async", "group", "plain"])
async def test_a_step_that_is_stopped_with_its_run_has_not_failed(hf, how, kind):
    """Although the task asks for another step on its way out."""
    calls, begun, go = [], asyncio.Event(), asyncio.Event()

    async def upload() -> str:
        calls.append("upload")
        begun.set()
        await go.wait()
        return "there"

    options = {"retry": AGAIN, "timeout": 1.0 if how == "timed out" else None}

    @hf.task(**options)
    async def ship(job: Job) -> str:
        try:
            return await job.step("upload", upload)
        finally:
            await job.step("tidy", lambda: calls.append("tidy"))

    @hf.task(name="ship_in_group", **options)
    async def ship_in_group(job: Job) -> str:
        async with asyncio.TaskGroup() as group:
            shipped = group.create_task(ship.function(job))
        return shipped.result()

    @hf.task(name="ship_plain", **options)
    def ship_plain(job: Job) -> str:
        try:
            return job.blocking.step("upload", upload)
        finally:
            job.blocking.step("tidy", lambda: calls.append("tidy"))

    handle = await {"async": ship, "group": ship_in_group, "plain": ship_plain}[kind].enqueue()
    async with hf.worker(grace=0):
        await begun.wait()
        if how == "timed out":
            async with asyncio.timeout(10):
                while len(calls) < 2:
                    await asyncio.sleep(0.02)
            go.set()
            assert await handle.result(10) == "there"
    if how == "drained":
        assert ((record := await handle.record()).state, record.attempt) == (State.QUEUED, 0)
    go.set()
    async with hf.worker():
        assert await handle.result(10) == "there"
    assert calls[-2:] == ["upload", "tidy"]
    assert set(calls[:-1]) == {"upload"}


@pytest.mark.parametrize("how", ["bare", "from"])
async def test_a_failure_that_is_raised_after_tidying_up_is_tried_again(hf, how):
    calls = []

    async def upload() -> str:
        calls.append("upload")
        if calls.count("upload") <= 2:
            raise ConnectionResetError("transient")
        return "there"

    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> str:
        try:
            url = await job.step("upload", upload)
        except OSError as error:
            await job.step("tidy", lambda: calls.append("tidy"))
            if how == "bare":
                raise
            raise RuntimeError("not shipped") from error
        await job.step("tell", lambda: calls.append("tell"))
        if calls.count("tell") == 1:
            calls.append("tell")
            raise ValueError("once more")
        return url

    handle = await ship.enqueue()
    ran = await drain(hf)
    assert [each.state for each in ran] == [State.QUEUED] * 3 + [State.SUCCEEDED]
    assert calls == ["upload", "tidy", "upload", "upload", "tell", "tell"]
    assert await progress(hf, handle) == {
        "upload": Progress.DONE,
        "tidy": Progress.ASIDE,
        "tell": Progress.DONE,
    }


@pytest.mark.parametrize(
    "failure", [OSError(errno.ECONNRESET, "cut off"), Busy(429), ValueError("bad", {"of": [1]})]
)
async def test_a_kept_failure_is_as_it_was(hf, failure):
    """Whatever the task looks at to choose its way."""
    seen = []

    async def fail() -> None:
        raise failure

    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> None:
        try:
            await job.step("a", fail)
        except type(failure) as error:
            seen.append((error.args, vars(error), getattr(error, "errno", None), str(error)))
        await job.step("b", lambda: None)
        if len(seen) < 2:
            raise RuntimeError

    await ship.enqueue()
    assert (await drain(hf))[-1].state is State.SUCCEEDED
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("asked", "state", "attempt"),
    [
        (Snooze(3600), State.QUEUED, 1),
        (Retry(after=3600), State.QUEUED, 2),
        (Cancel("gone"), State.CANCELLED, 2),
        (Reject("bad"), State.DEAD, 2),
    ],
)
async def test_what_a_step_asks_of_its_run_may_be_raised_on_by_a_later_attempt(hf, asked, state, attempt):
    async def ask() -> None:
        raise asked

    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> None:
        try:
            await job.step("ask", ask)
        except type(asked) as error:
            await job.step("tell", lambda: None)
            if job.attempt == 1:
                raise RuntimeError from None
            raise error

    handle = await ship.enqueue()
    await drain(hf)
    record = await handle.record()
    assert (record.state, record.attempt) == (state, attempt)


class Childless(Exception):
    def __init_subclass__(cls):
        raise RuntimeError("nobody inherits from this")


class Local:
    class Error(Exception):
        __qualname__ = "Local.<locals>.Error"  # as within a function


@pytest.mark.parametrize("kind", [Childless, Local.Error])
async def test_a_failure_that_could_not_be_caught_again_is_not_kept(hf, kind):
    async def fail() -> None:
        raise kind

    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> None:
        try:
            await job.step("a", fail)
        except kind:
            await job.step("b", lambda: None)

    await ship.enqueue()
    [ran] = await drain(hf)
    assert ran.state is State.DEAD
    assert f"{kind.__qualname__}, which cannot be kept" in ran.error


async def test_a_failure_with_very_much_in_it_is_kept_in_part(hf):
    async def fail() -> None:
        error = Busy(429)
        vars(error).update({f"line_{n}": "x" * 1900 for n in range(1000)})
        raise error

    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> str:
        try:
            await job.step("a", fail)
        except Busy as error:
            await job.step("b", lambda: None)
            if job.attempt == 1:
                raise RuntimeError from None
            return str(error.args)

    await ship.enqueue()
    assert (await drain(hf))[-1].state is State.SUCCEEDED


async def test_a_step_inside_a_step_is_refused(hf):
    told = []

    @hf.task
    async def ship(job: Job) -> None:
        async def outer() -> None:
            await job.step("inner", lambda: None)

        try:
            await job.step("outer", outer)
        except UsageError as error:
            told.append(str(error))
            raise Reject("no") from error

    @hf.task
    def ship_plain(job: Job) -> None:
        try:
            job.blocking.step("outer", lambda: job.blocking.step("inner", lambda: None))
        except UsageError as error:
            told.append(str(error))

    await ship.enqueue()
    await ship_plain.enqueue()
    await drain(hf)
    assert len(told) == 2
    assert all("inside the function of another step" in each for each in told)


async def test_what_a_step_asks_of_its_run_is_not_tried_again_in_place(hf):
    calls = []

    async def later() -> None:
        calls.append(1)
        raise Snooze(3600)

    @hf.task
    async def ship(job: Job) -> None:
        await job.step("a", later, retry=AGAIN)

    await ship.enqueue()
    await drain(hf)
    assert calls == [1]


async def test_results_of_all_steps_together_are_bounded(hf, monkeypatch):
    monkeypatch.setattr("holdfast.jobs.step_log.STEPS_LIMIT", 1_000)

    @hf.task
    async def ship(job: Job) -> None:
        for i in range(4):
            await job.step(f"part:{i}", lambda: "x" * 300)

    await ship.enqueue()
    [ran] = await drain(hf)
    assert ran.state is State.DEAD
    assert "the results of all its steps are more than 1,000 bytes" in ran.error


async def test_a_coroutine_that_nobody_waited_for_does_nothing_after_the_run(hf):
    calls, tasks = [], []

    @hf.task(retry=AGAIN)
    async def ship(job: Job) -> None:
        async def late() -> None:
            await asyncio.sleep(0.05)
            await job.effect("publish", lambda: calls.append(1), policy="at_most_once")

        tasks.append(asyncio.create_task(late()))

    await ship.enqueue()
    [ran] = await drain(hf)
    assert ran.state is State.SUCCEEDED
    with pytest.raises(UsageError, match="has ended"):
        await tasks[0]
    assert calls == []


async def test_a_handled_failure_stays_one_when_an_earlier_failure_ends_the_run(hf):
    """An effect was done instead of it: a gallery in a better mood would get a second post."""
    posts, moods = [], [OSError("no cache"), Refused("no")]

    def sometimes(name):
        if moods:
            raise moods.pop(0)
        posts.append(name)

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        failure = None
        try:
            await job.step("warm", sometimes, "cache")
        except OSError as error:
            failure = error
        try:
            await job.effect("first", sometimes, "first", policy="at_most_once", not_done=(Refused,))
        except Refused:
            await job.effect("second", posts.append, "second", policy="at_most_once")
        if failure is not None:
            raise failure

    handle = await publish.enqueue()
    await drain(hf)
    assert await handle.status() is State.SUCCEEDED
    assert posts == ["second", "cache"]


@pytest.mark.parametrize("below", [False, True])
async def test_a_coroutine_may_try_again_while_others_go_on(hf, below):
    """What is done for it by a coroutine below it, such as a limit of time makes, has ended when it tries again."""
    calls = []

    async def upload() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise OSError("cut off")
        return "there"

    @hf.task(retry=Backoff(attempts=1))
    async def ship(job: Job) -> str:
        async def patient() -> str:
            while True:
                asked = job.step("upload", upload)
                try:
                    return await (asyncio.create_task(asked) if below else asked)
                except OSError:
                    await asyncio.sleep(0.1)

        async def other(name: str) -> None:
            for number in range(10):
                await job.step(f"{name}:{number}", asyncio.sleep, 0.03)

        async with asyncio.TaskGroup() as group:
            uploaded = group.create_task(patient())
            group.create_task(other("beside"))
            await other("own")
        return uploaded.result()

    await ship.enqueue()
    [ran] = await drain(hf)
    assert (ran.state, ran.result) == (State.SUCCEEDED, "there")


async def test_a_failure_that_was_handled_beside_the_task_stays_one(hf):
    """Also that of a coroutine below: who has waited for it goes on."""
    posts, moods = [], [Refused("no")]

    async def first() -> None:
        if moods:
            raise moods.pop()
        posts.append("first")

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        async def one() -> None:
            asked = job.effect("first", first, policy="at_most_once", not_done=(Refused,))
            try:
                await asyncio.create_task(asked)
            except Refused:
                await job.effect("second", posts.append, "second", policy="at_most_once")
            if job.attempt == 1:
                raise RuntimeError

        await asyncio.gather(one())

    handle = await publish.enqueue()
    await drain(hf)
    assert await handle.status() is State.SUCCEEDED
    assert posts == ["second"]


@pytest.mark.parametrize("packs", [False, True])
async def test_a_coroutine_that_tries_again_for_another_goes_on_in_its_place(hf, packs):
    """A later attempt finds the charge done, and goes straight through in the first of them."""
    calls, moods = [], [Refused("no")]

    async def charge() -> None:
        if moods:
            raise moods.pop()
        calls.append("charge")

    @hf.task(retry=AGAIN)
    async def pay(job: Job) -> None:
        async def once(number: int) -> None:
            if packs and number == 0:
                await job.step("pack", lambda: calls.append("pack"))
            await job.effect("charge", charge, policy="at_most_once", not_done=(Refused,))
            await job.step("note", lambda: calls.append("note"))

        for number in range(2):
            try:
                await asyncio.create_task(once(number))
                break
            except Refused:
                continue
        if job.attempt == 1:
            raise RuntimeError

    handle = await pay.enqueue()
    await drain(hf)
    record = await handle.record()
    assert (record.state, record.reason) == (State.SUCCEEDED, None)
    assert calls == ["pack", "charge", "note"][not packs :]


async def test_an_error_that_was_raised_from_itself(hf):
    """As with `raise translated(error) from error`, when there is nothing to translate."""

    def refuse() -> None:
        raise Refused("no")

    @hf.task(retry=AGAIN)
    async def publish(job: Job) -> None:
        with suppress(Refused):
            await job.step("first", refuse)
        await job.step("second", lambda: None)
        error = Reject("it is no picture")
        raise error from error

    await publish.enqueue()
    [ran] = await drain(hf)
    assert (ran.state, ran.error) == (State.DEAD, "it is no picture")
