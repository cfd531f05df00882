"""`@hf.task(guard=…)`: who is refused is held, uncharged, without a slot, and goes on at the guard's pace."""

import asyncio
import time

import pytest
from waiting import until

from holdfast import Backoff, Holdfast, Job
from holdfast.guards import Breaker, Bulkhead, DeadlinePassed, Guard, Limiter, deadline, time_left
from holdfast.guards.ports import State
from holdfast.jobs.releases import Releases
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import JobCancelled, UsageError
from holdfast.kernel.ids import new_id
from holdfast.store.records import Gated, NewJob
from holdfast.store.states import Held
from holdfast.store.states import State as JobState

FEW = Backoff(attempts=2, first=0.01, ceiling=0.02)


class Provider:
    """What the tasks call, and when it was called."""

    def __init__(self):
        self.times, self.failure = [], None

    async def ask(self):
        self.times.append(monotonic())
        if self.failure is not None:
            raise self.failure


class TooMany(Exception):
    status_code = 429

    def __init__(self, retry_after):
        super().__init__("too many")
        self.retry_after = retry_after


@pytest.fixture
def provider():
    return Provider()


def guarded(hf, provider, **parts):
    guard = hf.guard("api", **parts)

    @hf.task(name="ask", guard=guard, retry=FEW)
    async def ask(user: int = 0) -> int:
        await guard.call(provider.ask)
        return user

    @hf.task(name="other")
    async def other() -> str:
        return "done"

    return guard, ask, other


async def all_done(handles, seconds=30):
    return [await handle.result(seconds) for handle in handles]


async def test_jobs_above_the_rate_wait_without_slots_and_others_go_on(hf, provider):
    _, ask, other = guarded(hf, provider, limiter=Limiter(rate=20, burst=5))
    async with hf.worker({"default": 4}):
        handles = await ask.enqueue_many([{}] * 40)
        began = monotonic()
        assert await (await other.enqueue()).result(5) == "done"
        assert monotonic() - began < 2
        await until(lambda: hf.store.holds.gated())
        await all_done(handles)
    assert len(provider.times) == 40
    times = provider.times
    assert not any(
        last - first + 1 > 20 * (times[last] - times[first]) + 5 + 1e-6
        for first in range(40)
        for last in range(first, 40)
    )
    assert {(await handle.record()).attempt for handle in handles} == {1}


async def test_the_call_inside_spends_what_the_gate_has_taken(hf, provider):
    guard, ask, _ = guarded(hf, provider, limiter=Limiter(rate=0.01, burst=3))
    async with hf.worker():
        assert await all_done(await ask.enqueue_many([{}]))
    assert guard.limiter.allowance().remaining == pytest.approx(2, abs=0.1)


async def test_nobody_dies_of_an_outage(hf, provider):
    guard, ask, other = guarded(hf, provider, breaker=Breaker(failures=2, cooldown=0.4, permits=1))
    provider.failure = ConnectionRefusedError(111, "no")
    async with hf.worker():
        handles = await ask.enqueue_many([{}] * 20)
        await until(lambda: guard.breaker.state is State.OPEN)
        calls = len(provider.times)
        await until(lambda: len(provider.times) > calls + 2)  # it is asked now and then
        assert len(provider.times) < 20
        assert await (await other.enqueue()).result(5) == "done"
        [found] = await hf.store.holds.gated()
        assert found.guard == "api"
        assert found.number >= 15
        provider.failure = None
        await all_done(handles)
    attempts = [(await handle.record()).attempt for handle in handles]
    assert max(attempts) <= 2
    assert attempts.count(1) >= 17  # those that found out first have really tried


async def test_a_probe_that_the_limiter_refuses_is_not_waited_for(hf, provider):
    _, ask, _ = guarded(
        hf, provider, breaker=Breaker(failures=1, cooldown=0.3, permits=1), limiter=Limiter(rate=2, burst=1)
    )
    provider.failure = ConnectionRefusedError(111, "no")
    async with hf.worker():
        handles = await ask.enqueue_many([{}] * 3)
        await until(lambda: len(provider.times) > 2)
        provider.failure = None
        await all_done(handles)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("asked", [0.3, 10**9, -1, "garbage", "Thu, 01 Jan 2026 00:00:00 GMT", None])
