"""`guard=` on a step and an effect: asked before anything is written; refused, the job is held under its key."""

import asyncio

import pytest
from waiting import until

from holdfast import Backoff, Job
from holdfast.guards import Breaker, Bulkhead, Degraded, Guard, Limiter, TimedOut, deadline
from holdfast.guards.ports import State as BreakerState
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UsageError
from holdfast.store.records import Gated
from holdfast.store.states import Held, State
from holdfast.store.steps import Progress

FEW = Backoff(attempts=3, first=0.01, ceiling=0.02)


class Gallery:
    """What is called, when, and how it fails."""

    def __init__(self):
        self.times, self.failures = [], []

    async def publish(self, title):
        self.times.append(monotonic())
        if self.failures:
            raise self.failures.pop(0)
        return f"{title} is out"


class TooMany(Exception):
    status_code = 429


class Refusal(Exception):
    """It says no, and has done nothing."""


@pytest.fixture
def gallery():
    return Gallery()


def posting(hf, gallery, guard, *, policy="at_most_once", **options):
    @hf.task(name="post", retry=FEW, **options.pop("task", {}))
    async def post(job: Job, user: int = 0) -> str:
        limiter = guard.limiter
        key = guard.keyed(user) if limiter is not None and limiter.fields else guard
        if policy == "step":
            return await job.step("publish", gallery.publish, f"{user}", guard=key, **options)
        return await job.effect("publish", gallery.publish, f"{user}", policy=policy, guard=key, **options)

    return post


async def steps_of(hf, handle):
    job = await hf.jobs.get(handle.id)
    return await hf.store.steps.load(job.id, job.generation)


@pytest.mark.parametrize("policy", ["step", "at_most_once", "at_least_once", "keyed"])
async def test_who_is_refused_is_held_under_the_guard_without_a_slot_an_attempt_or_a_write(
    hf, gallery, policy
):
    guard = hf.guard("api", breaker=Breaker(failures=3, cooldown=60))
    post = posting(hf, gallery, guard, policy=policy)
    guard.breaker.hold_open()
    async with hf.worker({"default": 1}):
        handle = await post.enqueue()
        await until(lambda: hf.store.holds.gated())
        job = await hf.jobs.get(handle.id)
        assert (job.state, job.held, job.attempt) == (State.QUEUED, Held.GUARD, 0)
        assert await hf.store.holds.gated() == [Gated("api", 1)]
        [shown] = await hf.store.holds.explained([job])
        assert (shown.held_by.reason, shown.held_by.name) == ("guard", "api")
        assert await steps_of(hf, handle) == []
        guard.breaker.let_go()
        assert await handle.result(10) == "0 is out"
    [step] = await steps_of(hf, handle)
    assert (step.calls, len(gallery.times)) == (1, 1)
    assert (await hf.jobs.get(handle.id)).attempt == 1


async def test_a_limiter_holds_each_key_for_itself_and_lets_go_at_its_rate(hf, gallery):
    guard = hf.guard("api", limiter=Limiter(rate=4, burst=1.5, per="user:{user}"))
    post = posting(hf, gallery, guard)
    async with hf.worker({"default": 2}):
        crowd = [await post.enqueue(1) for _ in range(5)]
        other = await post.enqueue(2)
        assert await other.result(5) == "2 is out"
        await until(lambda: hf.store.holds.gated())
        assert [each.guard for each in await hf.store.holds.gated()] == ["api/user:1"]
        for handle in crowd:
            assert await handle.result(10) == "1 is out"
    assert len(gallery.times) == 6
    assert gallery.times[-1] - gallery.times[0] > 0.75  # three turns, and the burst


