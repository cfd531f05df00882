"""Figures for the staff: what happened on each day, and how many applications of each term are in each state."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from datetime import UTC, date, datetime, timedelta

from admissions.core import hf, settings
from admissions.desk.refusals import Invalid
from admissions.domain.forms import Wrong

KINDS = ("submitted", "verified", "paid", "completed", "failed", "withdrawn")  # of lines in the history
DAYS_MOST = 366
_YEARS = 2000, 2999
_QUARTER = 900  # seconds: whatever the zone is, its days begin with one
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a table's program would calculate what begins so


@dataclass(frozen=True)
class Day:
    """How often each has happened on this day of the university."""

    day: str
    submitted: int = 0
    verified: int = 0
    paid: int = 0
    completed: int = 0
    failed: int = 0
    withdrawn: int = 0


@dataclass(frozen=True)
class Stage:
    programme: str
    term: str
    term_id: str
    state: str
    number: int


async def days(first: date, last: date) -> list[Day]:
    """Both included; days without anything are there, too."""
    if not 0 <= (last - first).days < DAYS_MOST or first.year < _YEARS[0] or last.year > _YEARS[1]:
        raise Invalid([Wrong("last", "days_wrong", (DAYS_MOST,))])
    places = ", ".join(f"${4 + number}" for number in range(len(KINDS)))
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT floor(at / $1), kind, count(*) FROM steps WHERE at >= $2 AND at < $3 "  # noqa: S608  our own names
            f"AND kind IN ({places}) GROUP BY floor(at / $1), kind",
            float(_QUARTER), _begin(first), _begin(last + timedelta(days=1)), *KINDS,
        )  # fmt: skip
    found = {first + timedelta(days=number): dict[str, int]() for number in range((last - first).days + 1)}
    for quarter, kind, number in rows:
        counts = found[_day(float(quarter) * _QUARTER)]
        counts[kind] = counts.get(kind, 0) + int(number)
    return [Day(day.isoformat(), **counts) for day, counts in found.items()]


async def stages() -> list[Stage]:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT p.name, t.name, t.id, a.state, count(*) FROM applications a JOIN terms t ON t.id = a.term_id "
            "JOIN programmes p ON p.id = t.programme_id GROUP BY p.name, t.name, t.id, a.state ORDER BY p.name, t.name, t.id, a.state"
        )
    return [
        Stage(programme, term, found, state, int(number)) for programme, term, found, state, number in rows
    ]


def table(kind: type[Day | Stage], rows: Iterable[Day | Stage]) -> str:
    """As CSV, with a line of names."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([each.name for each in fields(kind)])
    writer.writerows([_cell(value) for value in astuple(row)] for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


async def last_days(number: int) -> tuple[date, date]:
    today = _day(await hf.now())
    return today - timedelta(days=number - 1), today


def _begin(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=settings.its_zone).timestamp()


def _day(at: float) -> date:
    return datetime.fromtimestamp(at, UTC).astimezone(settings.its_zone).date()
