"""What is told: when something begins, when it has grown, and when it is over; and never because of what nobody could see."""

from __future__ import annotations

import random

import pytest

from holdfast.observe.alerts.changes import MOST, compare
from holdfast.store.alert_records import Looked, Seen


class Told:
    """One look after the other, on a clock that the test turns."""

    def __init__(self, again=3600.0, calm=30.0):
        self.rows, self.now, self.terms = {}, 1000.0, {"again": again, "calm": calm}

    def look(self, *seen, cut=(), after=5.0, dies=False):
        self.now += after
        standing = [row for row in self.rows.values() if row.ended_at is None]
        looked = Looked(tuple(Seen(*each) for each in seen), frozenset(cut))
        changes = compare(standing, looked, now=self.now, **self.terms)
        self.rows |= {row.id: row for row in changes.rows}
        return [(each.state, each.kind, each.cause, each.number) for each in changes.alerts]


def test_what_begins_is_told_once():
    told = Told()
    assert told.look(("dead", "mail", 3)) == [("opened", "dead", "mail", 3)]
    for number in (3, 200, 500):
        assert told.look(("dead", "mail", number)) == []
    assert told.look(("dead", "mail", 500), ("dead", "bill", 1)) == [("opened", "dead", "bill", 1)]


def test_it_is_over_once_it_has_been_quiet_for_a_while():
    told = Told()
    told.look(("dead", "mail", 3))
    assert told.look() == told.look(after=29) == []
    assert told.look(after=1) == [("over", "dead", "mail", 3)]
    assert told.look(after=100) == []
    assert told.look(("dead", "mail", 1)) == [("opened", "dead", "mail", 1)], "another one, with another id"
    assert len(told.rows) == 2


def test_what_flaps_is_one_alert():
    told = Told()
    told.look(("waiting", "mail", 301))
    for _ in range(50):
        assert told.look() == told.look(("waiting", "mail", 302)) == []


def test_it_is_told_again_when_it_has_grown_and_time_has_passed():
    told = Told(again=3600)
    told.look(("dead", "mail", 3))
    assert told.look(("dead", "mail", 3), after=4000) == []
    assert told.look(("dead", "mail", 4)) == [("again", "dead", "mail", 4)]
    assert told.look(("dead", "mail", 9), after=3000) == []
    assert told.look(("dead", "mail", 9), after=600) == [("again", "dead", "mail", 9)]


def test_what_nobody_could_see_is_not_over():
    told = Told(calm=0)
    told.look(("breaker", "stripe", 1), ("login", "user:7", 1), ("dead", "mail", 1))
    assert told.look(("dead", "mail", 1), ("login", "user:7", 1), cut={"breaker"}, after=100) == []
    assert told.look(("dead", "mail", 1), ("breaker", "stripe", 1), cut={None}, after=100) == []
    assert told.look(("login", "user:7", 1), cut={"breaker"}, after=100) == [("over", "dead", "mail", 1)]


def test_many_are_told_in_portions_and_none_is_left_out():
    told, many = Told(calm=0), [("login", f"user:{number}", 1) for number in range(MOST * 2 + 5)]
    heard = [told.look(*many) for _ in range(4)]
    assert [len(each) for each in heard] == [MOST, MOST, 5, 0]
    assert len({cause for each in heard for _, _, cause, _ in each}) == len(many)
    heard = [told.look() for _ in range(4)]
    assert [len(each) for each in heard] == [MOST, MOST, 5, 0]
    assert all(row.ended_at for row in told.rows.values())


def test_nothing_new_writes_nothing():
    told = Told()
    told.look(("dead", "mail", 3))
    standing = list(told.rows.values())
    looked = Looked((Seen("dead", "mail", 3),))
    assert compare(standing, looked, now=2000.0, again=3600, calm=30).rows == ()


@pytest.mark.parametrize("seed", range(50))
def test_whatever_happens_each_alert_opens_once_and_ends_once(seed):
    """Causes come and go, looks are cut short, leaders die before their commit: what was kept and what was told agree."""
    drawn, told = random.Random(seed), Told(again=60, calm=10)
    heard = {cause: [] for cause in "abcd"}

    def look(held, **options):
        before = dict(told.rows)
        found = told.look(*(("login", cause, drawn.randint(1, 9)) for cause in held), **options)
        if options.get("dies"):
            told.rows = before
            return
        for state, _, cause, _ in found:
            heard[cause].append(state)

    for _ in range(200):
        held = {cause for cause in heard if drawn.random() < 0.5}
        found_out = {None} if drawn.random() < 0.1 else set()
        look(held, cut=found_out, after=drawn.choice((1, 5, 20)), dies=drawn.random() < 0.2)
        standing = {row.cause for row in told.rows.values() if row.ended_at is None}
        assert {cause for cause, states in heard.items() if states and states[-1] != "over"} == standing
    look(set(heard), after=5)
    assert all(states[-1] in ("opened", "again") for states in heard.values()), "what holds is told"
    for _ in range(2):
        look(set(), after=20)
    for states in heard.values():
        opened_and_over = [state for state in states if state != "again"]
        assert opened_and_over == ["opened", "over"] * (len(opened_and_over) // 2)
