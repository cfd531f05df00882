"""An exception for a line of the log: where it was raised, without secrets, and unable to look like other lines."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from holdfast.kernel.masking import hide
from holdfast.kernel.show import one_line

ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None]

_LONGEST = 8_000  # characters of one traceback
_INDENT = "    "  # no line of a traceback begins where a line of the log does
_OURS = str(Path(__file__).parent.parent)  # frames of Holdfast itself tell a user nothing


class Failure:
    __slots__ = ("_error", "_secrets")

    def __init__(self, error: BaseException, secrets: Iterable[str] = ()) -> None:
        self._error, self._secrets = error, tuple(secrets)

    def text(self) -> str:
        try:
            told = traceback.TracebackException.from_exception(self._error, compact=True)
            _shorten(told)
            text = "".join(told.format())
        except Exception:  # noqa: BLE001  an exception that cannot be printed must not hide the line
            text = type(self._error).__name__
        text = hide(text, self._secrets)  # before it is cut, or half a secret would stay
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
        return "\n".join(f"{_INDENT}{one_line(line)}" for line in text.splitlines())

    def exc_info(self) -> ExcInfo | None:
        """For handlers that want the exception itself. With secrets there is none: its message may have them."""
        return None if self._secrets else (type(self._error), self._error, self._error.__traceback__)


def _shorten(told: traceback.TracebackException) -> None:
    """Without the frames of Holdfast, unless there are no others."""
    waiting = [told]
    while waiting:
        each = waiting.pop()
        theirs = [frame for frame in each.stack if not frame.filename.startswith(_OURS)]
        if theirs:
            each.stack = traceback.StackSummary.from_list(theirs)
        others = (each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ()))
        waiting += [other for other in others if other is not None]
