"""`@hf.task(rate=…)`: so many runs begun a second, in the whole fleet, spread, whatever the task calls."""

import asyncio

import pytest
from test_gate_permits import most_above
from waiting import until

from holdfast import Backoff, Holdfast
from holdfast.guards import Breaker, Limiter
from holdfast.jobs.rates import Rate
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.states import Held, State

FEW = Backoff(attempts=3, first=0.01, ceiling=0.02)


@pytest.fixture
def begun():
    return []


def declared(hf, begun, rate, **options):
    @hf.task(name="send", rate=rate, retry=FEW, **options)
    async def send(user: int = 0) -> None:
        begun.append((monotonic(), user))

    return send


def times(begun, user=None):
    return [moment for moment, whose in begun if user in (None, whose)]


async def all_done(handles, seconds=60):
    for handle in handles:
        await handle.result(seconds)


async def test_runs_are_spread(hf, begun):
    send = declared(hf, begun, 20)
    async with hf.worker():
        await all_done(await send.enqueue_many([{}] * 40))
    assert most_above(times(begun), 20, Rate(20).burst) <= 0.01
    assert max(times(begun)) - min(times(begun)) < 6  # 1.9 s on an idle machine


async def test_what_was_not_used_is_not_made_up_for(hf, begun):
    send = declared(hf, begun, 10 / 3)
    async with hf.worker():
        await asyncio.sleep(1.5)
        await all_done(await send.enqueue_many([{}] * 4))
    gaps = [later - earlier for earlier, later in zip(times(begun), times(begun)[1:], strict=False)]
    assert min(gaps) > 0.2


async def test_it_is_the_rate_of_all_processes(url, begun):
    async with Holdfast(url) as one, Holdfast(url) as other:
        send, _ = declared(one, begun, 20), declared(other, begun, 20)
        async with one.worker(), other.worker():
            await all_done(await send.enqueue_many([{}] * 60))
    assert most_above(times(begun), 20, Rate(20).burst) <= 0.01
    assert max(times(begun)) - min(times(begun)) < 9


async def test_guards_in_redis(tmp_path, valkey, begun):
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Holdfast(url, guards=valkey.url) as hf:
        send = declared(hf, begun, 20)
        async with hf.worker():
            await all_done(await send.enqueue_many([{}] * 20))
    assert most_above(times(begun), 20, Rate(20).burst) <= 0.01


async def test_a_restart_does_not_begin_anew(url, begun):
    """Ten a minute, and a new process after each run."""
    for _ in range(3):
        async with Holdfast(url) as hf:
            send = declared(hf, begun, 10 / 60)
            await send.enqueue_many([{}] * 2)
            async with hf.worker():
                await until(lambda hf=hf: hf.store.holds.gated())
                await asyncio.sleep(0.3)
    assert len(begun) <= 2


async def test_a_rate_for_each_key(hf, begun):
    send = declared(hf, begun, ("user:{user}", 4))
    async with hf.worker():
        began = monotonic()
        handles = await send.enqueue_many([{"user": number % 5} for number in range(40)])
        await all_done(handles)
    assert monotonic() - began < 15  # 1.75 s when all is well; one after the other it would be 10
    for user in range(5):
        assert most_above(times(begun, user), 4, Rate(4).burst) <= 0.01


async def test_who_waits_is_held_uncharged_and_the_reason_names_the_rate(hf, begun):
    send = declared(hf, begun, ("user:{user}", 1 / 60))
    async with hf.worker({"default": 1}):
        handles = await send.enqueue_many([{"user": 7}] * 3)
        await handles[0].result(10)
        await until(lambda: _are_held(hf, 2))
        held = await handles[1].record()
    assert (held.state, held.held, held.guard, held.attempt) == (
        State.QUEUED,
        Held.GUARD,
        "rate:send/user:7",
        0,
    )


async def _are_held(hf, number):
    return sum(each.number for each in await hf.store.holds.gated()) == number


async def test_each_attempt_is_a_run(hf, begun):
    @hf.task(rate=5, retry=FEW)
    async def fail() -> None:
        begun.append((monotonic(), 0))
        raise ValueError("no")

    async with hf.worker():
        handle = await fail.enqueue()
        await until(lambda: len(begun) == 3)
        await until(lambda: _is(handle, State.DEAD))
    assert most_above(times(begun), 5, Rate(5).burst) <= 0.01


