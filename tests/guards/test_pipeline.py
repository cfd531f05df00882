"""The pipeline: its order, and what each part does to the others."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys

import pytest
from virtual import virtually

from holdfast.guards import (
    Backoff,
    Breaker,
    BreakerOpen,
    Budget,
    Bulkhead,
    BulkheadFull,
    DeadlinePassed,
    Fault,
    Guard,
    Limiter,
    RateLimited,
    State,
    TimedOut,
    carrying,
    deadline,
    time_left,
)
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UsageError

THREE = Backoff(attempts=3, first=2, ceiling=60)  # with the chance of the middle: waits of 1 and 2 seconds


class Throttled(Exception):
    status_code = 429

    def __init__(self, retry_after=None):
        super().__init__("429")
        self.retry_after = retry_after


class Service:
    """Answers as the test says, and keeps when it was called."""

    def __init__(self, *answers, takes=0.0):
        self.answers, self.takes, self.called = list(answers), takes, []

    async def __call__(self, *args, **kwargs):
        self.called.append(round(monotonic(), 6))
        if self.takes:
            await asyncio.sleep(self.takes)
        answer = self.answers.pop(0) if self.answers else "fine"
        if isinstance(answer, BaseException) or (
            isinstance(answer, type) and issubclass(answer, BaseException)
        ):
            raise answer
        return answer


def run(guard, service, error=None):
    """The result and the moments of its calls."""

    async def main():
        if error is None:
            return await guard.call(service)
        with pytest.raises(error):
            await guard.call(service)
        return None

    return virtually(main), service.called


# --- plain ---


async def test_a_guard_with_nothing_is_the_call_itself():
    async def add(one, *, two):
        return one + two

    assert await Guard("x").call(add, 1, two=2) == 3
    with pytest.raises(ConnectionError):
        await Guard("x").call(Service(ConnectionError))


async def test_any_awaitable_will_do():
    loop = asyncio.get_running_loop()

    def future():
        made = loop.create_future()
        loop.call_soon(made.set_result, 5)
        return made

    assert await Guard("x").call(future) == 5
    assert await Guard("x", timeout=5).call(future) == 5
    with pytest.raises(TimedOut):
        await Guard("x", timeout=0.001).call(loop.create_future)


async def test_a_plain_function_is_refused_on_a_loop():
    with pytest.raises(UsageError, match=r"is no async function: it has run and returned 5\. Use call_sync"):
        await Guard("x").call(lambda: 5)
    with pytest.raises(UsageError, match="would block the event loop"):
        Guard("x").call_sync(lambda: 5)


# --- timeout and deadline ---


def test_an_attempt_is_cut_off_after_its_timeout():
    service = Service(takes=60)
    assert run(Guard("x", timeout=5), service, TimedOut) == (None, [0])


def test_timeouts_are_tried_again_until_the_deadline():
    service = Service(takes=60)

    async def main():
        with pytest.raises(TimedOut):
            await Guard("x", timeout=5, deadline=8, retry=THREE).call(service)
        return monotonic()

    assert (virtually(main), service.called) == (8, [0, 6])


def test_no_attempt_starts_that_would_begin_after_the_deadline(notes):
    service = Service(ConnectionError, ConnectionError)
    assert run(Guard("x", deadline=2.5, retry=THREE), service, ConnectionError)[1] == [0, 1]
    assert notes[-1][1]["reason"] == "deadline"


def test_a_deadline_from_outside_counts_and_nothing_is_called_after_it():
    async def main():
        guard, service = Guard("x", deadline=60), Service()
        with deadline(5):
            await asyncio.sleep(6)
            with pytest.raises(DeadlinePassed, match="x: the deadline has passed"):
                await guard.call(service)
        assert service.called == []
        await guard.call(service)

    virtually(main)


def test_guards_inside_have_no_more_time_than_the_attempt_around_them():
    async def main():
        inner, outer, seen = Guard("inner", timeout=60), Guard("outer", timeout=5, deadline=20), []

        async def works():
            seen.append(time_left())
            await asyncio.sleep(1)
            await inner.call(looks)

        async def looks():
            seen.append(time_left())

        await outer.call(works)
        assert time_left() is None
        return seen

    assert virtually(main) == [5, 4]


def test_an_own_timeout_error_of_the_call_is_left_as_it_is():
    service = Service(TimeoutError("its own"))

    async def main():
        with pytest.raises(TimeoutError, match="its own"):
            await Guard("x", timeout=5).call(service)

    virtually(main)


# --- retry ---


def test_transient_faults_are_tried_again_with_growing_waits():
    service = Service(ConnectionRefusedError, ConnectionError)
    assert run(Guard("x", retry=THREE), service) == ("fine", [0, 1, 3])


def test_attempts_are_runs_and_the_last_error_is_raised():
    service = Service(ConnectionError(1), ConnectionError(2), ConnectionError(3))
    assert run(Guard("x", retry=THREE), service, ConnectionError)[1] == [0, 1, 3]


@pytest.mark.parametrize("error", [ValueError, TypeError, KeyError])
def test_a_mistake_is_not_tried_again(error):
    assert run(Guard("x", retry=THREE), Service(error), error)[1] == [0]


def test_never_is_never():
    patient = Backoff(attempts=3, never=(ConnectionError,))
    assert run(Guard("x", retry=patient), Service(ConnectionError), ConnectionError)[1] == [0]


def test_the_classifier_can_be_replaced():
    guard = Guard("x", retry=THREE, classify=lambda error: Fault.TRANSIENT)
    assert run(guard, Service(ValueError)) == ("fine", [0, 1])


def test_what_nobody_knows_is_not_repeated_when_that_would_harm():
    guard = Guard("x", retry=THREE, repeatable=False)
    assert run(guard, Service(TimeoutError), TimeoutError)[1] == [0]
    assert run(guard, Service(ConnectionRefusedError(111, "refused")))[1] == [0, 1]
    assert run(guard.keyed(repeatable=True), Service(TimeoutError))[1] == [0, 1]


def test_retry_after_is_waited_for():
    assert run(Guard("x", retry=THREE), Service(Throttled(20)))[1] == [0, 22]  # and a tenth: never earlier
    assert run(Guard("x", retry=THREE), Service(Throttled("garbage")))[1] == [0, 1]
    assert run(Guard("x", retry=THREE), Service(Throttled(-1)))[1] == [0, 1]


def test_a_pause_longer_than_the_ceiling_is_left_to_the_caller(notes):
    assert run(Guard("x", retry=THREE), Service(Throttled(10**9)), Throttled)[1] == [0]
    assert notes[-1][1]["reason"] == "pause"


def test_the_budget_ends_retries(notes):
    guard = Guard("x", retry=THREE, budget=Budget(retries=1, ratio=0.0))
    assert run(guard, Service(ConnectionError, ConnectionError), ConnectionError)[1] == [0, 1]
    assert notes[-1][1]["reason"] == "budget"
    assert run(guard, Service(ConnectionError), ConnectionError)[1] == [0]


def test_a_retry_after_a_timeout_costs_two():
    budget = Budget(retries=3, ratio=0.0)
    run(Guard("x", timeout=1, retry=THREE, budget=budget), Service(takes=5), TimedOut)
    assert budget.tokens == 1


# --- breaker, limiter and bulkhead in the pipeline ---


def test_each_attempt_is_recorded_and_an_open_breaker_ends_the_retries():
    breaker = Breaker(failures=2, cooldown=60)
    service = Service(ConnectionError("first"), ConnectionError("second"))

    async def main():
        with pytest.raises(ConnectionError, match="second") as raised:
            await Guard("x", retry=THREE, breaker=breaker).call(service)
        assert isinstance(raised.value.__cause__, BreakerOpen)

    virtually(main)
    assert (breaker.name, service.called) == ("x", [0, 1])


def test_an_open_breaker_lets_no_call_through_and_is_not_asked_again():
    async def main():
        breaker, service = Breaker(failures=1), Service()
        breaker.hold_open()
        with pytest.raises(BreakerOpen):
            await Guard("x", retry=THREE, breaker=breaker).call(service)
        return service.called, monotonic()

    assert virtually(main) == ([], 0)


def test_the_breakers_own_classifier_counts_for_the_breaker():
    breaker = Breaker(failures=1, classify=lambda error: Fault.TRANSIENT)
    run(Guard("x", breaker=breaker), Service(ValueError), ValueError)
    assert breaker.record().state is State.OPEN


def test_a_slow_call_is_measured_without_its_wait():
    async def main():
        breaker = Breaker(failures=1, slow=2)
        guard = Guard("x", breaker=breaker, limiter=Limiter(rate=0.2, burst=1))
        for _ in range(3):
            await guard.call(Service(takes=1))
        return breaker.state, monotonic()

    assert virtually(main) == (State.CLOSED, 11)


def test_who_waited_at_the_limiter_does_not_call_through_a_breaker_that_opened_meanwhile():
    async def main():
        breaker, service = Breaker(failures=1, cooldown=60), Service()
        guard = Guard("x", breaker=breaker, limiter=Limiter(rate=0.5, burst=1))
        await guard.call(service)
        waits = asyncio.ensure_future(guard.call(service))
        await asyncio.sleep(1)
        breaker.told_open(30, 1)
        with pytest.raises(BreakerOpen):
            await waits
        return service.called

    assert virtually(main) == [0]


def test_who_waited_too_long_does_not_call_after_his_deadline():
    async def main():
        guard, service = Guard("x", deadline=3, bulkhead=Bulkhead(1, waiting=5)), Service(takes=2.9)
        calls = [asyncio.ensure_future(guard.call(service)) for _ in range(3)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each).__name__ for each in outcomes] == ["str", "TimedOut", "BulkheadFull"]
        assert guard.bulkhead.free == 1
        return service.called

    assert virtually(main) == [0, 2.9]


def test_the_limiter_refuses_what_cannot_be_in_time():
    async def main():
        guard = Guard("x", deadline=1, limiter=Limiter(rate=0.5, burst=1))
        await guard.call(Service())
        with pytest.raises(RateLimited):
            await guard.call(Service())
        return monotonic(), guard.limiter.allowance().retry_after

    assert virtually(main) == (0, 2)


def test_a_throttled_call_slows_the_limiter_down_and_others_wait_too():
    async def main():
        guard = Guard("x", limiter=Limiter(rate=10, burst=1, floor=0.1))
        with pytest.raises(Throttled):
            await guard.call(Service(Throttled(20)))
        service = Service()
        await guard.call(service)
        return guard.limiter.rate(), service.called

    rate, called = virtually(main)
    assert (rate, called) == (pytest.approx(5 / 0.9), [22])


def test_a_full_bulkhead_costs_neither_quota_nor_a_probe():
    async def main():
        breaker = Breaker(failures=1, permits=1, cooldown=1)
        limiter, bulkhead = Limiter(rate=1, burst=1), Bulkhead(1)
        guard = Guard("x", breaker=breaker, limiter=limiter, bulkhead=bulkhead)
        with pytest.raises(ConnectionError):
            await guard.call(Service(ConnectionError))
        await asyncio.sleep(2)
        async with bulkhead:
            for _ in range(5):
                with pytest.raises(BulkheadFull):
                    await guard.call(Service())
        await guard.call(Service())
        return breaker.state, monotonic()

    assert virtually(main) == (State.CLOSED, 2)


def test_who_stood_in_a_line_keeps_to_the_rate_when_it_moves():
    """Those who wait for a permit do not save up quota: after a long call they do not all run at once."""

    async def main():
        guard = Guard("x", limiter=Limiter(rate=2, burst=1), bulkhead=Bulkhead(1, waiting=10))
        slow, quick = Service(takes=10), Service()
        calls = [asyncio.ensure_future(guard.call(slow))]
        await asyncio.sleep(0.1)
        calls += [asyncio.ensure_future(guard.call(quick)) for _ in range(4)]
        await asyncio.gather(*calls)
        return quick.called

    assert virtually(main) == [10, 10.5, 11, 11.5]


def test_standing_in_a_line_costs_no_quota():
    async def main():
        guard = Guard("x", limiter=Limiter(rate=0.01, burst=2), bulkhead=Bulkhead(1, waiting=1))
        service = Service(takes=1)
        await asyncio.gather(guard.call(service), guard.call(service))
        return service.called

    assert virtually(main) == [0, 1]


def test_a_reservation_that_came_with_the_job_is_spent_by_the_first_call():
    async def main():
        guard, service = Guard("x", limiter=Limiter(rate=0.5, burst=1)), Service()
        with carrying(guard.limiter.reserve()):
            await guard.call(service)
            await guard.call(service)
        return service.called

    assert virtually(main) == [0, 2]


def test_keys_pick_the_limiters_key():
    async def main():
        guard, service = Guard("x", limiter=Limiter(rate=1, burst=2, per="user:{user_id}")), Service()
        for user in ("ada", "bob", "ada"):
            await guard.keyed(user).call(service)
        await guard.keyed(user_id="cy", cost=2).call(service)
        await guard.keyed("cy").call(service)
        return service.called

    assert virtually(main) == [0, 0, 0, 0, 1]


# --- the other ways to use it ---


def test_as_a_decorator():
    guard = Guard("x", retry=THREE)
    service = Service(ConnectionError)

    @guard
    async def fetch(page: int, *, size: int = 10) -> tuple[int, int]:
        """Fetches."""
        await service()
        return page, size

    known = inspect if sys.version_info >= (3, 12) else asyncio
    assert known.iscoroutinefunction(fetch)  # as web frameworks ask on each version
    assert (fetch.__name__, fetch.__doc__) == ("fetch", "Fetches.")
    assert virtually(lambda: fetch(2, size=5)) == (2, 5)


def test_as_a_decorator_of_a_plain_function():
    @Guard("x", retry=Backoff(attempts=2, first=0))
    def fetch(pages=[ConnectionError, 7]):  # noqa: B006  it forgets what was fetched
        page = pages.pop(0)
        if page is ConnectionError:
            raise page
        return page

    assert fetch() == 7


def test_a_generator_is_no_call_and_cannot_be_guarded():
    """Its body would run later, and unguarded."""

    def pages():
        yield 1

    async def rows():
        yield 1

    for function in (pages, rows, functools.partial(rows)):
        with pytest.raises(UsageError, match="generator function"):
            Guard("g")(function)


def test_an_object_with_an_async_call_is_an_async_function():
    class Fetch:
        async def __call__(self, page):
            return f"page {page}"

    async def main():
        return await Guard("g")(Fetch())(3)

    assert virtually(main) == "page 3"


@pytest.mark.parametrize("cost", [float("nan"), "3", None, -1, 0, 10**400])
def test_a_cost_that_is_none_is_refused_with_its_value(cost):
    with pytest.raises(UsageError, match="cost must be"):
        Guard("g", limiter=Limiter(rate=10)).keyed(cost=cost)


def test_whether_a_call_may_be_repeated_is_true_or_false():
    with pytest.raises(UsageError, match="True or False, not 'no'"):
        Guard("g").keyed(repeatable="no")


def test_a_block_is_admission_and_deadline():
    async def main():
        breaker, bulkhead = Breaker(failures=1, cooldown=60), Bulkhead(1)
        guard = Guard("x", deadline=5, retry=THREE, breaker=breaker, bulkhead=bulkhead, fallback=str)
        async with guard:
            assert (bulkhead.in_flight, time_left()) == (1, 5)
        assert (bulkhead.in_flight, time_left()) == (0, None)
        with pytest.raises(TimedOut, match="not over within 5 s"):
            async with guard:
                await asyncio.sleep(60)
        assert (monotonic(), breaker.state, bulkhead.free) == (5, State.OPEN, 1)
        with pytest.raises(BreakerOpen):
            async with guard:
                raise AssertionError

    virtually(main)


def test_the_error_of_a_block_is_its_own():
    async def main():
        breaker, bulkhead = Breaker(failures=1), Bulkhead(1)
        guard = Guard("x", breaker=breaker, bulkhead=bulkhead, timeout=5)
        for error in (ValueError, asyncio.CancelledError, TimeoutError):
            with pytest.raises(error) as raised:
                async with guard:
                    raise error
            assert type(raised.value) is error
        return breaker.state, bulkhead.free

    assert virtually(main) == (State.OPEN, 1)


def test_a_keyed_block():
    async def main():
        guard = Guard("x", limiter=Limiter(rate=1, burst=1, per="{user}"))
        for _ in range(2):
            async with guard.keyed("ada"):
                pass
        return monotonic()

    assert virtually(main) == 1


# --- options ---


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout": 0}, "timeout must be from"),
        ({"timeout": "5s"}, "timeout must be a number of seconds, not '5s'"),
        ({"deadline": -1}, "deadline must be from"),
        ({"timeout": 30, "deadline": 20}, "timeout=30, for one attempt, is above deadline=20"),
        ({"retry": 3}, r"retry is a Backoff, such as Backoff\(attempts=3\); not 3"),
        ({"breaker": True}, "breaker is a Breaker"),
        ({"limiter": 10}, "limiter is a Limiter"),
        ({"bulkhead": 10}, r"such as Bulkhead\(10\); not 10"),
        ({"retry": THREE, "budget": 5}, "budget is a Budget"),
        ({"budget": Budget()}, "there are none"),
        ({"classify": "all"}, "classify is a function"),
        ({"repeatable": "no"}, "repeatable is True or False, not 'no'"),
    ],
)
def test_a_bad_option_is_refused_with_its_value(options, words):
    with pytest.raises(UsageError, match=words):
        Guard("x", **options)


def test_an_option_that_does_not_exist_is_an_error():
    with pytest.raises(UsageError, match=r"no option .retries. for Guard. Did you mean .retry.?"):
        Guard("x", retries=3)
    with pytest.raises(UsageError, match="must not be empty"):
        Guard("")
    with pytest.raises(UsageError, match="has no limiter"):
        Guard("x").keyed("ada")
    with pytest.raises(UsageError, match="is a function"):
        Guard("x")(5)
    assert repr(Guard("x")) == "<Guard 'x'>"
    assert Guard("x").name == "x"


@pytest.mark.parametrize(
    "line", [{"limiter": Limiter(rate=0.1, burst=1)}, {"bulkhead": Bulkhead(1, waiting=5)}]
)
def test_a_probe_that_stands_in_a_line_does_not_run_out(line):
    """Its lease is for the call: whoever waits for quota, or for a place, has not called yet."""
    breaker = Breaker(failures=1, cooldown=1, permits=1, lease=2)
    guard = Guard("api", breaker=breaker, **line)

    async def main():
        busy = asyncio.create_task(guard.call(Service(takes=9)))  # has the quota, and the place
        await asyncio.sleep(0)
        with pytest.raises(ConnectionError), breaker:
            raise ConnectionError
        await asyncio.sleep(1)
        probe = asyncio.create_task(guard.call(Service()))
        for _ in range(6):
            await asyncio.sleep(1)
            with pytest.raises(BreakerOpen, match="half-open and its permits are out"):
                await guard.call(Service())
        assert await probe == "fine"
        await busy
        assert breaker.state is State.CLOSED

    virtually(main)
