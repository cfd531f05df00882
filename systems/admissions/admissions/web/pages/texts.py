"""Filters and words of our templates: each sentence in the reader's language, times in the university's zone, money with its code."""

from __future__ import annotations

from datetime import UTC, datetime

from jinja2 import Environment, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from admissions.core import settings
from admissions.domain.forms import FILE_MOST
from admissions.web.words import say

_MONTHS = {
    "en": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "vi": tuple(f"thg {number}" for number in range(1, 13)),
}


def add_filters(environment: Environment) -> None:
    environment.filters |= {each.__name__: each for each in (moment, day, initials, saved)}
    environment.globals |= {"money": money, "file_most": FILE_MOST}


def money(amount: int, currency: str) -> str:
    """USD 75.00."""
    return f"{currency.upper()} {amount / 100:,.2f}"


def clock(at: float, language: str, now: float | None = None) -> str:
    """19:58 of today; 17 Nov, 19:58; 17 Nov 2025, 19:58. Without `now`, all of it."""
    there = datetime.fromtimestamp(at, settings.its_zone)
    today = None if now is None else datetime.fromtimestamp(now, settings.its_zone)
    time = there.strftime("%H:%M")
    if today is not None and there.date() == today.date():
        return time
    month = _MONTHS[language][there.month - 1]
    year = "" if today is not None and there.year == today.year else f" {there.year}"
    return f"{there.day} {month}{year}, {time}"


@pass_context
def moment(context: Context, at: float | None) -> Markup:
    if not at:
        return Markup('<span class="nothing">–</span>')  # noqa: RUF001  the dash that stands for nothing
    now = context["now"]
    seconds = now.timestamp() if isinstance(now, datetime) else float(now)
    return _marked(at, clock(at, context["language"], seconds))


@pass_context
def day(context: Context, at: float) -> Markup:
    """Whatever the day is today."""
    return _marked(at, clock(at, context["language"]))


@pass_context
def saved(context: Context, at: float) -> str:
    """That a draft is saved, and when."""
    return say(context["language"], "draft_saved", clock(at, context["language"], context["now"]))


def initials(name: str) -> str:
    parts = name.split()
    return (parts[0][:1] + parts[-1][:1] if len(parts) > 1 else name.strip()[:2]).upper()


def offset(now: float) -> str:
    """UTC+7, of the university."""
    found = datetime.fromtimestamp(now, settings.its_zone).utcoffset()
    minutes = 0 if found is None else int(found.total_seconds() // 60)
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}{f':{rest:02}' if rest else ''}"


def _marked(at: float, text: str) -> Markup:
    utc = datetime.fromtimestamp(at, UTC)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        utc.strftime("%Y-%m-%dT%H:%M:%SZ"), utc.strftime("%Y-%m-%d %H:%M:%S"), text
    )
