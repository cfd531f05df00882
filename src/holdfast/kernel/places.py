"""Where a program has declared something: the file and line that an error can name."""

from __future__ import annotations

import sys
from types import FrameType

_OURS = __name__.partition(".")[0]


def place_of_caller() -> str:
    """`shop/outside.py:12`: the nearest line that is not of this package."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  no other way leads to who calls
    place = "an unknown place"
    while frame is not None:
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] != _OURS:
            return place
        frame = frame.f_back
    return place