async def test_who_is_told_to_come_later_does_and_is_not_charged(hf, provider, asked):
    _, ask, _ = guarded(hf, provider, limiter=Limiter(rate=50, burst=5, floor=5, longest_pause=0.5))
    provider.failure = TooMany(asked)
    async with hf.worker():
        handles = await ask.enqueue_many([{}] * 5)
        await until(lambda: len(provider.times) > 3, seconds=20)
        assert len(provider.times) < 15
        provider.failure = None
        await all_done(handles)
    assert {(await handle.record()).attempt for handle in handles} == {1}


async def test_a_key_for_each_user(hf, provider):
    _, ask, _ = guarded(hf, provider, limiter=Limiter(rate=0.02, burst=1, per="user:{user}"))
    async with hf.worker():
        handles = await ask.enqueue_many([{"user": user} for user in (1, 2, 1, 3, 1)])
        await all_done([handles[0], handles[1], handles[3]])
        await until(lambda: hf.store.holds.gated())
        assert await hf.store.holds.gated() == [Gated("api/user:1", 2)]
        held = await handles[2].record()
        assert (held.state, held.held, held.guard, held.attempt) == (
            JobState.QUEUED,
            Held.GUARD,
            "api/user:1",
            0,
        )


async def test_a_job_that_is_older_than_its_guard_is_not_forgotten(hf, provider):
    """Its task got a guard, or another one, by a deploy."""
    _, ask, _ = guarded(hf, provider, limiter=Limiter(rate=2, burst=1))
    jobs = [NewJob(id=new_id(), task="ask", args="{}", guard=guard) for guard in (None, "old", "old/7")]
    await hf.store.jobs.enqueue(jobs)
    async with hf.worker():
        await all_done([await ask.enqueue()])
        for job in jobs:
            await until(lambda job=job: _is_over(hf, job.id), seconds=20)
        assert {(await hf.jobs.get(job.id)).attempt for job in jobs} == {1}


async def _is_over(hf, job_id):
    return (await hf.jobs.get(job_id)).state is JobState.SUCCEEDED


async def test_jobs_that_a_guard_of_another_name_holds_are_found(hf, provider):
    guarded(hf, provider, limiter=Limiter(rate=50))
    await hf.store.jobs.enqueue([NewJob(id=new_id(), task="ask", args="{}", guard="old")])
    claims = await hf.store.claims.claim({"default": 1}, lease=30, worker="w")
    await hf.store.holds.hold(claims, Held.GUARD)
    async with hf.worker():
        await until(lambda: _is_over(hf, claims[0].job_id), seconds=20)


async def test_jobs_of_a_guard_that_the_program_no_longer_has_are_let_go(hf):
    @hf.task(name="ask")
    async def ask() -> None: ...

    await hf.store.jobs.enqueue([NewJob(id=new_id(), task="ask", args="{}", guard="api")])
    claims = await hf.store.claims.claim({"default": 1}, lease=30, worker="w")
    await hf.store.holds.hold(claims, Held.GUARD)
    async with hf.worker():
        await until(lambda: _is_over(hf, claims[0].job_id), seconds=20)


async def test_a_probe_that_is_given_back_unrun_is_not_waited_for(hf, provider):
    guard, ask, _ = guarded(hf, provider, breaker=Breaker(failures=1, cooldown=0.01, permits=1))

    @hf.task(name="long")
    async def long() -> None:
        await asyncio.sleep(1.5)

    provider.failure = ConnectionRefusedError(111, "no")
    with pytest.raises(ConnectionRefusedError):
        await guard.call(provider.ask)
    provider.failure = None
    async with hf.worker({"default": 1}):
        handles = [
            await long.enqueue(),
            *await ask.enqueue_many([{}] * 3),
        ]  # it waits behind the long one, and is given back
        await all_done(handles)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_who_has_no_limiter_obeys_too(hf, provider):
    _, ask, _ = guarded(hf, provider, breaker=Breaker(failures=5))
    provider.failure = TooMany(30)
    async with hf.worker():
        await ask.enqueue_many([{}] * 3)
        await until(lambda: len(provider.times) == 3)
        await asyncio.sleep(1)
    assert len(provider.times) == 3


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_call_without_a_key_slows_down_the_key_of_its_job(hf, provider):
    guard, ask, _ = guarded(hf, provider, limiter=Limiter(rate=50, floor=0.1, per="user:{user}"))
    provider.failure = TooMany(30)
    async with hf.worker():
        await ask.enqueue(7)
        await until(lambda: guard.limiter.rate(key="user:7") < 50)
        await asyncio.sleep(0.5)
    assert len(provider.times) == 1
    assert guard.limiter.rate() == 50


