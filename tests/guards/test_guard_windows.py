"""Windows against a naive model that keeps every call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.guards.windows import PARTS, CountWindow, TimeWindow

results = st.tuples(st.booleans(), st.booleans())
steps = st.lists(st.tuples(st.floats(0, 40), results), max_size=60)


@given(steps, st.sampled_from([0.5, 1.0, 10.0, 60.0]))
def test_a_window_of_time_counts_what_is_in_its_ten_parts(calls, seconds):
    window, kept, now = TimeWindow(seconds), [], 0.0
    width = seconds / PARTS
    for pause, (failed, slow) in calls:
        now += pause
        window.add(now, failed, slow)
        kept.append((now // width, failed, slow))
        inside = [each for each in kept if each[0] > now // width - PARTS]
        expected = (len(inside), sum(each[1] for each in inside), sum(each[2] for each in inside))
        assert window.totals(now) == expected


@given(steps, st.integers(1, 10))
def test_a_window_of_calls_counts_the_last_ones(calls, size):
    window, kept = CountWindow(size), []
    for _, (failed, slow) in calls:
        window.add(0.0, failed, slow)
        kept.append((failed, slow))
        last = kept[-size:]
        assert window.totals(0.0) == (len(last), sum(each[0] for each in last), sum(each[1] for each in last))


def test_a_window_of_time_is_empty_when_its_time_has_passed():
    window = TimeWindow(10)
    window.add(0.0, True, True)
    assert window.totals(8.9) == (1, 1, 1)
    assert window.totals(10.0) == (0, 0, 0)
    assert window.totals(10_000.0) == (0, 0, 0)


@pytest.mark.parametrize("window", [TimeWindow(10), CountWindow(3)])
def test_a_cleared_window_is_like_a_new_one(window):
    for _ in range(5):
        window.add(1.0, True, True)
    window.clear()
    assert window.totals(1.0) == (0, 0, 0)
    window.add(2.0, False, False)
    assert window.totals(2.0) == (1, 0, 0)


def test_a_thread_that_was_overtaken_does_not_make_the_window_forget():
    """It looked at the clock before the one who counted first: the newest part was begun anew."""
    window = TimeWindow(10)
    for now in (9.99, 10.01, 9.99, 10.02):
        window.add(now, True, False)
    assert window.totals(10.02) == (4, 4, 0)
    assert window.totals(9.98) == (4, 4, 0)
