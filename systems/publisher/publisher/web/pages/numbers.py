"""Numbers that people type. A text of 5,000 digits is none."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)


def whole(text: str, low: int = 0, high: int = 999_999_999) -> int | None:
    """None when it is no whole number, or not between these two."""
    found = text.strip()
    if not _WHOLE.fullmatch(found):
        return None
    return number if low <= (number := int(found)) <= high else None