async def test_what_no_gate_saw_is_not_charged_either(hf, provider):
    guard = hf.guard("api", breaker=Breaker(failures=1, cooldown=0.3, permits=1))

    @hf.task(retry=FEW)
    async def ask() -> None:
        await guard.call(provider.ask)

    with pytest.raises(ConnectionRefusedError):
        provider.failure = ConnectionRefusedError(111, "no")
        await guard.call(provider.ask)
    provider.failure = None
    async with hf.worker():
        handle = await ask.enqueue()
        await handle.result(20)
    assert (await handle.record()).attempt == 1


async def test_a_real_failure_is_charged(hf):
    guard = hf.guard("api", breaker=Breaker(failures=10))

    @hf.task(guard=guard, retry=FEW)
    async def fail() -> None:
        raise ValueError("no")

    async with hf.worker():
        handle = await fail.enqueue()
        await until(lambda: _is(handle, JobState.DEAD))
    assert (await handle.record()).attempt == 2


async def _is(handle, state):
    return (await handle.record()).state is state


async def test_a_gate_that_fails_keeps_no_job(hf, provider, monkeypatch):
    guard, ask, _ = guarded(hf, provider, limiter=Limiter(rate=100))
    monkeypatch.setattr(Limiter, "reserved", lambda *_: 1 / 0)
    async with hf.worker():
        handle = await ask.enqueue()
        await until(lambda: hf.store.holds.gated())
        monkeypatch.undo()
        assert await handle.result(10) == 0
    assert guard.limiter.rate() == 100


async def test_plain_functions_too(hf, provider):
    guard = hf.guard("api", limiter=Limiter(rate=0.01, burst=1))

    @hf.task(guard=guard)
    def ask() -> float:
        return guard.call_sync(monotonic)

    async with hf.worker():
        assert await (await ask.enqueue()).result(10)


async def test_a_worker_that_leaves_puts_back_what_waits_at_the_gate(hf, provider):
    _, ask, _ = guarded(hf, provider, limiter=Limiter(rate=0.01, burst=1))
    async with hf.worker():
        handles = await ask.enqueue_many([{}] * 30)
    records = [await handle.record() for handle in handles]
    assert all(record.state in (JobState.QUEUED, JobState.SUCCEEDED) for record in records)
    assert all(record.attempt == 0 for record in records if record.state is JobState.QUEUED)


def test_what_is_no_guard_is_refused(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}")
    with pytest.raises(UsageError, match=r"guard is what hf\.guard"):

        @hf.task(guard="stripe")
        async def one() -> None: ...

    with pytest.raises(
        UsageError, match=r"is per user, and the task has no argument 'user'\. There are: name"
    ):

        @hf.task(guard=hf.guard("api", limiter=Limiter(rate=1, per="{user}")))
        async def two(name: str) -> None: ...


async def test_a_guard_that_is_not_shared_gates_too(hf, provider):
    guard = Guard("mine", bulkhead=Bulkhead(1), limiter=Limiter(rate=100))

    @hf.task(guard=guard)
    async def ask() -> None:
        await guard.call(provider.ask)

    async with hf.worker():
        await all_done(await ask.enqueue_many([{}] * 5))
    assert len(provider.times) == 5


# --- a full bulkhead ---


