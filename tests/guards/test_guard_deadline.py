"""Deadlines: carried inside, never made longer, and told to others in seconds."""

from __future__ import annotations

import pytest

from holdfast.guards import deadline, parse_deadline, render_deadline, time_left
from holdfast.kernel.errors import UsageError


def test_there_is_none_until_someone_says_so(clock):
    assert time_left() is None
    assert render_deadline() is None


def test_the_earlier_one_counts_and_the_outer_one_comes_back(clock):
    with deadline(10):
        with deadline(20):
            assert time_left() == 10
        with deadline(3):
            clock.advance(1)
            assert time_left() == 2
        assert time_left() == 9


def test_what_is_over_is_over(clock):
    with deadline(1):
        clock.advance(5)
        assert time_left() == 0
        assert render_deadline() == "0.000"


def test_work_that_outlives_the_call_has_none(clock):
    with deadline(1):
        with deadline(None):
            assert time_left() is None
        assert time_left() == 1


def test_a_wall_clock_that_is_set_changes_nothing(clock):
    with deadline(10):
        clock.skew(-3600)
        assert time_left() == 10


def test_it_travels_in_a_header(clock):
    with deadline(4.75):
        text = render_deadline()
    assert text == "4.750"
    assert parse_deadline(text) == 4.75
    assert parse_deadline(None) is None


@pytest.mark.parametrize(
    "text", ["", "-1", "nan", "inf", "1e3", "5s", "\uff11\uff12", "0x10", "9" * 5000, "1.2.3", "+5", "1_0"]
)
def test_a_header_that_cannot_be_read_is_ignored_with_a_note(text, notes):
    assert parse_deadline(text) is None
    assert [name for name, _ in notes] == ["deadline.ignored"]


def test_a_header_cannot_say_more_than_a_day():
    assert parse_deadline("999999999") == 86_400
    assert parse_deadline(" 7 ") == 7


@pytest.mark.parametrize("seconds", [-1, float("nan"), "5", True])
def test_a_bad_deadline_is_refused(seconds):
    with pytest.raises(UsageError, match="deadline must be"), deadline(seconds):
        pass