async def _is(handle, state):
    return (await handle.record()).state is state


async def test_many_jobs_of_many_keys_are_let_go_together(hf, begun, monkeypatch):
    """Three thousand of a hundred keys: each look lets go of those of all keys, and few of them come too early."""
    send = declared(hf, begun, ("user:{user}", 2))
    await send.enqueue_many([{"user": number % 100} for number in range(3000)])
    opened = []
    open_gates = hf.store.holds.open_gates

    async def counted(numbers):
        found = await open_gates(numbers)
        opened.append(sum(found.values()))
        return found

    monkeypatch.setattr(hf.store.holds, "open_gates", counted)
    async with hf.worker():
        await until(lambda: len(begun) > 300, seconds=60)
        opened.clear()
        first = len(begun)
        await until(lambda: len(begun) > first + 600, seconds=60)  # three seconds, when nothing else runs
    assert len(opened) < 100
    assert sum(opened) < 2 * (len(begun) - first), (sum(opened), len(begun) - first)
    for user in range(0, 100, 7):
        assert most_above(times(begun, user), 2, Rate(2).burst) <= 0.01


async def test_a_guard_without_a_limiter_goes_with_it(hf, begun):
    guard = hf.guard("api", breaker=Breaker(failures=2, cooldown=60))
    send = declared(hf, begun, 50, guard=guard)
    guard.breaker.hold_open()
    async with hf.worker():
        handles = await send.enqueue_many([{}] * 5)
        await until(lambda: _are_held(hf, 5))
        assert not begun
        guard.breaker.let_go()
        guard.breaker.hold_closed()
        await all_done(handles)
    assert most_above(times(begun), 50, Rate(50).burst) <= 0.01


async def test_jobs_from_before_the_task_had_a_rate_keep_to_it(hf, begun):
    send = declared(hf, begun, 10)
    await hf.store.jobs.enqueue([NewJob(id=new_id(), task="send", args="{}") for _ in range(10)])
    async with hf.worker():
        await until(lambda: len(begun) == 10, seconds=30)
    assert most_above(times(begun), 10, Rate(10).burst) <= 0.01
    assert send.declaration.gate.name == "rate:send"


async def test_other_tasks_do_not_wait(hf, begun):
    send = declared(hf, begun, 1 / 60)

    @hf.task
    async def other() -> str:
        return "done"

    async with hf.worker({"default": 2}):
        await send.enqueue_many([{}] * 200)
        began = monotonic()
        assert await (await other.enqueue()).result(10) == "done"
        assert monotonic() - began < 3


# --- what it takes ---


@pytest.fixture
def app(tmp_path):
    return Holdfast(f"sqlite:///{tmp_path / 'x.db'}")


@pytest.mark.parametrize(
    ("rate", "told"),
    [
        ("10/m", r"rate is a number of runs a second, such as 10, or 10 / 60 .*; not '10/m'"),
        (True, "rate is a number of runs a second"),
        (0, "rate must be from 1e-05 to 1e\\+06, not 0"),
        (-1, "rate must be from"),
        (float("nan"), "rate must be from"),
        (("user:{user}",), "rate is a number of runs a second"),
        (("user:{user}", "2"), "rate is a number of runs a second"),
        (("user", 2), "names no argument"),
        (("user:{name}", 2), "names 'name', which is no argument of the task. There are: user"),
        (("user:{user", 2), "cannot be read"),
        ((3, 2), "rate is text such as"),
    ],
)
def test_what_is_no_rate_is_refused(app, rate, told):
    with pytest.raises(UsageError, match=told):

        @app.task(rate=rate)
        async def send(user: int) -> None: ...


def test_two_rates_are_refused(app):
    with pytest.raises(UsageError, match="are two rates for one task"):

        @app.task(rate=3, guard=app.guard("api", limiter=Limiter(rate=3)))
        async def send(user: int) -> None: ...


async def of_a_module(user: int) -> None: ...


def test_a_task_that_is_declared_again_goes_on_with_its_limiter(app):
    """Its module was loaded once more."""
    first, second = (app.task(rate=10)(of_a_module) for _ in range(2))
    assert first is not second
    assert second.declaration.gate.limiter is first.declaration.gate.limiter
    with pytest.raises(UsageError, match=r"was declared with .*10.* start it anew"):
        app.task(rate=20)(of_a_module)
