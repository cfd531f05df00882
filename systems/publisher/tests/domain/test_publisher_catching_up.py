"""What is made up for after an outage: the newest of a day, apart from each other, and the rest is let go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from publisher.domain.catching_up import APART, LATE, LET_GO, MOST, plan
from publisher.domain.rules import Slot

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)


def ago(minutes, posts=1):
    return Slot(NOW - timedelta(minutes=minutes), posts)


def test_what_is_on_time_keeps_its_time():
    made = plan([ago(10), ago(0, 2), ago(-4)], NOW)
    assert [(each.nominal, each.wished, each.is_missed) for each in made.planned] == [
        (NOW - LATE, (NOW - LATE,), False), (NOW, (NOW, NOW), False), (NOW + timedelta(minutes=4), (NOW + timedelta(minutes=4),), False),
    ]  # fmt: skip
    assert made.let_go == ()


def test_what_was_missed_goes_out_apart():
    made = plan([ago(300, 2), ago(200), ago(3)], NOW)
    assert [(each.wished, each.is_missed) for each in made.planned] == [
        ((NOW, NOW + APART), True), ((NOW + 2 * APART,), True), ((NOW - timedelta(minutes=3),), False),
    ]  # fmt: skip


def test_what_is_older_than_a_day_is_let_go():
    made = plan([ago(1441), ago(1440)], NOW)
    assert [each.nominal for each in made.planned] == [NOW - LET_GO]
    assert made.let_go == (ago(1441),)


def test_the_newest_are_made_up_for():
    made = plan([ago(600, 40), ago(500, 40), ago(400)], NOW)
    assert [len(each.wished) for each in made.planned] == [7, 40, 1]
    assert made.let_go == (ago(600, 33),)


@given(
    st.lists(
        st.tuples(st.integers(-5, 5_000), st.integers(1, 100)), max_size=60, unique_by=lambda each: each[0]
    )
)
def test_every_post_is_planned_or_let_go_and_none_comes_in_a_burst(told):
    due = [ago(*each) for each in sorted(told, reverse=True)]
    made = plan(due, NOW)
    planned, gone = (sum(len(each.wished) for each in made.planned), sum(slot.posts for slot in made.let_go))
    assert planned + gone == sum(slot.posts for slot in due)
    missed = sorted(at for each in made.planned if each.is_missed for at in each.wished)
    assert len(missed) <= MOST
    assert all(later - earlier >= APART for earlier, later in pairwise(missed))
    assert all(at >= NOW for at in missed)
    assert [each.nominal for each in made.planned] == sorted({each.nominal for each in made.planned})
