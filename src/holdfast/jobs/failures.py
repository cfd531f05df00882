"""An exception as it is kept with a job: bounded, and with nothing in it that was marked secret."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from pathlib import Path

from holdfast.kernel.masking import hide
from holdfast.kernel.show import storable

LONGEST = 2_000  # characters of one error
_FRAMES = 5  # the innermost
_PARTS = 5  # of a group of exceptions
_OURS = str(Path(__file__).parent.parent)  # frames of Holdfast itself tell a user nothing


def describe(error: BaseException, secrets: Iterable[str] = (), *, where: bool = True) -> str:
    """Type and message first, then where it was raised; for what a task said on purpose, only what it said."""
    lines = [_what(error) if where else _said(error)]
    if where:
        lines += [f"  {place}" for place in _places(error)]
    text = hide("\n".join(lines), secrets)  # before it is cut, or half a secret would stay
    return storable(text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)")


def _what(error: BaseException) -> str:
    try:
        text = "".join(traceback.format_exception_only(error)).strip()
        if isinstance(error, BaseExceptionGroup):
            text = "\n".join([text, *(f"  - {_what(each)}" for each in error.exceptions[:_PARTS])])
    except Exception:  # noqa: BLE001  an exception that cannot be printed must not hide itself
        return type(error).__name__
    return text


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  as above
        return type(error).__name__


def _places(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_OURS)] or list(frames)
    return [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in theirs[-_FRAMES:]]
