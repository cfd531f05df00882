"""When an automation posts: rules of three kinds, in the artist's zone, and the nominal times that come of them.

A nominal time is the same whoever asks and whenever: it fires once, because it is a key. Rules are added up; or all must agree, and
then times come from fixed times (else from the interval), an interval is the least distance of two on one day, and a quota is a cap for the day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from publisher.domain.zones import at, begin_of, day_of

_DAY = timedelta(days=1)
EVERY_DAY = frozenset(range(7))


class Agreement(StrEnum):
    ANY = "any"  # what each rule says is added up
    ALL = "all"


@dataclass(frozen=True)
class FixedTime:
    """One post at this time of these days (0 is Monday)."""

    clock: time
    weekdays: frozenset[int] = EVERY_DAY

    def __post_init__(self) -> None:
        _check_days(self.weekdays)
        if self.clock.second or self.clock.microsecond or self.clock.tzinfo is not None:
            raise ValueError(f"A fixed time has hours and minutes, not {self.clock.isoformat()}.")


@dataclass(frozen=True)
class Interval:
    """So many posts every so many minutes, counted from `since`."""

    minutes: int
    since: datetime
    posts: int = 1
    weekdays: frozenset[int] = EVERY_DAY

    def __post_init__(self) -> None:
        _check_days(self.weekdays)
        _check("minutes", self.minutes, 5, 10_080)
        _check("posts", self.posts, 1, 100)


@dataclass(frozen=True)
class DailyQuota:
    """So many posts a day, spread evenly over it."""

    posts: int
    weekdays: frozenset[int] = EVERY_DAY

    def __post_init__(self) -> None:
        _check_days(self.weekdays)
        _check("posts", self.posts, 1, 100)


Rule = FixedTime | Interval | DailyQuota


@dataclass(frozen=True, order=True)
class Slot:
    """A nominal time, and how many posts it is for."""

    at: datetime
    posts: int


def slots(
    rules: Sequence[Rule], zone: ZoneInfo, agreement: Agreement, after: datetime, until: datetime
) -> list[Slot]:
    """The nominal times after one moment and up to another, in their order."""
    if agreement is Agreement.ALL:
        return _agreed(rules, zone, after, until)
    posts = Counter[datetime]()
    for rule in rules:
        for slot in _slots(rule, zone, after, until):
            posts[slot.at] += slot.posts
    return sorted(Slot(moment, number) for moment, number in posts.items())


def _slots(rule: Rule, zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[Slot]:
    match rule:
        case FixedTime():
            found = ((at(day, rule.clock, zone), 1) for day in _days(zone, after, until))
        case Interval():
            found = ((moment, rule.posts) for moment in _grid(rule, after, until))
        case DailyQuota():
            found = (
                (moment, 1) for day in _days(zone, after, until) for moment in _spread(day, rule.posts, zone)
            )
    for moment, posts in found:
        if after < moment <= until and day_of(moment, zone).weekday() in rule.weekdays:
            yield Slot(moment, posts)


def _agreed(rules: Sequence[Rule], zone: ZoneInfo, after: datetime, until: datetime) -> list[Slot]:
    """From the beginning of the day on, so that whoever asks in between counts the same posts of it."""
    days = frozenset.intersection(EVERY_DAY, *(rule.weekdays for rule in rules))
    fixed = [rule for rule in rules if isinstance(rule, FixedTime)]
    intervals = [rule for rule in rules if isinstance(rule, Interval)]
    caps = [rule.posts for rule in rules if isinstance(rule, DailyQuota)]
    proposing: Sequence[Rule] = fixed or intervals or [rule for rule in rules if isinstance(rule, DailyQuota)]
    apart = timedelta(minutes=max((rule.minutes for rule in intervals), default=0)) if fixed else timedelta(0)
    begin = begin_of(day_of(after, zone), zone) - timedelta(microseconds=1)
    kept: list[Slot] = []
    of_day, last = Counter[date](), dict[date, datetime]()
    for slot in slots(proposing, zone, Agreement.ANY, begin, until):
        day = day_of(slot.at, zone)
        room = min(caps, default=slot.posts + of_day[day]) - of_day[day]
        if day.weekday() not in days or room <= 0 or (day in last and slot.at - last[day] < apart):
            continue
        kept.append(Slot(slot.at, min(slot.posts, room)))
        of_day[day], last[day] = of_day[day] + kept[-1].posts, slot.at
    return [slot for slot in kept if slot.at > after]


def _days(zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[date]:
    day, last = day_of(after, zone), day_of(until, zone)
    while day <= last:
        yield day
        day += _DAY


def _grid(rule: Interval, after: datetime, until: datetime) -> Iterator[datetime]:
    step = timedelta(minutes=rule.minutes)
    number = max(1, (after - rule.since) // step + 1)
    while (moment := rule.since + number * step) <= until:
        yield moment.astimezone(UTC)
        number += 1


def _spread(day: date, posts: int, zone: ZoneInfo) -> Iterator[datetime]:
    """In the middle of equal parts of the day, however long it is."""
    begin = begin_of(day, zone)
    length = begin_of(day + _DAY, zone) - begin
    for number in range(posts):
        moment = begin + length * (2 * number + 1) / (2 * posts)
        yield moment.replace(microsecond=0)


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} is from {low:,} to {high:,}, not {value:,}.")


def _check_days(days: frozenset[int]) -> None:
    if not days or not days <= EVERY_DAY:
        raise ValueError(f"weekdays are some of 0 (Monday) to 6 (Sunday), not {sorted(days)}.")
