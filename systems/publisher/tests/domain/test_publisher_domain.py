"""The publisher's rules, without any I/O: moves, times in zones, choices, defaults, and what answers mean."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from publisher.domain.choosing import Draft, Order, choose, jittered
from publisher.domain.defaults import Default, When, apply
from publisher.domain.failures import Answer, Call, Kind, verdict
from publisher.domain.posts import Details, Maturity, for_sale, missing, tags
from publisher.domain.prices import Preset
from publisher.domain.rules import Agreement, DailyQuota, FixedTime, Interval, Slot, slots
from publisher.domain.states import MOVES, State, may_move, sources

ZURICH, KOLKATA, YORK = ZoneInfo("Europe/Zurich"), ZoneInfo("Asia/Kolkata"), ZoneInfo("America/New_York")
ANY, ALL = Agreement.ANY, Agreement.ALL


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


def local(found, zone):
    return [slot.at.astimezone(zone).strftime("%d %H:%M") for slot in found]


# --- states ---


def test_only_the_moves_that_are_named_are_allowed():
    allowed = {
        (before, after) for before, after in itertools.product(State, State) if may_move(before, after)
    }
    assert allowed == {(before, after) for before, afters in MOVES.items() for after in afters}
    assert not MOVES[State.PUBLISHED]
    assert (State.UNKNOWN, State.PUBLISHING) not in allowed, (
        "what nobody knows is decided before it is tried again"
    )
    assert all((state, state) not in allowed for state in State)


def test_every_state_is_left_and_reached():
    assert {after for afters in MOVES.values() for after in afters} == set(State) - {State.REVIEW}
    assert sources(State.PUBLISHING) == {State.SCHEDULED}


# --- what is missing ---

WHOLE = Details(title="Glass", mature=False, ai_made=False, agreed=True)


def test_a_whole_draft_misses_nothing():
    assert missing(WHOLE, files=1) == []


@pytest.mark.parametrize(
    ("details", "files", "name"),
    [
        (WHOLE, 0, "files"),
        (WHOLE, 3, "files"),
        (Details(**{**vars(WHOLE), "title": "  "}), 1, "title"),
        (Details(**{**vars(WHOLE), "title": "x" * 51}), 1, "title"),
        (Details(**{**vars(WHOLE), "mature": None}), 1, "mature"),
        (Details(**{**vars(WHOLE), "mature": True}), 1, "maturity"),
        (Details(**{**vars(WHOLE), "ai_made": None}), 1, "ai_made"),
        (Details(**{**vars(WHOLE), "agreed": False}), 1, "agreed"),
        (Details(**{**vars(WHOLE), "resolution": 9}), 1, "resolution"),
        (Details(**{**vars(WHOLE), "watermark": True}), 1, "watermark"),
        (Details(**{**vars(WHOLE), "tags": tuple(map(str, range(31)))}), 1, "tags"),
    ],
)
def test_what_is_missing_is_named_with_its_field(details, files, name):
    assert [each.name for each in missing(details, files=files)] == [name]


def test_tags_are_made_as_they_are_taken():
    assert tags(["#Glass orchard", "glass_orchard", "", "?!", "Glass orchard", "été 2026"]) == (
        "Glass_orchard",
        "glass_orchard",
        "été_2026",
    )


def test_what_is_for_sale_is_not_given_away():
    found = for_sale(Details(**{**vars(WHOLE), "free_download": True, "resolution": 0}))
    assert (found.resolution, found.watermark, found.free_download) == (8, True, False)


# --- defaults ---


def test_no_and_zero_are_answers_and_stay():
    details = Details(comments=False, resolution=0)
    found = apply(details, {"comments": Default(True), "resolution": Default(8), "tags": Default(("a",))})
    assert (found.comments, found.resolution, found.tags) == (False, 0, ("a",))


def test_a_default_may_count_always():
    found = apply(
        Details(comments=False, description="mine"),
        {"comments": Default(True, When.ALWAYS), "description": Default("x")},
    )
    assert (found.comments, found.description) == (True, "mine")


def test_a_default_for_no_field_is_refused():
    with pytest.raises(ValueError, match="'title' has no default"):
        apply(Details(), {"title": Default("x")})


def test_maturity_may_be_a_default():
    assert apply(Details(), {"maturity": Default(Maturity.STRICT)}).maturity is Maturity.STRICT


# --- times ---


def test_a_fixed_time_is_one_of_its_zone_in_winter_and_summer():
    rule = FixedTime(time(18))
    assert slots([rule], ZURICH, ANY, utc(2026, 1, 5), utc(2026, 1, 6)) == [Slot(utc(2026, 1, 5, 17), 1)]
    assert slots([rule], ZURICH, ANY, utc(2026, 7, 6), utc(2026, 7, 7)) == [Slot(utc(2026, 7, 6, 16), 1)]
    assert slots([rule], KOLKATA, ANY, utc(2026, 1, 5), utc(2026, 1, 6)) == [Slot(utc(2026, 1, 5, 12, 30), 1)]


@pytest.mark.parametrize(
    ("zone", "day", "clock", "expected"),
    [
        (ZURICH, utc(2026, 3, 28, 23), time(2, 30), utc(2026, 3, 29, 1)),  # skipped: at the end of the gap
        (ZURICH, utc(2026, 10, 24, 22), time(2, 30), utc(2026, 10, 25, 0, 30)),  # twice: the first
        (YORK, utc(2026, 3, 8, 5), time(2, 30), utc(2026, 3, 8, 7)),
        (YORK, utc(2026, 11, 1, 4), time(1, 30), utc(2026, 11, 1, 5, 30)),
        (ZoneInfo("Australia/Lord_Howe"), utc(2026, 10, 3, 13), time(2, 15), utc(2026, 10, 3, 15, 30)),
    ],
)
def test_where_clocks_change_a_time_fires_once(zone, day, clock, expected):
    found = slots([FixedTime(clock)], zone, ANY, day, day + timedelta(hours=23))
    assert [slot.at for slot in found] == [expected]


def test_weekdays_are_those_of_the_zone():
    rule = FixedTime(time(0, 30), frozenset({0}))  # Monday in Kolkata is still Sunday in UTC
    found = slots([rule], KOLKATA, ANY, utc(2026, 11, 14), utc(2026, 11, 21))
    assert [slot.at for slot in found] == [utc(2026, 11, 15, 19)]


def test_an_interval_goes_on_from_its_beginning():
    rule = Interval(90, utc(2026, 11, 19, 8), posts=2)
    found = slots([rule], ZURICH, ANY, utc(2026, 11, 19, 9, 30), utc(2026, 11, 19, 13))
    assert found == [Slot(utc(2026, 11, 19, 11), 2), Slot(utc(2026, 11, 19, 12, 30), 2)]


def test_an_interval_does_not_fire_when_it_begins():
    rule = Interval(60, utc(2026, 11, 19, 8))
    assert slots([rule], ZURICH, ANY, utc(2026, 11, 1), utc(2026, 11, 19, 9)) == [
        Slot(utc(2026, 11, 19, 9), 1)
    ]


@pytest.mark.parametrize("day", [utc(2026, 11, 18, 23), utc(2026, 3, 28, 23), utc(2026, 10, 24, 22)])
def test_a_quota_is_spread_over_the_day(day):
    found = slots([DailyQuota(3)], ZURICH, ANY, day, day + timedelta(hours=22, minutes=59))
    assert len(found) == 3
    gaps = {later.at - earlier.at for earlier, later in itertools.pairwise(found)}
    assert len(gaps) == 1
    assert timedelta(hours=7) < gaps.pop() < timedelta(hours=9)


def test_rules_are_added_up():
    rules = [FixedTime(time(9)), FixedTime(time(9)), DailyQuota(1)]
    found = slots(rules, ZoneInfo("UTC"), ANY, utc(2026, 11, 19), utc(2026, 11, 19, 23))
    assert found == [Slot(utc(2026, 11, 19, 9), 2), Slot(utc(2026, 11, 19, 12), 1)]


def test_all_rules_must_agree():
    day, end, zone = utc(2026, 11, 19), utc(2026, 11, 19, 23, 59), ZoneInfo("UTC")
    times = [FixedTime(time(hour)) for hour in (8, 9, 12, 18)]
    assert local(slots([*times, DailyQuota(2)], zone, ALL, day, end), zone) == ["19 08:00", "19 09:00"]
    apart = Interval(180, day)
    assert local(slots([*times, apart], zone, ALL, day, end), zone) == ["19 08:00", "19 12:00", "19 18:00"]
    burst = [Interval(60, day, posts=3), DailyQuota(4)]
    assert slots(burst, zone, ALL, day, end) == [Slot(utc(2026, 11, 19, 1), 3), Slot(utc(2026, 11, 19, 2), 1)]
    friday = FixedTime(time(8), frozenset({4}))
    assert slots([friday, DailyQuota(2, frozenset({3}))], zone, ALL, day, end + timedelta(days=7)) == []


rules_of_chance = st.lists(
    st.one_of(
        st.builds(FixedTime, st.times().map(lambda each: each.replace(second=0, microsecond=0))),
        st.builds(Interval, st.integers(5, 600), st.just(utc(2026, 3, 1)), st.integers(1, 3)),
        st.builds(DailyQuota, st.integers(1, 10)),
    ),
    min_size=1,
    max_size=3,
)


@settings(deadline=None)
@given(
    rules_of_chance,
    st.sampled_from([ZURICH, KOLKATA, YORK]),
    st.sampled_from(Agreement),
    st.lists(st.integers(1, 6 * 24 * 60 - 1), max_size=5, unique=True),
)
def test_cutting_the_time_anywhere_changes_nothing(rules, zone, agreement, cuts):
    """Whoever looks every five minutes and whoever was down for a day see the same nominal times."""
    begin = utc(2026, 3, 26, 3, 17)
    ends = [begin, *(begin + timedelta(minutes=each) for each in sorted(cuts)), begin + timedelta(days=6)]
    parts = [
        slot
        for after, until in itertools.pairwise(ends)
        for slot in slots(rules, zone, agreement, after, until)
    ]
    whole = slots(rules, zone, agreement, begin, ends[-1])
    assert parts == whole
    assert len({slot.at for slot in whole}) == len(whole)


@pytest.mark.parametrize(
    "make",
    [
        lambda: FixedTime(time(9, 0, 1)),
        lambda: FixedTime(time(9), frozenset({7})),
        lambda: FixedTime(time(9), frozenset()),
        lambda: Interval(4, utc(2026, 1, 1)),
        lambda: Interval(5, utc(2026, 1, 1), posts=101),
        lambda: DailyQuota(0),
    ],
)
def test_rules_that_cannot_be_are_refused(make):
    with pytest.raises(ValueError, match=r"not|is from"):
        make()


# --- choosing ---

POOL = [Draft(f"d{number}", utc(2026, 1, 1 + number)) for number in range(5)]


def test_drafts_are_chosen_in_the_order_that_was_said():
    chance = random.Random(7)
    assert [each.id for each in choose(POOL[::-1], 2, Order.FIFO, chance)] == ["d0", "d1"]
    assert [each.id for each in choose(POOL, 2, Order.LIFO, chance)] == ["d4", "d3"]
    some = choose(POOL, 3, Order.RANDOM, random.Random(7))
    assert len(set(some)) == 3
    assert some == choose(POOL[::-1], 3, Order.RANDOM, random.Random(7))
    assert len(choose(POOL, 9, Order.RANDOM, chance)) == 5


def test_jitter_is_later_and_reaches_both_ends():
    wished, chance = utc(2026, 11, 19, 18), random.Random(1)
    found = {(jittered(wished, 2, 5, chance) - wished).total_seconds() for _ in range(200)}
    assert found == {2, 3, 4, 5}
    for low, high in ((-1, 5), (5, 2), (0, 3601)):
        with pytest.raises(ValueError, match="jitter is from"):
            jittered(wished, low, high, chance)


def test_a_price_is_within_its_preset():
    chance = random.Random(1)
    assert Preset("fixed", 1250, 1250).price(chance) == 1250
    assert {Preset("range", 150, 400).price(chance) for _ in range(100)} == {200, 300, 400}
    for low, high in ((99, 200), (300, 200), (100, 1_000_001)):
        with pytest.raises(ValueError, match="A price is from"):
            Preset("wrong", low, high)


# --- answers ---

OK = {"status": "success"}


@pytest.mark.parametrize(
    ("call", "status", "body", "kind"),
    [
        (Call.PUBLISH, 200, {**OK, "deviationid": "1"}, None),
        (Call.PUBLISH, 200, {"error": "server_error", "status": "error"}, Kind.NOBODY_KNOWS),
        (Call.SUBMIT, 200, {"error": "server_error", "status": "error"}, Kind.PASSING),
        (Call.PUBLISH, 200, None, Kind.NOBODY_KNOWS),
        (Call.SUBMIT, 200, None, Kind.PASSING),
        (Call.PUBLISH, 500, {"error": "server_error", "status": "error"}, Kind.NOBODY_KNOWS),
        (Call.SUBMIT, 500, {"error": "server_error", "status": "error"}, Kind.PASSING),
        (Call.READ, 504, None, Kind.PASSING),
        (Call.PUBLISH, 504, None, Kind.NOBODY_KNOWS),
        (Call.PUBLISH, 401, {"error": "invalid_token", "status": "error"}, Kind.LOGIN),
        (Call.PUBLISH, 403, None, Kind.USER_LIMIT),
        (Call.PUBLISH, 403, {"error": "insufficient_scope", "status": "error"}, Kind.FINAL),
        (Call.PUBLISH, 429, {"error": "user_api_threshold", "status": "error"}, Kind.USER_LIMIT),
        (Call.PUBLISH, 429, {"error": "application_api_threshold", "status": "error"}, Kind.APP_LIMIT),
        (Call.PUBLISH, 429, None, Kind.USER_LIMIT),
        (Call.PUBLISH, 400, {"error": "invalid_request", "error_code": 9, "status": "error"}, Kind.DONE),
        *((Call.PUBLISH, 400, {"error": "invalid_request", "error_code": code, "status": "error"}, Kind.FINAL) for code in range(9)),
        (Call.SUBMIT, 400, {"error": "invalid_request", "error_details": {"title": "too long"}, "status": "error"}, Kind.FINAL),
    ],
)  # fmt: skip
def test_each_answer_means_one_thing(call, status, body, kind):
    found = verdict(call, Answer(status, body))
    assert (None if found is None else found.kind) == kind
    assert found is None or found.reason.endswith(".")


@pytest.mark.parametrize(
    ("call", "kind"),
    [(Call.PUBLISH, Kind.NOBODY_KNOWS), (Call.SUBMIT, Kind.PASSING), (Call.READ, Kind.PASSING)],
)
def test_without_an_answer_only_publishing_is_in_doubt(call, kind):
    assert verdict(call, None).kind is kind


def test_a_refusal_says_what_to_do():
    found = verdict(Call.SUBMIT, Answer(400, {"error_details": {"title": "title is too long"}}))
    assert "title is too long" in found.reason
    assert found.advice
