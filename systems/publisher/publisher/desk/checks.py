"""What a person has typed, checked: each fault is for one field, and says what would be right."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from publisher.desk.refusals import Fault

NAME_MOST = 80
_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, halves of characters, other line breaks


def of_name(field: str, text: str, *, most: int = NAME_MOST) -> Iterator[Fault]:
    """One line that can be seen."""
    if not text.strip():
        yield Fault(field, "Give it a name.")
    if len(text) > most:
        yield Fault(field, f"A name has at most {most} characters; this one has {len(text)}.")
    if any(unicodedata.category(each) in _UNSEEN for each in text):
        yield Fault(field, "The name has characters that cannot be seen. Leave them out.")


def of_text(field: str, text: str, *, most: int) -> Iterator[Fault]:
    """Lines are allowed here."""
    if len(text) > most:
        yield Fault(field, f"It has at most {most:,} characters; this one has {len(text):,}.")
    if any(unicodedata.category(each) in _UNSEEN and each not in "\n\r\t" for each in text):
        yield Fault(field, "The text has characters that cannot be seen. Leave them out.")


def of_number(field: str, value: int, low: int, high: int, what: str) -> Iterator[Fault]:
    if not low <= value <= high:
        yield Fault(field, f"{what} is from {low:,} to {high:,}, not {value:,}.")
