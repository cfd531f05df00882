"""Whatever is taken, reserved, given back or told: in any T seconds at most rate · T + burst are admitted."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st
from virtual import StillWorld, most_above

from holdfast.guards import Limiter, RateLimited
from holdfast.kernel.world import inhabit

costs = st.sampled_from([1.0, 1.0, 2.0, 0.5])
acts = st.lists(
    st.one_of(
        st.tuples(st.just("take"), costs),
        st.tuples(st.just("reserve"), costs),
        st.tuples(st.just("give_back"), st.integers(0, 5)),
        st.tuples(st.just("pass"), st.sampled_from([0.0, 0.01, 0.1, 0.25, 1.0, 7.0])),
        st.tuples(st.just("throttled"), st.sampled_from([None, 0.0, 0.3, 5.0])),
        st.tuples(st.just("succeeded"), st.none()),
    ),
    max_size=60,
)


def admitted(limiter, clock, history):
    """(moment, cost) of each call that was or will be made."""
    calls, reserved = [], []
    for act, value in history:
        if act == "take" and limiter.try_take(value):
            calls.append((clock.monotonic(), value))
        elif act == "reserve":
            with suppress(RateLimited):
                reserved.append(limiter.reserve(value))
        elif act == "give_back" and value < len(reserved):
            reserved.pop(value).give_back()
        elif act == "pass":
            clock.advance(value)
        elif act == "throttled":
            reserved = [each for each in reserved if limiter.honours(each)]
            calls += [(each.at, each.cost) for each in reserved if each.at <= clock.monotonic()]
            reserved = [each for each in reserved if each.at > clock.monotonic()]
            limiter.throttled(value)
        elif act == "succeeded":
            limiter.succeeded()
    return sorted(calls + [(each.at, each.cost) for each in reserved if limiter.honours(each)])


@given(acts, st.sampled_from([0.5, 1.0, 3.0, 10.0]), st.sampled_from([2.0, 3.0, 10.0]))
@settings(max_examples=400, deadline=None)
def test_a_fixed_rate(history, rate, burst):
    with inhabit(StillWorld()) as clock:
        calls = admitted(Limiter(rate=rate, burst=burst, wait=20), clock, history)
    assert most_above(calls, rate) <= burst + 1e-6


SLOWED_IN_BETWEEN = [
    ("succeeded", None), ("throttled", None), ("reserve", 1.0), ("reserve", 0.5), ("reserve", 1.0), ("succeeded", None),
    ("give_back", 1), ("succeeded", None), ("reserve", 2.0), ("give_back", 0), ("succeeded", None), ("give_back", 0),
    ("succeeded", None), ("reserve", 2.0), ("throttled", 0.3), ("give_back", 1), ("throttled", 0.3), ("reserve", 1.0),
    ("reserve", 1.0), ("give_back", 0), ("reserve", 2.0),
]  # fmt: skip


@example(SLOWED_IN_BETWEEN, 0.5, 2.0, 0.6213)  # what was given back was worth twice what had been taken
@given(acts, st.sampled_from([1.0, 10.0]), st.sampled_from([2.0, 10.0]), st.floats(0, 0.999))
@settings(max_examples=300, deadline=None)
def test_an_adapting_rate_stays_below_its_ceiling(history, rate, burst, chance):
    with inhabit(StillWorld()) as clock:
        clock.chance = chance
        limiter = Limiter(rate=rate, burst=burst, floor=rate / 10, ceiling=rate * 3, wait=20)
        calls = admitted(limiter, clock, history)
        assert rate / 10 - 1e-9 <= limiter.rate() <= rate * 3 + 1e-9
    assert most_above(calls, rate * 3) <= burst + 1e-6


@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from([0.0, 0.05, 0.4])), max_size=80))
@settings(max_examples=200, deadline=None)
def test_each_key_of_a_small_registry_keeps_its_bound(history):
    with inhabit(StillWorld()) as clock:
        limiter, calls = Limiter(rate=2, burst=2, keys=3), {}
        for number, pause in history:
            if limiter.try_take(key=f"k{number}"):
                calls.setdefault(number, []).append((clock.monotonic(), 1.0))
            clock.advance(pause)
            assert len(limiter._registry) <= 3
    assert all(most_above(each, 2) <= 2 + 1e-6 for each in calls.values())
