"""A step's failure that its task went on with: kept, and raised again in later attempts, so that they go the same way."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec

from holdfast.jobs.failures import describe
from holdfast.kernel.errors import StepFailed


class Kept(msgspec.Struct, frozen=True):
    module: str
    kind: str
    message: str


def kept(error: Exception, secrets: Iterable[str]) -> str:
    """As JSON text."""
    kind = type(error)
    told = describe(error, secrets, where=False)
    return msgspec.json.encode(Kept(kind.__module__, kind.__qualname__, told)).decode()


def again(text: str | None) -> StepFailed:
    """A StepFailed with the same words, which is also what it was: `except OSError` catches it in every attempt."""
    found = msgspec.json.decode(text or "{}", type=Kept)
    kind = _find(found)
    if kind is None:
        return StepFailed(found.message)
    try:
        both: type[StepFailed] = type("StepFailed", (StepFailed, kind), {"__str__": lambda _: found.message})
        error = both.__new__(both, found.message)
        error.args = (found.message,)
    except TypeError:  # two that cannot be one
        return StepFailed(found.message)
    return error


def _find(found: Kept) -> type[Exception] | None:
    """Only what the program has imported itself."""
    value: object = sys.modules.get(found.module)
    for part in found.kind.split("."):
        value = getattr(value, part, None)
    return value if isinstance(value, type) and issubclass(value, Exception) else None