async def test_what_is_recorded_asks_nobody(hf, gallery):
    """Not the first step, which is recorded, and so the job ends while the breaker is open."""
    guard = hf.guard("api", breaker=Breaker(failures=3, cooldown=60))
    gate = asyncio.Event()

    @hf.task(name="post", retry=FEW)
    async def post(job: Job) -> str:
        found = await job.effect("publish", gallery.publish, "a", policy="at_most_once", guard=guard)
        if not gate.is_set():
            gate.set()
            guard.breaker.hold_open()
            raise OSError("not yet")
        return found

    async with hf.worker():
        assert await (await post.enqueue()).result(10) == "a is out"
    assert len(gallery.times) == 1


async def test_a_decided_job_ends_while_the_breaker_of_its_task_is_open(hf, gallery):
    guard = hf.guard("api", breaker=Breaker(failures=3, cooldown=60))
    gallery.failures = [TimeoutError("no answer")]

    @hf.task(name="post", guard=guard, retry=FEW)
    async def post(job: Job) -> str:
        return await job.effect("publish", gallery.publish, "a", policy="at_most_once")

    async with hf.worker():
        handle = await post.enqueue()
        await until(lambda: _is_in(hf, handle, State.UNKNOWN))
        guard.breaker.hold_open()
        waits = await post.enqueue()
        await until(lambda: hf.store.holds.gated())
        await hf.unknown.resolve(handle.id, actor="ada", done=True, result="it is out")
        assert await handle.result(10) == "it is out"
        assert (await hf.jobs.get(waits.id)).held is Held.GUARD
    assert len(gallery.times) == 1


async def test_a_decided_job_with_a_call_left_waits_for_the_breaker_of_its_task_before_that(hf, gallery):
    guard = hf.guard("api", breaker=Breaker(failures=3, cooldown=60))
    gallery.failures = [TimeoutError("no answer")]
    began = []

    @hf.task(name="post", guard=guard, retry=FEW)
    async def post(job: Job) -> str:
        began.append(job.attempt)
        first = await job.effect("publish", gallery.publish, "a", policy="at_most_once")
        return first + ", " + await job.step("tell", gallery.publish, "b")

    async with hf.worker():
        handle = await post.enqueue()
        await until(lambda: _is_in(hf, handle, State.UNKNOWN))
        guard.breaker.hold_open()
        await hf.unknown.resolve(handle.id, actor="ada", done=True, result="a is out")
        await until(lambda: hf.store.holds.gated())
        assert len(gallery.times) == 1
        assert (await hf.jobs.get(handle.id)).attempt == 0
        guard.breaker.let_go()
        assert await handle.result(10) == "a is out, b is out"
    assert len(gallery.times) == 2
    assert len(began) == 3


async def test_one_that_was_not_done_waits_for_the_breaker_too(hf, gallery):
    guard = hf.guard("api", breaker=Breaker(failures=3, cooldown=60))
    gallery.failures = [TimeoutError("no answer")]

    @hf.task(name="post", guard=guard, retry=FEW)
    async def post(job: Job) -> str:
        return await job.effect("publish", gallery.publish, "a", policy="at_most_once")

    async with hf.worker():
        handle = await post.enqueue()
        await until(lambda: _is_in(hf, handle, State.UNKNOWN))
        guard.breaker.hold_open()
        await hf.unknown.resolve(handle.id, actor="ada", done=False)
        await until(lambda: hf.store.holds.gated())
        assert len(gallery.times) == 1
        guard.breaker.let_go()
        assert await handle.result(10) == "a is out"


async def test_how_a_call_ended_is_recorded_as_by_guard_call(hf, gallery):
    guard = hf.guard("api", breaker=Breaker(failures=3, cooldown=60), bulkhead=Bulkhead(2))
    post = posting(hf, gallery, guard, not_done=(OSError,))
    gallery.failures = [OSError("down"), OSError("down"), OSError("down")]
    async with hf.worker():
        handle = await post.enqueue()
        await until(lambda: guard.breaker.state is not BreakerState.CLOSED)
        await until(lambda: _is_in(hf, handle, State.DEAD))  # three runs, each with a call that failed
    assert (guard.breaker.calls, guard.bulkhead.in_flight) == (3, 0)


