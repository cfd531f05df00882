"""`Limiter(pause=Backoff(…))`: the pause after being throttled without a `Retry-After`; it grows with each one in a row."""

from contextlib import suppress

import pytest

from holdfast import Backoff
from holdfast.guards import Fault, Guard, Limiter
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UsageError

PAUSE = Backoff(first=300, ceiling=2400)


class TooMany(Exception):
    status_code = 429


def made(**options):
    return Limiter(rate=10, pause=PAUSE, pause_jitter=0, **options)


def paused(limiter, key=""):
    return pytest.approx(limiter.record(key=key).paused_for, abs=1e-6)


def next_one(clock, limiter, key=""):
    """Throttled once more, when the pause is over."""
    clock.advance(limiter.record(key=key).paused_for + 1)
    limiter.throttled(key=key)
    return limiter.record(key=key).paused_for


def test_it_grows_with_each_one_in_a_row_up_to_its_ceiling(clock):
    limiter = made()
    assert [round(next_one(clock, limiter)) for _ in range(6)] == [300, 600, 1200, 2400, 2400, 2400]
    assert limiter.record().in_row == 6


def test_a_success_begins_it_anew(clock):
    limiter = made()
    for _ in range(3):
        next_one(clock, limiter)
    clock.advance(2000)
    limiter.succeeded()
    assert limiter.record().in_row == 0
    assert next_one(clock, limiter) == pytest.approx(300)


def test_a_success_that_began_before_does_not(clock):
    limiter = made()
    began = monotonic()
    clock.advance(1)
    limiter.throttled()
    limiter.answered("", None, began, monotonic())
    assert limiter.record().in_row == 1


def test_many_that_were_under_way_together_are_one(clock):
    limiter = made()
    began = monotonic()
    for _ in range(5):
        clock.advance(1)
        limiter.answered("", Fault.THROTTLED, began, monotonic())
    assert limiter.record().in_row == 1
    assert limiter.record().paused_for == pytest.approx(296)


def test_each_key_has_its_own(clock):
    limiter = made(per="user:{user}")
    for _ in range(2):
        next_one(clock, limiter, "user:7")
    assert limiter.record(key="user:7").paused_for == pytest.approx(600)
    limiter.throttled(key="user:8")
    assert limiter.record(key="user:8").paused_for == pytest.approx(300)


def test_what_the_other_side_says_goes_before_and_is_not_counted(clock):
    limiter = made()
    limiter.throttled(20)
    assert (limiter.record().paused_for, limiter.record().in_row) == (pytest.approx(20), 0)
    clock.advance(21)
    assert next_one(clock, limiter) == pytest.approx(300)


def test_without_it_nothing_grows(clock):
    limiter = Limiter(rate=10, pause_jitter=0)
    assert [round(next_one(clock, limiter), 1) <= 0.2 for _ in range(4)] == [True] * 4


def test_it_may_be_longer_than_the_longest_that_others_ask_for(clock):
    limiter = made(longest_pause=10)
    for _ in range(4):
        next_one(clock, limiter)
    assert limiter.record().paused_for == pytest.approx(2400)
    limiter.reset()
    limiter.throttled(1000)
    assert limiter.record().paused_for == pytest.approx(10)


def test_a_restart_goes_on_from_the_record(clock):
    limiter = made()
    for _ in range(2):
        next_one(clock, limiter)
    other = made()
    other.restore(limiter.record(), 100)
    assert other.record().paused_for == pytest.approx(500)
    assert next_one(clock, other) == pytest.approx(1200)


def test_a_key_that_has_a_count_is_not_forgotten_for_another(clock):
    limiter = made(keys=1)
    limiter.throttled(key="a")
    clock.advance(330)
    limiter.try_take(key="b")
    assert limiter.record(key="a").in_row == 1
    clock.advance(700)
    assert limiter.try_take(key="b")
    assert limiter.record(key="a").in_row == 0


async def test_a_guard_counts_the_answers_of_its_calls(clock):
    guard = Guard("api", limiter=made())
    answers = [TooMany(), TooMany(), None, TooMany()]

    async def ask():
        if (answer := answers.pop(0)) is not None:
            raise answer

    found = []
    while answers:
        with suppress(TooMany):
            await guard.call(ask)
        found.append(round(guard.limiter.record().paused_for))
        clock.advance(found[-1] + 1)
    assert found == [300, 600, 0, 300]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (300, r"pause is a Backoff, such as Backoff\(first=300, ceiling=2400\)"),
        (Backoff(first=0, ceiling=10), "The first of pause must be from 0.001"),
        (Backoff(first=10, ceiling=100_000), "The ceiling of pause must be from 0.001 to 86400"),
    ],
)
def test_what_makes_no_sense_is_refused(given, told):
    with pytest.raises(UsageError, match=told):
        Limiter(rate=1, pause=given)
