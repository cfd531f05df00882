"""The rules of admissions: states, deadlines, roles, forms, decisions and money."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import permutations, product
from zoneinfo import ZoneInfo

import pytest
from admissions.domain import deadlines, decisions, forms, ledger, roles, states
from admissions.domain.states import State
from hypothesis import given
from hypothesis import strategies as st

TODAY = date(2026, 11, 19)
WHOLE = forms.Answers(
    "Nguyễn Thị Ánh", "2004-02-29", "+84 91 234 56 78", "12 Hàng Bài, Hà Nội", "I want to study.", True
)


# --- states ---


def test_only_the_moves_that_are_named_are_allowed():
    for before, after in product(State, State):
        assert states.may_move(before, after) == (before in states.sources(after))
    assert not states.may_move(State.WITHDRAWN, State.SUBMITTED)
    assert not states.may_move(State.AWAITING_PAYMENT, State.COMPLETED)


def test_every_state_but_the_first_is_reached():
    assert {after for after in State if states.sources(after)} == set(State) - {State.DRAFT}


@given(st.lists(st.integers(0, 20), max_size=30))
def test_progress_never_falls(choices):
    state, shown = State.DRAFT, 0
    for choice in choices:
        nexts = sorted(states.MOVES[state])
        if not nexts:
            break
        state = nexts[choice % len(nexts)]
        after = states.progress(state, shown)
        assert shown <= after <= 100
        shown = after
    assert states.progress(State.COMPLETED, shown) == 100


# --- deadlines ---


def test_the_last_second_is_in_time():
    window = deadlines.Window(opens_at=100, closes_at=200)
    doors = {at: window.door(at) for at in (99.9, 100, 200, 200.999, 201)}
    assert doors == {99.9: "not_yet", 100: "open", 200: "open", 200.999: "open", 201: "closed"}


def test_grace_is_for_what_was_begun():
    window = deadlines.Window(opens_at=100, closes_at=200, grace=60)
    assert [window.door(at) for at in (201, 260.9, 261)] == ["grace", "grace", "closed"]


@pytest.mark.parametrize(
    ("zone", "local", "expected"),
    [
        ("Asia/Ho_Chi_Minh", "2026-11-30T23:59:59", "2026-11-30T16:59:59"),
        ("Europe/Zurich", "2026-10-25T02:30:00", "2026-10-25T01:30:00"),  # comes twice: the later one
        ("Europe/Zurich", "2026-03-29T02:30:00", "2026-03-29T01:30:00"),  # is skipped
        ("Asia/Kathmandu", "2026-11-30T12:00:00", "2026-11-30T06:15:00"),
    ],
)
def test_a_deadline_is_an_instant_of_the_universitys_zone(zone, local, expected):
    found = deadlines.instant(datetime.fromisoformat(local), ZoneInfo(zone))
    assert datetime.fromtimestamp(found, UTC).replace(tzinfo=None) == datetime.fromisoformat(expected)


def test_terms_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="closes after"):
        deadlines.Window(200, 200)
    with pytest.raises(ValueError, match="grace"):
        deadlines.Window(100, 200, grace=-1)
    with pytest.raises(ValueError, match="without a zone"):
        deadlines.instant(datetime.now(UTC), ZoneInfo("UTC"))


# --- roles ---


def test_applicants_may_apply_and_nothing_else():
    assert roles.TABLE[roles.Role.APPLICANT] == {roles.May.APPLY}
    for role in roles.STAFF:
        assert not roles.may(role, roles.May.APPLY)


def test_money_is_for_finance_and_release_for_administrators():
    assert {role for role in roles.Role if roles.may(role, roles.May.REFUND)} == {"finance", "administrator"}
    assert {role for role in roles.Role if roles.may(role, roles.May.RELEASE_DECISIONS)} == {"administrator"}


def test_everything_is_allowed_to_somebody():
    assert {each for allowed in roles.TABLE.values() for each in allowed} == set(roles.May)


# --- forms ---


def test_a_whole_form_has_nothing_wrong():
    assert forms.wrong(WHOLE, files=1, today=TODAY) == []


@pytest.mark.parametrize(
    ("changes", "files", "field", "key"),
    [
        ({"name": "  "}, 1, "name", "name_missing"),
        ({"name": "x" * 201}, 1, "name", "too_long"),
        ({"birth": ""}, 1, "birth", "birth_missing"),
        ({"birth": "2003-02-29"}, 1, "birth", "birth_wrong"),
        ({"birth": "2020-01-01"}, 1, "birth", "birth_unlikely"),
        ({"birth": "1850-01-01"}, 1, "birth", "birth_unlikely"),
        ({"phone": "call me"}, 1, "phone", "phone_wrong"),
        ({"address": ""}, 1, "address", "address_missing"),
        ({"statement": "too short"}, 1, "statement", "statement_short"),
        ({"statement": "x" * 5001}, 1, "statement", "too_long"),
        ({"declared": False}, 1, "declared", "declared_missing"),
        ({}, 0, "files", "files_missing"),
        ({}, 6, "files", "files_many"),
    ],
)
def test_what_is_wrong_is_named_with_its_field(changes, files, field, key):
    [found] = forms.wrong(replace(WHOLE, **changes), files=files, today=TODAY)
    assert (found.field, found.key) == (field, key)


def test_each_step_tells_of_its_own_fields():
    empty = forms.Answers()
    by_step = {
        step: {each.field for each in forms.wrong(empty, files=0, today=TODAY, step=step)}
        for step in forms.STEPS
    }
    assert by_step == {
        "person": {"name", "birth", "address"},
        "statement": {"statement"},
        "documents": {"files", "declared"},
    }


@pytest.mark.parametrize(
    "name", ["Ada", "Nguyễn", "李小龍", "محمد", "Ωμέγα", "अदिति", "O'Neil-Müller", "Žofie", "이영희", "Ñandú"]
)
def test_names_are_in_any_script(name):
    assert forms.wrong(replace(WHOLE, name=name), files=1, today=TODAY) == []


# --- decisions ---


def test_a_decision_is_checked_by_another_before_it_is_released():
    assert not decisions.may_check("ada", "ada")
    assert decisions.may_check("ada", "bob")
    assert not decisions.may_move(decisions.Stage.DRAFTED, decisions.Stage.RELEASED)
    assert decisions.MOVES[decisions.Stage.RELEASED] == frozenset()


# --- money ---

CHARGE, SECOND, REFUND = ledger.Entry("ch_1", 7500), ledger.Entry("ch_2", 7500), ledger.Entry("re_1", -7500)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], "unpaid"),
        ([CHARGE], "paid"),
        ([CHARGE, CHARGE], "paid"),  # told twice
        ([CHARGE, SECOND], "overpaid"),
        ([CHARGE, SECOND, REFUND], "paid"),  # the refund of a double leaves the paid one
        ([CHARGE, REFUND], "refunded"),
        ([ledger.Entry("ch_1", 2500)], "part"),
    ],
)
def test_paid_is_the_sum_of_the_entries(entries, expected):
    assert {ledger.standing(7500, order) for order in permutations(entries)} == {expected}


def test_three_sources_must_agree():
    assert ledger.disagreements(7500, 7500, 1) == []
    assert len(ledger.disagreements(7500, 15000, 2)) == 2
