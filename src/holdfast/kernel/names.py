"""Names and numbers at the edge: checked here once, so that every store takes and refuses the same ones."""

from __future__ import annotations

import math
import re
from typing import Any

from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.show import show

HUNDRED_YEARS = 100 * 365.25 * 86_400.0
# In bytes of UTF-8, so that what stands in one index fits into an entry of PostgreSQL, which has 2,704: a queue and a
# tenant, or the four names of an idempotency key.
# A subject is any other name with its kind: lease:nightly. A worker's name is a part of those that own its jobs' locks.
LONGEST = {"queue": 200, "task": 200, "subject": 600, "worker": 400, "view": 150, "flag": 150}
LONGEST_NAME = 500
# Controls break terminals and logs, NUL breaks PostgreSQL, lone surrogates have no UTF-8.
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def _a(kind: str) -> str:
    return "An" if kind[:1] in ("a", "e", "i", "o") else "A"


def check_name(kind: str, value: Any) -> str:
    """The name as a plain string. `kind` says what it names: queue, task, or a key of any sort."""
    if not isinstance(value, str):
        raise UsageError(f"{_a(kind)} {kind} must be a string, not {show(value)} ({type(value).__name__}).")
    name = str.__str__(value)  # a member of a StrEnum becomes the text that drivers can bind
    longest = LONGEST.get(kind, LONGEST_NAME)
    if not name:
        raise UsageError(f"{_a(kind)} {kind} must not be empty. Give it at least one character.")
    if len(name) > longest or (not name.isascii() and len(name.encode(errors="surrogatepass")) > longest):
        raise UsageError(
            f"The {kind} {show(name)} is too long: at most {longest} bytes of UTF-8. Shorten or hash it."
        )
    if (found := _UNFIT.search(name)) is not None:
        raise UsageError(
            f"The {kind} {show(name)} has the character U+{ord(found[0]):04X} at position {found.start()}. "
            "Leave out control characters, line breaks and lone surrogates."
        )
    if name != name.strip():
        raise UsageError(f"The {kind} {show(name)} begins or ends with a space. Remove it with .strip().")
    return name


def check_seconds(kind: str, value: Any, minimum: float = 0.0, maximum: float = HUNDRED_YEARS) -> float:
    """A duration as a float: a finite number from `minimum` to `maximum` seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(
            f"{kind} must be a number of seconds, not {show(value)} ({type(value).__name__}). "
            "For a timedelta, pass .total_seconds()."
        )
    # The comparison comes first: float() of an enormous integer is an error of its own.
    if not minimum <= value <= maximum or not math.isfinite(value):
        raise UsageError(f"{kind} must be from {minimum:g} to {maximum:g} seconds, not {show(value)}.")
    return float(value)


def check_int(kind: str, value: Any, low: int, high: int) -> int:
    """A whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{kind} must be a whole number, not {show(value)} ({type(value).__name__}).")
    if not low <= value <= high:
        raise UsageError(f"{kind} must be from {low} to {high}, not {show(value)}.")
    return int(value)


def check_text(kind: str, text: Any, limit: int = 10 * 1024 * 1024) -> None:
    """JSON or other text to be given back as it is: refused where a store could not keep it, never changed."""
    if not isinstance(text, str):
        raise UsageError(f"{kind} is text, not {show(text)} ({type(text).__name__}).")
    if len(text) > limit or (not text.isascii() and len(text.encode(errors="surrogatepass")) > limit):
        raise PayloadError(
            f"{kind} has {len(text):,} characters; the limit is {limit:,} bytes. Store large data elsewhere and keep its name."
        )
    if "\0" in text:
        raise PayloadError(f"{kind} has a NUL character, which JSON writes as \\u0000: {show(text)}.")
    if not text.isascii() and (found := _SURROGATE.search(text)) is not None:
        raise PayloadError(
            f"{kind} has a lone surrogate at position {found.start()}: {show(text)}. It has no UTF-8; leave it out."
        )
