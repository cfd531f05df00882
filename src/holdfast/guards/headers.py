"""The headers by which services ask each other to wait: `Retry-After` and `RateLimit`, read and written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

import msgspec

from holdfast.kernel.clock import now
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note

LONGEST_PAUSE = 300.0  # seconds: nobody may stop us for longer by one answer
_NUMBER = re.compile(r"([0-9]+)(\.[0-9]+)?", re.ASCII)
_DIGITS = 9  # more of them are above any clamp
_OLDER = ("RateLimit-", "X-RateLimit-", "X-Rate-Limit-")
_QUOTED = re.compile(r'"[^"]*"')
_LONGEST_TEXT = 1000  # characters that are read
_MOMENTS = 1e9  # seconds since 1970: what is above is a moment,
_THOUSANDTHS = 1e11  # and from here on in thousandths
_MOMENT_DIGITS = 14


class SupportsGet(Protocol):
    """The headers of an answer, as any client has them."""

    def get(self, name: str, /) -> Any: ...


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """What a limiter would say about one key now."""

    limit: float  # cost units that may be spent at once
    remaining: float  # of them, now
    window: float  # seconds in which `limit` comes back
    reset: float  # seconds until all of it is there again
    retry_after: float  # seconds until a call of cost 1 is admitted; 0: now


def parse_retry_after(text: str | None, longest: float = LONGEST_PAUSE) -> float | None:
    """Seconds to wait, from 0 to `longest`; both forms are read. None: it said nothing that can be read (with a note)."""
    if text is None:
        return None
    found = [_NUMBER.fullmatch(each.strip()) for each in text.split(",")]  # said twice, it comes as a list
    numbers = [each for each in found if each is not None]
    if len(numbers) == len(found):
        return max(longest if len(each[1]) > _DIGITS else min(float(each[0]), longest) for each in numbers)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        note("retry_after.ignored", value=show(text))
        return None
    return min(max(0.0, moment - now()), longest)


def parse_rest(headers: SupportsGet, longest: float = LONGEST_PAUSE) -> float | None:
    """Seconds to rest when the other side says that nothing is left of its quota: `RateLimit`, or an older form of it.

    A `Retry-After` beside it goes before. None: something is left, or it said nothing that can be read.
    """
    found = [*_rests(headers)]
    if not found:
        return None
    after = headers.get("Retry-After")
    asked = parse_retry_after(after, longest) if isinstance(after, str) else None
    return min(max(found), longest) if asked is None else asked


def _rests(headers: SupportsGet) -> Iterator[float]:
    """Of each quota of which nothing is left: the seconds until there is more."""
    if isinstance(text := headers.get("RateLimit"), str):
        yield from _of_members(text)
    for form in _OLDER:
        if _is_nothing(headers.get(f"{form}Remaining")):
            yield from _seconds_until(headers.get(f"{form}Reset"))


def _of_members(text: str) -> Iterator[float]:
    """`"daily";r=0;t=30, "burst";r=5`, and as drafts before had it: `limit=10, remaining=0, reset=30`."""
    members = [
        {
            name.strip(): value.strip()
            for name, _, value in (each.partition("=") for each in member.split(";"))
        }
        for member in _QUOTED.sub("", text[:_LONGEST_TEXT]).split(",")
    ]
    for member in members:
        if _is_nothing(member.get("r")):
            yield from _seconds_until(member.get("t"))
    whole = {name: value for member in members for name, value in member.items()}
    if _is_nothing(whole.get("remaining")):
        yield from _seconds_until(whole.get("reset"))


def _is_nothing(text: object) -> bool:
    """Less than none means without a limit, at some of them."""
    return isinstance(text, str) and _NUMBER.fullmatch(text.strip()) is not None and float(text) == 0


def _seconds_until(text: object) -> Iterator[float]:
    """Seconds from now, or since 1970, as some have it; also in thousandths."""
    found = _NUMBER.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None or len(found[1]) > _MOMENT_DIGITS:
        return
    number = float(found[0])
    if number >= _THOUSANDTHS:
        number /= 1000
    yield max(0.0, number - now()) if number >= _MOMENTS else number


def clamped(seconds: object, longest: float = LONGEST_PAUSE) -> float | None:
    """A number of seconds from somewhere, from 0 to `longest`; None when it is none."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        return None
    return float(min(seconds, longest))


def render_retry_after(seconds: float) -> str:
    """Whole seconds, rounded up: who comes back then is not sent away again."""
    return str(max(1, _up(seconds)))


def _up(number: float) -> int:
    """To the next whole number; the last digits of a sum of binary numbers mean nothing."""
    return math.ceil(round(number, 6))


def ratelimit_headers(name: str, allowance: Allowance) -> dict[str, str]:
    """`RateLimit-Policy` and `RateLimit`, and `Retry-After` when the next call would be refused."""
    title = '"' + re.sub(r"[^ !#-\[\]-~]", "_", name) + '"'
    window, remaining = max(1, _up(allowance.window)), math.floor(round(allowance.remaining, 6))
    headers = {
        "RateLimit-Policy": f"{title};q={math.floor(allowance.limit)};w={window}",
        "RateLimit": f"{title};r={remaining};t={_up(allowance.reset)}",
    }
    if allowance.retry_after > 0:
        headers["Retry-After"] = render_retry_after(allowance.retry_after)
    return headers