async def test_a_refusal_of_the_second_try_is_no_hold_but_the_failure(hf, gallery):
    """Else one call would be made in each run, and none of them charged."""
    guard = hf.guard("api", breaker=Breaker(failures=1, cooldown=60))
    post = posting(hf, gallery, guard, not_done=(Refusal, OSError), retry=FEW, task={})
    gallery.failures = [OSError("down")]
    async with hf.worker():
        handle = await post.enqueue()
        await until(lambda: hf.store.holds.gated())  # in the second run
    job = await hf.jobs.get(handle.id)
    assert (job.attempt, len(gallery.times), len(job.errors)) == (1, 1, 1)
    assert "down" in job.errors[0].error


async def test_who_was_told_to_come_later_is_put_off_uncharged(hf, gallery):
    guard = hf.guard("api", limiter=Limiter(rate=5, burst=2, longest_pause=1))
    post = posting(hf, gallery, guard, not_done=(TooMany,))
    gallery.failures = [TooMany(), TooMany(), TooMany(), TooMany()]
    async with hf.worker():
        handle = await post.enqueue()
        assert await handle.result(20) == "0 is out"
    job = await hf.jobs.get(handle.id)
    assert (job.attempt, job.errors, len(gallery.times)) == (1, (), 5)


async def test_the_guard_times_the_call_and_a_timeout_is_unknown(hf):
    guard = hf.guard("api", timeout=0.05)

    async def hang() -> None:
        await asyncio.sleep(5)

    @hf.task(name="post", retry=FEW)
    async def post(job: Job) -> None:
        # Also when errors of that type are named: that the time was over is our own word.
        await job.effect(
            "publish", hang, policy="at_most_once", guard=guard, not_done=(TimeoutError, TimedOut)
        )

    async with hf.worker():
        handle = await post.enqueue()
        await until(lambda: _is_in(hf, handle, State.UNKNOWN))


async def test_the_guard_repeats_steps_but_nothing_that_may_be_done_once(hf, gallery):
    guard = hf.guard("api", retry=Backoff(attempts=3, first=0.01, ceiling=0.02))
    gallery.failures = [ConnectionRefusedError(111, "refused")] * 2

    @hf.task(name="steps", retry=FEW)
    async def steps(job: Job) -> str:
        return await job.step("publish", gallery.publish, "a", guard=guard)

    async with hf.worker():
        handle = await steps.enqueue()
        assert await handle.result(10) == "a is out"
        [step] = await steps_of(hf, handle)
        assert (step.calls, (await hf.jobs.get(handle.id)).attempt) == (3, 1)
        gallery.failures = [ConnectionRefusedError(111, "refused")] * 2
        once = await posting(hf, gallery, guard).enqueue()
        await until(lambda: _is_in(hf, once, State.UNKNOWN))
    assert len(gallery.times) == 4


async def test_plain_functions_and_jobs_without_a_loop_ask_too(hf):
    guard = hf.guard("api", breaker=Breaker(failures=3, cooldown=60))
    called = []

    def publish(title: str) -> str:
        called.append(title)
        return f"{title} is out"

    @hf.task(name="plain", retry=FEW)
    def plain(job: Job) -> str:
        one = job.blocking.step("one", publish, "a", guard=guard)
        return one + job.blocking.effect("two", publish, "b", policy="at_most_once", guard=guard)

    @hf.task(name="thread", retry=FEW)
    async def thread(job: Job) -> str:
        return await job.step("one", publish, "c", guard=guard)

    guard.breaker.hold_open()
    async with hf.worker():
        handles = [await plain.enqueue(), await thread.enqueue()]
        await until(lambda: _held(hf, 2))
        assert called == []
        guard.breaker.let_go()
        assert [await handle.result(10) for handle in handles] == ["a is outb is out", "c is out"]
    assert guard.breaker.calls == 3


