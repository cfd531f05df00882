"""Filters of our templates, beside those of the kit."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from jinja2 import Environment, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from publisher.web.pages.cards import WORDS
from publisher.web.pages.details_form import LABELS
from publisher.web.pages.times import field_of, words_of

_MOMENT = re.compile(r"\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC")


def add_filters(environment: Environment) -> None:
    environment.filters |= {
        each.__name__: each for each in (clock, in_zone, lacks, local, moment, money, upper_first, word)
    }


@pass_context
def clock(context: Context, at: float | None) -> Markup:
    """14:05, where the day is known already."""
    if at is None:
        return Markup("")
    return _marked(at, datetime.fromtimestamp(at, ZoneInfo(context["zone"])).strftime("%H:%M"))


@pass_context
def moment(context: Context, at: float | None) -> Markup:
    """Fri 20 Nov, 18:00."""
    return Markup("") if at is None else _marked(at, words_of(at, ZoneInfo(context["zone"])))


@pass_context
def local(context: Context, at: float | None) -> str:
    """For a field of type datetime-local."""
    return field_of(at, ZoneInfo(context["zone"]))


def lacks(name: str) -> str:
    """What a draft lacks, in a table."""
    return LABELS.get(name, name).lower()


@pass_context
def in_zone(context: Context, words: str) -> str:
    """A line of history with its times in the reader's zone."""
    zone = ZoneInfo(context["zone"])

    def local_of(found: re.Match[str]) -> str:
        try:
            at = datetime.strptime(found[0], "%d %B %Y, %H:%M UTC").replace(tzinfo=UTC)
        except ValueError:
            return found[0]
        return at.astimezone(zone).strftime("%a %-d %b, %H:%M")

    return _MOMENT.sub(local_of, words)


def word(look: str) -> str:
    return WORDS[look]


def money(cents: int) -> str:
    """USD 75.00."""
    return f"USD {cents / 100:,.2f}"


def upper_first(words: str) -> str:
    return words[:1].upper() + words[1:]


def _marked(at: float, text: str) -> Markup:
    utc = datetime.fromtimestamp(at, UTC)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        utc.strftime("%Y-%m-%dT%H:%M:%SZ"), utc.strftime("%Y-%m-%d %H:%M:%S"), text
    )
