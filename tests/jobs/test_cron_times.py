"""`Cron` as programs use it: the times of a span, the next one, over clock changes, and the same ones that a schedule has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

import holdfast
from holdfast import Cron, Holdfast
from holdfast.kernel.errors import UsageError

ZURICH = ZoneInfo("Europe/Zurich")
CLOSING = Cron("0 18 * * 1-5", tz="Europe/Zurich")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(text: str, fold: int = 0) -> datetime:
    """In UTC: Python takes a time that is repeated for equal to none of another zone."""
    return datetime.fromisoformat(text).replace(tzinfo=ZURICH, fold=fold).astimezone(UTC)


def test_weekdays_at_six_in_winter_and_in_summer():
    found = CLOSING.between(local("2026-03-26T00:00"), local("2026-04-01T00:00"))
    assert found == [
        utc("2026-03-26T17:00"),
        utc("2026-03-27T17:00"),
        utc("2026-03-30T16:00"),  # the clock was put forward on Sunday
        utc("2026-03-31T16:00"),
    ]
    assert all(each.tzinfo is UTC for each in found)
    assert {each.astimezone(ZURICH).hour for each in found} == {18}


def test_the_end_belongs_to_the_span_and_the_beginning_does_not():
    at = local("2026-11-19T18:00")
    assert CLOSING.between(at - HOUR, at) == [at]
    assert CLOSING.between(at, at + HOUR) == []
    assert CLOSING.between(at, at) == CLOSING.between(at + HOUR, at - HOUR) == []
    tiny = timedelta(microseconds=1)
    assert CLOSING.between(at - tiny, at + tiny) == [at]
    assert CLOSING.between(at - HOUR, at - tiny) == []


@pytest.mark.parametrize("expression", ["30 2 * * *", "*/15 * * * *", "0 */2 * * *", "0 3 * * *"])
@pytest.mark.parametrize("day", ["2026-03-28", "2026-10-24"])
def test_the_parts_of_a_span_are_the_whole_over_a_clock_change(expression, day):
    cron, begin = Cron(expression, tz="Europe/Zurich"), local(f"{day}T12:00")
    cuts = [begin.astimezone(UTC) + timedelta(minutes=7 * n) for n in range(400)]
    whole = cron.between(cuts[0], cuts[-1])
    assert [moment for after, until in pairwise(cuts) for moment in cron.between(after, until)] == whole
    assert all(left < right for left, right in pairwise(whole))
    walked, after = [], cuts[0]
    while (after := cron.next(after)) <= cuts[-1]:
        walked.append(after)
    assert walked == whole


def test_a_skipped_time_comes_at_the_gaps_end_and_a_repeated_one_once():
    half_past_two = Cron("30 2 * * *", tz="Europe/Zurich")
    assert half_past_two.between(local("2026-03-29T00:00"), local("2026-03-29T12:00")) == [
        local("2026-03-29T03:00")
    ]
    assert half_past_two.between(local("2026-10-25T00:00"), local("2026-10-25T12:00")) == [
        local("2026-10-25T02:30")
    ]
    assert half_past_two.next(local("2026-10-25T02:30", fold=1)) == local("2026-10-26T02:30")
    often = Cron("*/30 * * * *", tz="Europe/Zurich")
    assert len(often.between(local("2026-03-29T00:00"), local("2026-03-30T00:00"))) == 46
    assert len(often.between(local("2026-10-25T00:00"), local("2026-10-26T00:00"))) == 50


def test_bounds_of_a_zone_are_read_as_its_clock_has_them():
    """A bound may itself be a repeated time: `fold` says which of the two."""
    often = Cron("0 * * * *", tz="Europe/Zurich")
    first = datetime(2026, 10, 25, 2, tzinfo=ZURICH)
    second = first.replace(fold=1)
    assert often.next(first) == utc("2026-10-25T01:00") == second.astimezone(UTC)
    assert often.next(second) == utc("2026-10-25T02:00")
    east = timezone(timedelta(hours=9))
    assert CLOSING.next(datetime(2026, 11, 20, 2, 0, tzinfo=east)) == utc("2026-11-20T17:00")


def test_the_next_of_what_is_rare():
    begin = utc("2026-11-19T00:00")
    assert Cron("0 0 29 2 *").next(begin) == utc("2028-02-29T00:00")
    assert Cron("0 0 * 2 MON#5").next(begin) == utc("2044-02-29T00:00")
    assert Cron("@yearly").next(begin) == utc("2027-01-01T00:00")
    assert Cron("@yearly").next(utc("8999-12-31T00:00")) == utc("9000-01-01T00:00")
    with pytest.raises(UsageError, match=r"Cron\('@yearly', tz='UTC'\) does not fire within 50 years"):
        Cron("@yearly").next(utc("9000-06-01T00:00"))


def test_so_many_times_are_refused_that_nobody_wanted_them():
    begin = utc("2026-01-01T00:00")
    minutely = Cron("* * * * *")
    assert len(minutely.between(begin, begin + timedelta(minutes=10_000))) == 10_000
    with pytest.raises(UsageError, match=r"fires more than 10,000 times between 2026-01-01T00:00:00\+00:00"):
        minutely.between(begin, begin + timedelta(minutes=10_001))
    with pytest.raises(UsageError, match="Ask for a shorter span"):
        minutely.between(begin, utc("8999-01-01T00:00"))  # at once, not after a thousand years


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        (
            datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None),
            "is 2026-01-01T00:00:00, without a time zone",
        ),
        ("2026-01-01", "is '2026-01-01'. Pass a datetime with a time zone"),
        (1_767_225_600.0, "is 1767225600.0. Pass a datetime"),
        (None, "is None. Pass a datetime"),
        (
            datetime(1969, 12, 31, tzinfo=UTC),
            "is 1969-12-31T00:00:00+00:00. Pass a time between the years 1970 and 9000",
        ),
        (
            datetime.max.replace(tzinfo=UTC),
            "is 9999-12-31T23:59:59.999999+00:00. Pass a time between the years 1970 and 9000",
        ),
    ],
)
def test_what_is_no_moment_is_refused(moment, told):
    good = utc("2026-01-01T00:00")
    for name, ask in {
        "after": lambda: CLOSING.next(moment),
        "after ": lambda: CLOSING.between(moment, good),
        "until": lambda: CLOSING.between(good, moment),
    }.items():
        with pytest.raises(UsageError) as refused:
            ask()
        assert f"`{name.strip()}` {told}" in str(refused.value)


def test_a_bad_expression_or_zone_is_refused_when_it_is_made():
    with pytest.raises(UsageError, match="cannot be read"):
        Cron("61 * * * *")
    with pytest.raises(UsageError, match="There is no time zone 'Mars'"):
        Cron("* * * * *", tz="Mars")
    with pytest.raises(TypeError):
        Cron("* * * * *", "UTC")  # a name says which is which


def test_two_of_the_same_are_equal():
    assert Cron("* * * * *") == Cron("* * * * *", tz="UTC") != Cron("* * * * *", tz="Europe/Zurich")
    assert len({Cron("* * * * *"), Cron("* * * * *")}) == 1
    assert Cron("* * * * *") != "* * * * *"
    assert holdfast.Cron is Cron
    assert "Cron" in holdfast.__all__


def test_a_schedule_has_the_same_times():
    hf = Holdfast("sqlite:///:never:")

    @hf.cron("30 2 * * *", tz="Europe/Zurich")
    async def tidy() -> None: ...

    schedule = hf._inside.registry.schedules[tidy.name]
    begin = utc("2026-03-27T00:00")
    cron = Cron("30 2 * * *", tz="Europe/Zurich")
    assert schedule.times == cron
    assert schedule.next(begin, 3) == cron.between(begin, begin + 3 * DAY)