async def test_who_finds_the_bulkhead_full_is_held_and_does_not_begin(hf):
    """Each was begun, refused and put off by a second, again and again, while permits lay idle."""
    guard, begun, may_end = hf.guard("api", bulkhead=Bulkhead(2)), [], asyncio.Event()

    @hf.task(guard=guard)
    async def ask(user: int) -> None:
        begun.append(user)
        await guard.call(may_end.wait)

    @hf.task
    async def other() -> str:
        return "done"

    async with hf.worker(queues={"default": 10}):
        jobs = await ask.enqueue_many([{"user": user} for user in range(12)])
        await until(lambda: _are_held(hf, 10))
        assert await (await other.enqueue()).result(5) == "done"
        assert begun == [0, 1]
        may_end.set()
        await all_done(jobs)
    assert sorted(begun) == list(range(12))


async def _are_held(hf, number):
    return sum(each.number for each in await hf.store.holds.gated()) == number


async def test_each_worker_lets_go_of_what_its_own_bulkhead_has_room_for(hf):
    full, free = (Guard("api", bulkhead=Bulkhead(3, waiting=1)) for _ in range(2))
    await hf.store.jobs.enqueue([NewJob(id=new_id(), task="ask", guard="api") for _ in range(9)])
    await hf.store.holds.hold(await hf.store.claims.claim({"default": 9}, lease=60, worker="w"), Held.GUARD)
    while full.bulkhead.try_acquire():
        pass
    one, two = (
        Releases(hf.store, lambda guard=guard: [guard], ["ask"], owner=str(guard)) for guard in (full, free)
    )
    assert (await one._look(), await _ready(hf)) == (True, 1)  # one may wait
    assert (await two._look(), await _ready(hf)) == (True, 4)
    full.bulkhead.release()
    assert (await one._look(), await _ready(hf)) == (True, 3)  # and one that may end by the next look


async def _ready(hf):
    return len(await hf.store.claims.claim({"default": 9}, lease=60, worker="w"))


# --- tasks that do not call their guard ---


async def test_a_task_that_never_calls_its_guard_does_not_keep_it_half_open(hf):
    guard = hf.guard("api", breaker=Breaker(failures=1, cooldown=0.1, permits=3))
    guard.breaker.hold_open()
    guard.breaker.let_go()  # half open, and nobody will ever call

    @hf.task(guard=guard)
    async def only_gated() -> None: ...

    async with hf.worker():
        await all_done(await only_gated.enqueue_many([{}] * 4))
        assert guard.breaker.state is State.CLOSED


async def test_who_fails_without_a_call_has_failed_by_himself(hf):
    guard = hf.guard("api", breaker=Breaker(failures=1, cooldown=0.1, permits=1))
    guard.breaker.hold_open()
    guard.breaker.let_go()

    @hf.task(guard=guard, retry=FEW)
    async def fail() -> None:
        raise RuntimeError("a mistake of its own")

    async with hf.worker():
        handle = await fail.enqueue()
        await until(lambda: _is(handle, JobState.DEAD))
    assert (await handle.record()).attempt == 2


# --- tasks that make several calls at once ---


async def _asked_at_once(guard, provider, number):
    async with asyncio.TaskGroup() as group:
        for _ in range(number):
            group.create_task(guard.call(provider.ask))


async def test_several_calls_that_are_refused_together_are_not_charged(hf, provider):
    guard = hf.guard("api", breaker=Breaker(failures=1, cooldown=60))

    @hf.task(retry=FEW)
    async def ask() -> None:
        tries.append(1)
        await asyncio.gather(*(guard.call(provider.ask) for _ in range(3)), return_exceptions=False)

    @hf.task(retry=FEW)
    async def ask_in_group() -> None:
        tries.append(1)
        await _asked_at_once(guard, provider, 3)

    tries = []
    guard.breaker.hold_open()
    async with hf.worker():
        handles = [await ask.enqueue(), await ask_in_group.enqueue()]
        await until(lambda: len(tries) >= 6)
        records = [await handle.record() for handle in handles]
        guard.breaker.reset()
        await all_done(handles)
    assert all(record.attempt <= 1 for record in records)
    assert [(await handle.record()).attempt for handle in handles] == [1, 1]