async def test_a_guard_of_no_program_is_known_by_its_first_refusal(hf, gallery):
    guard = Guard("mine", breaker=Breaker(failures=3, cooldown=60))
    post = posting(hf, gallery, guard)
    guard.breaker.hold_open()
    async with hf.worker():
        handle = await post.enqueue()
        await until(lambda: hf.store.holds.gated())
        guard.breaker.let_go()
        assert await handle.result(10) == "0 is out"


async def test_one_probe_at_a_time_finds_out_and_is_not_charged(hf, gallery):
    guard = hf.guard("api", breaker=Breaker(failures=1, cooldown=0.3, permits=1))
    post = posting(hf, gallery, guard, not_done=(OSError,))
    gallery.failures = [OSError("down")] * 4
    async with hf.worker({"default": 4}):
        handles = [await post.enqueue(number) for number in range(3)]
        for handle in handles:
            await handle.result(20)
    assert len(gallery.times) == 7
    errors = [len((await hf.jobs.get(handle.id)).errors) for handle in handles]
    assert sum(errors) == 1  # the first; the others found out


async def test_a_deadline_that_is_over_is_a_failure_and_leaves_no_intent(hf, gallery):
    guard = hf.guard("api", breaker=Breaker(failures=3))

    @hf.task(name="late", retry=Backoff(attempts=1))
    async def late(job: Job) -> None:
        with deadline(0.000001):
            await job.effect("publish", gallery.publish, "a", policy="at_most_once", guard=guard)

    async with hf.worker():
        handle = await late.enqueue()
        await until(lambda: _is_in(hf, handle, State.DEAD))
    assert (await steps_of(hf, handle), gallery.times) == ([], [])


async def test_the_task_cannot_go_around_a_refusal(hf, gallery):
    guard = hf.guard("api", breaker=Breaker(failures=3, cooldown=60))

    @hf.task(name="post", retry=FEW)
    async def post(job: Job) -> str:
        try:
            return await job.effect("publish", gallery.publish, "a", policy="at_most_once", guard=guard)
        except Exception:
            return await job.effect("other", gallery.publish, "b", policy="at_most_once")

    guard.breaker.hold_open()
    async with hf.worker():
        handle = await post.enqueue()
        await until(lambda: hf.store.holds.gated())
        guard.breaker.let_go()
        assert await handle.result(10) == "a is out"


async def test_the_breaker_may_open_while_the_intent_is_written(hf, gallery, monkeypatch):
    guard = hf.guard("api", breaker=Breaker(failures=3, cooldown=60))
    post = posting(hf, gallery, guard)
    write, seen = hf.store.steps.write, []

    async def slow(claim, step):
        kept = await write(claim, step)
        if step.progress is Progress.BEGUN and not seen:
            seen.append(step)
            await asyncio.sleep(0.5)  # its quota is too old by then: it is asked anew
            guard.breaker.hold_open()
        return kept

    monkeypatch.setattr(hf.store.steps, "write", slow, raising=False)
    async with hf.worker():
        handle = await post.enqueue()
        await until(lambda: hf.store.holds.gated())
        [step] = await steps_of(hf, handle)
        assert (step.progress, step.calls, gallery.times) == (Progress.FAILED, 0, [])
        guard.breaker.let_go()
        assert await handle.result(10) == "0 is out"


async def test_a_fallback_is_no_guard_of_a_step(hf, gallery):
    guard = hf.guard("api", fallback=lambda: Degraded)
    said = []

    @hf.task(name="post", retry=Backoff(attempts=1))
    async def post(job: Job) -> None:
        for wrong in (guard, "api"):
            with pytest.raises(UsageError) as error:
                await job.step("publish", gallery.publish, "a", guard=wrong)
            said.append(str(error.value))

    async with hf.worker():
        await (await post.enqueue()).result(10)
    assert "fallback" in said[0]
    assert "guard is what" in said[1]


async def _is_in(hf, handle, state):
    return (await hf.jobs.get(handle.id)).state is state


async def _held(hf, number):
    return sum(each.number for each in await hf.store.holds.gated()) == number
