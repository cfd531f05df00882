"""The filters of templates: values as text, with the marks that the style sheet and screen readers need."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import Environment, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from holdfast.web.pages import values

_NOTHING = Markup('<span class="nothing">{}</span>').format(values.NOTHING)
_OWN = re.compile(r"(?!//)[^\\:\x00-\x20]*([?#/][^\\\x00-\x20]*)?")  # no scheme, no host
_OUTSIDE = re.compile(r"(https?://|mailto:)[^\\\x00-\x20]+", re.IGNORECASE)


def add_filters(environment: Environment) -> None:
    environment.filters |= {
        "ago": ago,
        "bytes": size,
        "duration": duration,
        "href": href,
        "number": number,
        "percent": percent,
        "short": short,
        "time": time,
    }


@cache
def zone_of(name: str) -> tzinfo:
    """By its name in the tz database. It raises ValueError or KeyError for another."""
    return ZoneInfo(name)


def number(value: float | None, capped: int | None = None) -> Markup | str:
    """A zero is grey: what counts stands out."""
    if value is None:
        return _NOTHING
    return Markup('<span class="zero">0</span>') if value == 0 else values.number(value, capped)


def short(value: float | None) -> Markup | str:
    """The full number is in the tooltip."""
    if value is None or abs(value) < 1000:
        return number(value)
    return Markup('<span title="{}">{}</span>').format(values.number(value), values.short(value))


def size(value: float | None) -> Markup | str:
    return _NOTHING if value is None else values.size(value)


def percent(share: float | None) -> Markup | str:
    return _NOTHING if share is None else values.percent(share)


def duration(seconds: float | None) -> Markup | str:
    return _NOTHING if seconds is None else values.duration(seconds)


@pass_context
def time(context: Context, value: datetime | float | None, seconds: bool = False) -> Markup:
    """In the reader's zone, with UTC in the tooltip."""
    if value is None:
        return _NOTHING
    at = values.moment(value)
    return _marked(at, values.clock_time(at, _now(context), zone_of(context["zone"]), seconds=seconds))


@pass_context
def ago(context: Context, value: datetime | float | None) -> Markup:
    """13 min ago, in 18 s; from a day on, the date."""
    if value is None:
        return _NOTHING
    at, now = values.moment(value), _now(context)
    seconds = (now - at).total_seconds()
    words = values.distance(seconds)
    if words is None:
        return _marked(at, values.clock_time(at, now, zone_of(context["zone"])))
    return _marked(at, f"{words} ago" if seconds >= 0 else f"in {words}")


def href(address: Any) -> str:
    """An address that may stand in a link: our own, or one of the web. Anything else, such as javascript:, leads nowhere."""
    text = str(address)
    return text if _OWN.fullmatch(text) or _OUTSIDE.fullmatch(text) else "#"


def _now(context: Context) -> datetime:
    return values.moment(context["now"])


def _marked(at: datetime, text: str) -> Markup:
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        utc.strftime("%Y-%m-%dT%H:%M:%SZ"), utc.strftime("%Y-%m-%d %H:%M:%S"), text
    )
