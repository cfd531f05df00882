"""A month as a table: what happens on which day. On a phone it becomes a list of the days that have something."""

from __future__ import annotations

import calendar as weeks
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Literal

import msgspec
from markupsafe import Markup

from holdfast.web.pages.draw.svg import icon, tag
from holdfast.web.pages.filters import href as safe

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SHOWN = 2  # entries in a day; the rest is a link
_CALM = {"ok", "off"}  # has no tint: only what is to come, or needs eyes, has


class Entry(msgspec.Struct, frozen=True):
    """One thing on one day. `at` is in the zone of the calendar; `picture` is an address of ours."""

    at: datetime
    title: str
    href: str
    state: Literal["ok", "run", "wait", "held", "late", "dead", "unknown", "off"] = "wait"
    word: str = "Scheduled"
    picture: str = ""


def calendar(
    month: date, entries: Sequence[Entry], *, today: date, title: str, day: Callable[[date], str]
) -> Markup:
    """The weeks that have days of `month`. `day` gives the address of a day."""
    by_day: dict[date, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.at):
        by_day.setdefault(entry.at.date(), []).append(entry)
    rows = [
        tag("tr", *(_cell(each, month, by_day.get(each, []), today, day) for each in week))
        for week in weeks.Calendar().monthdatescalendar(month.year, month.month)
    ]
    head = tag("tr", *(tag("th", name, scope="col") for name in _DAYS))
    return tag("table", tag("caption", title), tag("thead", head), tag("tbody", *rows), class_="month")


def _cell(each: date, month: date, entries: list[Entry], today: date, day: Callable[[date], str]) -> Markup:
    name = each.strftime("%-d %b") if each.day == 1 else str(each.day)
    number = tag("time", name, datetime=each.isoformat(), class_="day")
    # Where there is one more than fits, its room goes to the link.
    shown = entries[:_SHOWN]
    more = len(entries) - len(shown)
    notes = [word for word in ("today" if each == today else "", f"{more} more" if more else "") if word]
    side = tag("a", ", ".join(notes), href=safe(day(each))) if more else tag("span", *notes)
    classes = " ".join(
        word
        for word, holds in (
            ("other", each.month != month.month),
            ("today", each == today),
            ("free", not entries),
        )
        if holds
    )
    return tag(
        "td",
        tag("div", number, side if notes else "", class_="head"),
        *(_entry(entry) for entry in shown),
        class_=classes or None,
        data_day=each.isoformat(),
    )


def _entry(entry: Entry) -> Markup:
    picture = (
        tag("img", src=safe(entry.picture), alt="", width=26, height=26, loading="lazy")
        if entry.picture
        else ""
    )
    text = tag(
        "span",
        tag("time", entry.at.strftime("%H:%M"), datetime=entry.at.isoformat()),
        tag("span", entry.title),
    )
    heard = tag("span", entry.word, class_="heard")
    tint = "" if entry.state in _CALM else " tint"
    return tag(
        "a",
        picture,
        text,
        icon(entry.state),
        heard,
        href=safe(entry.href),
        class_=f"entry {entry.state}{tint}",
    )