async def test_one_that_has_really_failed_among_those_refused_is_charged(hf):
    guard = hf.guard("api", breaker=Breaker(failures=1, cooldown=60))
    guard.breaker.hold_open()

    async def mistake():
        raise RuntimeError("a mistake of its own")

    @hf.task(retry=FEW)
    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(mistake())
            group.create_task(guard.call(mistake))

    async with hf.worker():
        handle = await both.enqueue()
        await until(lambda: _is(handle, JobState.DEAD))
    assert (await handle.record()).attempt == 2


@pytest.mark.parametrize("permits", [1, 2])
async def test_a_task_of_several_calls_at_once_finds_out_too(hf, provider, permits):
    """Those that found no permit were refused, and their group cancelled the probe: the breaker never closed."""
    guard = hf.guard("api", breaker=Breaker(failures=1, cooldown=0.2, permits=permits))

    async def slow():
        await asyncio.sleep(0.05)
        await provider.ask()

    @hf.task(guard=guard, retry=FEW)
    async def ask() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(guard.call(slow))

    guard.breaker.hold_open()
    async with hf.worker():
        handle = await ask.enqueue()
        await until(lambda: hf.store.holds.gated())
        provider.failure = ConnectionRefusedError(111, "no")
        guard.breaker.let_go()
        await until(lambda: len(provider.times) >= 2)
        provider.failure = None
        await handle.result(10)
    assert (await handle.record()).attempt == 1
    assert guard.breaker.state is State.CLOSED


# --- deadlines ---


async def test_the_deadline_goes_with_the_job(hf):
    @hf.task
    async def left(job: Job) -> float:
        return time_left()

    async with hf.worker():
        with deadline(30):
            handle = await left.enqueue()
        assert 20 < await handle.result(10) <= 30


@pytest.mark.parametrize("wrong_by", [-3600, 3600])
async def test_a_wrong_clock_of_who_enqueues_moves_no_deadline(hf, monkeypatch, wrong_by):
    @hf.task
    async def left() -> float:
        return time_left()

    @hf.task
    async def child() -> str:
        return (await left.enqueue()).id

    true = time.time
    monkeypatch.setattr("holdfast.kernel.reality.Reality.now", lambda _: true() + wrong_by)
    with deadline(30):
        handles = [await left.enqueue(), await child.enqueue()]
    async with hf.worker():
        assert 15 < await handles[0].result(10) <= 30
        grandchild = await handles[1].result(10)
        await until(lambda: _is_over(hf, grandchild))
    assert 15 < float((await hf.jobs.get(grandchild)).result) <= 30


async def test_nothing_starts_after_its_deadline(hf):
    ran = []

    @hf.task
    async def late() -> None:
        ran.append(1)

    with deadline(0.01):
        handle = await late.enqueue()
    await asyncio.sleep(0.05)
    async with hf.worker():
        with pytest.raises(JobCancelled, match="expired"):
            await handle.result(10)
    assert not ran


async def test_a_call_after_the_deadline_ends_the_job(hf, provider):
    guard = hf.guard("api", timeout=5)

    @hf.task(retry=FEW)
    async def slow() -> None:
        await asyncio.sleep(0.3)
        with pytest.raises(DeadlinePassed):
            await guard.call(provider.ask)
        await guard.call(provider.ask)

    async with hf.worker():
        with deadline(0.2):
            handle = await slow.enqueue()
        with pytest.raises(JobCancelled, match="its deadline has passed"):
            await handle.result(10)
    assert not provider.times


# --- bursts ---


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_burst_waits_for_quota_and_not_for_what_is_down(hf, provider, is_open):
    guard, ask, _ = guarded(
        hf, provider, limiter=Limiter(rate=10, burst=2), breaker=Breaker(failures=1, cooldown=60)
    )
    if is_open:
        guard.breaker.hold_open()
    handles = await ask.enqueue_many([{}] * 5)
    idle = asyncio.Event()
    async with hf.worker() as service:
        service.worker.on_idle = idle.set
        async with asyncio.timeout(15):
            await idle.wait()
        over = [(await handle.record()).state is JobState.SUCCEEDED for handle in handles]
    assert all(over) is not is_open
