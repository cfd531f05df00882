"""The days that a calendar shows, and what is on each. Knows nothing of requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from publisher.web.pages.cards import Card
from publisher.web.pages.times import day_of

VIEWS = ("month", "week", "list")
FITS = 2  # entries in a cell of a month; the rest is a link


@dataclass(frozen=True)
class Span:
    """`begin` to `end` is drawn; `first` to `last` is what was asked for."""

    view: str
    first: date
    last: date
    begin: date
    end: date
    before: date
    after: date

    def has(self, day: date) -> bool:
        return self.first <= day <= self.last


@dataclass(frozen=True)
class Day:
    day: date
    cards: tuple[Card, ...]
    is_today: bool
    is_other: bool

    @property
    def name(self) -> str:
        return self.day.strftime("%-d %b") if self.day.day == 1 else str(self.day.day)

    @property
    def more(self) -> int:
        return max(0, len(self.cards) - FITS)

    @property
    def looks(self) -> list[str]:
        """Each look once, what needs a person first."""
        order = ("unknown", "dead", "late", "held", "run", "wait", "ok", "off")
        return sorted({card.look for card in self.cards}, key=order.index)


def span_of(view: str, at: date) -> Span:
    if view == "week":
        first = at - timedelta(days=at.weekday())
        last = first + timedelta(days=6)
        return Span(view, first, last, first, last + timedelta(days=1), first - timedelta(days=7), last + timedelta(days=1))  # fmt: skip
    first = at.replace(day=1)
    after = (first + timedelta(days=32)).replace(day=1)
    last, before = after - timedelta(days=1), (first - timedelta(days=1)).replace(day=1)
    if view == "list":
        return Span(view, first, last, first, after, before, after)
    begin = first - timedelta(days=first.weekday())
    return Span(view, first, last, begin, last + timedelta(days=7 - last.weekday()), before, after)


def days_of(span: Span, cards: Sequence[Card], zone: ZoneInfo, now: date) -> list[Day]:
    by_day: dict[date, list[Card]] = {}
    for card in cards:
        if card.at is not None:
            by_day.setdefault(day_of(card.at, zone), []).append(card)
    number = (span.end - span.begin).days
    days = (span.begin + timedelta(days=step) for step in range(number))
    return [Day(day, tuple(by_day.get(day, ())), day == now, not span.has(day)) for day in days]


def names_of(span: Span, day: date) -> dict[str, str]:
    """What stands above the calendar, and above its day."""
    title = span.first.strftime("%B %Y")
    if span.view == "week":
        same = span.first.month == span.last.month
        title = f"{span.first.strftime('%-d' if same else '%-d %b')} to {span.last.strftime('%-d %b %Y')}"
    return {"title": title, "day_title": day.strftime("%A %-d %B")}
