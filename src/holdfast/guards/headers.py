"""The headers by which services ask each other to wait: `Retry-After` and `RateLimit`, read and written."""

from __future__ import annotations

import math
import re
from email.utils import parsedate_to_datetime

import msgspec

from holdfast.kernel.clock import now
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note

LONGEST_PAUSE = 300.0  # seconds: nobody may stop us for longer by one answer
_NUMBER = re.compile(r"([0-9]+)(\.[0-9]+)?", re.ASCII)
_DIGITS = 9  # more of them are above any clamp


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
    found = _NUMBER.fullmatch(text.strip())
    if found is not None:
        return longest if len(found[1]) > _DIGITS else min(float(found[0]), longest)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        note("retry_after.ignored", value=show(text))
        return None
    return min(max(0.0, moment - now()), longest)


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
