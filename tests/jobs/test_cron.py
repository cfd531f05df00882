"""Schedules over clock changes: three zones, three years, and any way of cutting the time."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.jobs.cron import check_cron, fires
from holdfast.kernel.errors import UsageError

ZURICH, NEW_YORK, LORD_HOWE = "Europe/Zurich", "America/New_York", "Australia/Lord_Howe"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

# The days on which the local clock jumps: (zone, day, what it shows before and after the jump).
SPRING = [
    (ZURICH, "2025-03-30", "02:00", "03:00"),
    (ZURICH, "2026-03-29", "02:00", "03:00"),
    (ZURICH, "2027-03-28", "02:00", "03:00"),
    (NEW_YORK, "2025-03-09", "02:00", "03:00"),
    (NEW_YORK, "2026-03-08", "02:00", "03:00"),
    (NEW_YORK, "2027-03-14", "02:00", "03:00"),
    (LORD_HOWE, "2025-10-05", "02:00", "02:30"),
    (LORD_HOWE, "2026-10-04", "02:00", "02:30"),
    (LORD_HOWE, "2027-10-03", "02:00", "02:30"),
]
AUTUMN = [
    (ZURICH, "2025-10-26", "03:00", "02:00"),
    (ZURICH, "2026-10-25", "03:00", "02:00"),
    (ZURICH, "2027-10-31", "03:00", "02:00"),
    (NEW_YORK, "2025-11-02", "02:00", "01:00"),
    (NEW_YORK, "2026-11-01", "02:00", "01:00"),
    (NEW_YORK, "2027-11-07", "02:00", "01:00"),
    (LORD_HOWE, "2025-04-06", "02:00", "01:30"),
    (LORD_HOWE, "2026-04-05", "02:00", "01:30"),
    (LORD_HOWE, "2027-04-04", "02:00", "01:30"),
]


def on_day(expression: str, zone: str, day: str) -> list[str]:
    """What the local clock shows at each fire of that local day."""
    midnight = datetime.combine(date.fromisoformat(day), time(), ZoneInfo(zone)).astimezone(UTC)
    moments = fires(expression, zone, midnight - timedelta(seconds=1), midnight + 26 * HOUR)
    local = [moment.astimezone(ZoneInfo(zone)) for moment in moments]
    return [f"{each:%H:%M}" for each in local if each.date().isoformat() == day]


def at(clock: str, minutes: int = 0) -> str:
    return f"{datetime.fromisoformat(f'2000-01-01T{clock}') + minutes * MINUTE:%H:%M}"


def entry(*clocks: str) -> str:
    """A cron entry for these local times, which share their minute or their hour."""
    hours = ",".join(sorted({str(int(clock[:2])) for clock in clocks}))
    minutes = ",".join(sorted({str(int(clock[3:])) for clock in clocks}))
    return f"{minutes} {hours} * * *"


class TestSpring:
    @pytest.mark.parametrize(("zone", "day", "before", "after"), SPRING)
    def test_a_skipped_time_fires_once_at_the_gaps_end(self, zone, day, before, after):
        assert on_day(entry(before), zone, day) == [after]
        assert on_day(entry(at(before, 10)), zone, day) == [after]
        assert on_day(entry(at(before, 10), at(before, 20)), zone, day) == [after]
        assert on_day(entry(at(before, -1)), zone, day) == [at(before, -1)]
        assert on_day(entry(after), zone, day) == [after]

    @pytest.mark.parametrize(("zone", "day", "before", "after"), SPRING)
    def test_it_does_not_fire_twice_where_the_entry_also_names_the_gaps_end(self, zone, day, before, after):
        found = on_day(
            f"{int(before[3:])},{int(after[3:])} {int(before[:2])},{int(after[:2])} * * *", zone, day
        )
        assert found.count(after) == 1
        assert len(found) == len(set(found))

    @pytest.mark.parametrize(("zone", "day", "before", "after"), SPRING)
    def test_stars_in_the_minutes_of_a_named_hour_change_nothing(self, zone, day, before, after):
        found = on_day(f"*/10 {int(before[:2])} * * *", zone, day)
        assert found[0] == after
        assert found == [at(after, 10 * n) for n in range(len(found))]
        assert len(found) == (1 if after.endswith("00") else 3)

    @pytest.mark.parametrize(("zone", "day", "before", "after"), SPRING)
    def test_an_open_hour_follows_real_time(self, zone, day, before, after):
        lost = (
            datetime.fromisoformat(f"2000-01-01T{after}") - datetime.fromisoformat(f"2000-01-01T{before}")
        ) / MINUTE
        assert len(on_day("*/5 * * * *", zone, day)) == 288 - lost / 5
        moments = on_day("*/30 * * * *", zone, day)
        assert after in moments
        assert before not in moments
        assert at(before, 15) not in on_day("*/15 * * * *", zone, day)


class TestAutumn:
    @pytest.mark.parametrize(("zone", "day", "before", "after"), AUTUMN)
    def test_a_repeated_time_fires_once_at_its_first_occurrence(self, zone, day, before, after):
        for clock in (after, at(after, 10), at(after, 20), at(before, -1)):
            assert on_day(entry(clock), zone, day) == [clock]
            hour, minute = map(int, clock.split(":"))
            first = datetime.combine(
                date.fromisoformat(day), time(hour, minute, fold=0), ZoneInfo(zone)
            ).astimezone(UTC)
            assert list(fires(entry(clock), zone, first - HOUR, first + 3 * HOUR)) == [first]
            assert list(fires(entry(clock), zone, first, first + 3 * HOUR)) == []

    @pytest.mark.parametrize(("zone", "day", "before", "after"), AUTUMN)
    def test_the_end_of_the_repetition_fires_once(self, zone, day, before, after):
        assert on_day(entry(before), zone, day) == [before]

    @pytest.mark.parametrize(("zone", "day", "before", "after"), AUTUMN)
    def test_an_open_hour_follows_real_time(self, zone, day, before, after):
        won = (
            datetime.fromisoformat(f"2000-01-01T{before}") - datetime.fromisoformat(f"2000-01-01T{after}")
        ) / MINUTE
        assert len(on_day("*/5 * * * *", zone, day)) == 288 + won / 5
        assert on_day("*/30 * * * *", zone, day).count(after) == 2

    def test_a_jump_of_half_an_hour_loses_no_even_hour(self):
        assert on_day("0 */2 * * *", LORD_HOWE, "2025-04-06")[:3] == ["00:00", "02:00", "04:00"]


class TestPlainDays:
    @pytest.mark.parametrize(
        "zone", [ZURICH, NEW_YORK, LORD_HOWE, "Asia/Tokyo", "UTC", "Africa/Casablanca", "Asia/Beirut"]
    )
    @pytest.mark.parametrize("clock", ["00:00", "00:30", "01:45", "02:30", "12:00", "23:59"])
    def test_once_a_day_for_three_years(self, zone, clock):
        """Each local day fires once: at the named time, or within the jump that took it."""
        begin, end = datetime(2025, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
        local = [each.astimezone(ZoneInfo(zone)) for each in fires(entry(clock), zone, begin, end)]
        days = [each.date() for each in local]
        assert all(right - left == DAY for left, right in pairwise(days))
        assert len(days) >= 1094
        moved = [each for each in local if f"{each:%H:%M}" != clock]
        assert len(moved) <= 6
        for each in moved:
            assert f"{each:%H:%M}" > clock
            just_before = (each.astimezone(UTC) - timedelta(seconds=1)).astimezone(each.tzinfo)
            assert just_before.utcoffset() != each.utcoffset()

    def test_calendar_entries(self):
        begin, end = datetime(2027, 12, 31, tzinfo=UTC), datetime(2028, 12, 31, tzinfo=UTC)
        assert [f"{each:%m-%d}" for each in fires("0 0 29 2 *", "UTC", begin, end)] == ["02-29"]
        assert [each.day for each in fires("0 0 L * *", "UTC", begin, end)][:3] == [31, 29, 31]
        assert all(each.weekday() == 0 for each in fires("0 9 * * MON", ZURICH, begin, end))
        assert len(list(fires("0 0 1 * *", "UTC", begin, end))) == 12

    def test_a_day_that_does_not_exist_at_all(self):
        """Samoa went over the date line and had no 30 December 2011."""
        found = [
            each.astimezone(ZoneInfo("Pacific/Apia"))
            for each in fires(
                "30 2 * * *",
                "Pacific/Apia",
                datetime(2011, 12, 29, tzinfo=UTC),
                datetime(2012, 1, 1, tzinfo=UTC),
            )
        ]
        assert [f"{each:%m-%d %H:%M}" for each in found] == [
            "12-29 02:30",
            "12-31 00:00",
            "12-31 02:30",
            "01-01 02:30",
        ]

    def test_both_ends(self):
        five = datetime(2026, 1, 1, 5, tzinfo=UTC)
        assert list(fires("0 * * * *", "UTC", five - HOUR, five)) == [five]
        assert list(fires("0 * * * *", "UTC", five, five)) == []
        assert list(fires("0 * * * *", "UTC", five, five - HOUR)) == []
        almost = timedelta(microseconds=1)
        assert list(fires("0 5 * * *", "UTC", five - almost, five + almost)) == [five]
        assert list(fires("0 5 * * *", "UTC", five, five + HOUR)) == []
        assert list(fires("0 5 * * *", "UTC", five - HOUR, five - almost)) == []

    def test_the_first_of_many_comes_at_once(self):
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        assert next(fires("*/5 * * * *", "Asia/Tokyo", begin, begin + 20_000 * DAY)) == begin + 5 * MINUTE


expressions = st.sampled_from(
    [
        "*/7 * * * *",
        "30 2 * * *",
        "0,20,40 1-3 * * *",
        "0 */2 * * *",
        "15 * * * *",
        "*/10 2 * * *",
        "59 23 L * *",
        "0 0 * * SUN",
    ]
)
zones = st.sampled_from(
    [ZURICH, NEW_YORK, LORD_HOWE, "Asia/Beirut", "Africa/Casablanca", "Pacific/Apia", "UTC"]
)
jumps = [datetime.fromisoformat(f"{day}T12:00:00+00:00") for _, day, _, _ in SPRING + AUTUMN]
off = st.floats(-4 * 86_400, 4 * 86_400).map(lambda seconds: timedelta(seconds=seconds))
moments = st.builds(datetime.__add__, st.sampled_from(jumps), off)


@given(expressions, zones, st.sampled_from(jumps), st.lists(off, min_size=3, max_size=5))
@settings(max_examples=60, deadline=None)
def test_cutting_the_time_anywhere_changes_nothing(expression, zone, jump, offs):
    cuts = sorted(jump + each for each in offs)
    whole = list(fires(expression, zone, cuts[0], cuts[-1]))
    parts = [moment for begin, end in pairwise(cuts) for moment in fires(expression, zone, begin, end)]
    assert parts == whole
    assert all(left < right for left, right in pairwise(whole))
    assert all(cuts[0] < moment <= cuts[-1] for moment in whole)
    assert all(moment.tzinfo is UTC for moment in whole)


@given(st.sampled_from(["*/7 * * * *", "15 * * * *", "0 */2 * * *", "5-50/15 *,3 * * *"]), zones, moments)
@settings(max_examples=40, deadline=None)
def test_an_open_hour_is_what_a_look_at_the_clock_every_minute_finds(expression, zone, begin):
    begin = begin.replace(second=0, microsecond=0)
    minutes = {"*/7": range(0, 60, 7), "15": [15], "0": [0], "5-50/15": range(5, 51, 15)}[
        expression.split()[0]
    ]
    hours = range(0, 24, 2) if "*/2" in expression else range(24)
    seen = []
    for n in range(1, 36 * 60 + 1):
        local = (moment := begin + n * MINUTE).astimezone(ZoneInfo(zone))
        if local.minute in minutes and local.hour in hours:
            seen.append(moment)
    assert list(fires(expression, zone, begin, begin + 36 * HOUR)) == seen


class TestRefusals:
    @pytest.mark.parametrize(
        "expression",
        [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "x * * * *",
            "*/0 * * * *",
            "0 0 31 2 *",
            "@reboot",
            "9" * 5000 + " * * * *",
            "5-1 * * * *",
            "* * * * MON#9",
            "1 2 3 4 5#",
            "*\0* * * * *",
            None,
            5,
        ],
    )
    def test_a_bad_expression_is_named(self, expression):
        with pytest.raises(UsageError, match="cron expression") as caught:
            check_cron(expression, "UTC")
        assert len(str(caught.value)) < 250

    @pytest.mark.parametrize(
        "zone", ["", "Mars/Olympus", "Europe", "../etc/passwd", "/etc/passwd", "x" * 400, "a\0b", "é", None]
    )
    def test_a_bad_zone_is_named(self, zone):
        with pytest.raises(UsageError, match="time zone") as caught:
            check_cron("* * * * *", zone)
        assert len(str(caught.value)) < 250

    def test_errors_come_at_once_and_not_at_the_first_fire(self):
        now = datetime(2026, 1, 1, tzinfo=UTC)
        with pytest.raises(UsageError, match="cannot be read"):
            fires("61 * * * *", "UTC", now, now)
        with pytest.raises(UsageError, match="`after` is 2026-01-01T00:00:00, without a time zone"):
            fires("* * * * *", "UTC", now.replace(tzinfo=None), now)
        with pytest.raises(UsageError, match="between the years 1970 and 9000"):
            fires("* * * * *", "UTC", now, now.replace(year=9999))
