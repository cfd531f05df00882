"""Values and texts that may be anything: made short and harmless, and never an error of their own."""

from __future__ import annotations

import re
import reprlib
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from types import FunctionType, NoneType
from typing import Any
from uuid import UUID

LONGEST = 60
LONGEST_TEXT = 8_000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL takes no NUL, and lone surrogates have no UTF-8
# What would begin a new line, command a terminal, or turn the direction of what is read.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_CONTROLS |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): " "}
_CONTROLS |= {
    code: f"\\u{code:04x}" for code in (0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}

# The repr of these is short. That of a stranger may be endless, slow or secret, so only its type is shown.
_SHORT = (
    float,
    bool,
    complex,
    range,
    NoneType,
    date,
    time,
    timedelta,
    tzinfo,
    Decimal,
    Enum,
    FunctionType,
    UUID,
    type,
)


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxother = 2 * LONGEST

    def repr_str(self, value: str, level: int) -> str:  # noqa: ARG002
        return (
            repr(value) if len(value) <= LONGEST else f"{value[: LONGEST // 2]!r}… ({len(value)} characters)"
        )

    def repr_int(self, value: int, level: int) -> str:  # noqa: ARG002
        # Python refuses to print an integer of more than 4,300 digits.
        return repr(value) if value.bit_length() <= 128 else f"<integer of {value.bit_length()} bits>"

    def repr_bytes(self, value: bytes, level: int) -> str:  # noqa: ARG002
        return (
            repr(value) if len(value) <= LONGEST // 4 else f"{value[: LONGEST // 4]!r}… ({len(value)} bytes)"
        )

    def repr_instance(self, value: Any, level: int) -> str:
        if isinstance(value, str) and not isinstance(value, Enum):
            return self.repr_str(str.__str__(value), level)
        return (
            super().repr_instance(value, level)
            if isinstance(value, _SHORT)
            else f"<{type(value).__qualname__}>"
        )


_short = _Short()


def show(value: Any) -> str:
    """The value as a person can read it."""
    try:
        text = _short.repr(value)
    except Exception:  # noqa: BLE001  a value that cannot be shown must not hide the error that it is shown for
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= 2 * LONGEST else f"{text[: 2 * LONGEST]}…"


def storable(text: str) -> str:
    """Someone's text, such as an exception's, as every store can keep it: no NUL, no lone surrogate, not endless."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]}… ({len(text)} characters)"
    return _UNSTORABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """Someone's text within a line of a log: it cannot begin another line, nor command the terminal."""
    return text if text.isascii() and text.isprintable() else text.translate(_CONTROLS)
