"""A step's failure that its task went on with: kept, and raised again in later attempts, so that they go the same way."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.jobs.control import Cancel, Control, Retry, Snooze
from holdfast.jobs.failures import LONGEST, describe
from holdfast.kernel import outcomes
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.errors import PayloadError, StepFailed
from holdfast.kernel.masking import hide
from holdfast.kernel.outcomes import Outcome

_MOST = 20  # arguments, and attributes: with LONGEST for each, they fit into a result


class Kept(msgspec.Struct, frozen=True):
    module: str
    kind: str
    message: str
    args: tuple[str | None, ...] = ()  # what it was made with, each as JSON text; None: it has no form there
    state: dict[str, str] = {}  # its attributes that have one
    after: float = 0.0  # seconds, of a Retry or a Snooze


def kept(error: Exception, secrets: Iterable[str]) -> str:
    """As JSON text."""
    kind, secrets = type(error), tuple(secrets)
    told = describe(error, secrets, where=False)
    args = tuple(_text(each, secrets) for each in error.args[:_MOST])
    named = {name: _text(value, secrets) for name, value in vars(error).items()}
    state = {name: text for name, text in list(named.items())[:_MOST] if text is not None}
    after = error.outcome.after if isinstance(error, Retry | Snooze) else 0.0
    return msgspec.json.encode(Kept(kind.__module__, kind.__qualname__, told, args, state, after)).decode()


def again(text: str | None) -> StepFailed:
    """A StepFailed with the same words, which is also what it was: `except OSError` catches it in every attempt."""
    found = msgspec.json.decode(text or "{}", type=Kept)
    kind = _find(found)
    if kind is None:
        return StepFailed(found.message)
    try:
        both: type[StepFailed] = type("StepFailed", (StepFailed, kind), {"__str__": lambda _: found.message})
        error = _made(both, found)
    except Exception:  # noqa: BLE001  two that cannot be one; what the class says to that is its own
        return StepFailed(found.message)
    error.__dict__.update({name: decode_stored(value) for name, value in found.state.items()})
    if isinstance(error, Control):
        error.outcome = _outcome(error, found)
    return error


def _outcome(error: Control, found: Kept) -> Outcome:
    """What it asks of its run: the task may raise it on."""
    match error:
        case Retry():
            return outcomes.Retry(after=found.after, error=found.message)
        case Snooze():
            return outcomes.Snooze(after=found.after, reason=found.message)
        case Cancel():
            return outcomes.Cancel(found.message)
        case _:
            return outcomes.Dead(found.message)


def _made(both: type[StepFailed], found: Kept) -> StepFailed:
    args = tuple(None if each is None else decode_stored(each) for each in found.args)
    error = both.__new__(both, *args)  # its __init__ may want other arguments, or do things
    if isinstance(error, OSError):
        OSError.__init__(error, *args)  # errno and the like are neither arguments nor attributes
    error.args = args
    return error


def _text(value: Any, secrets: tuple[str, ...]) -> str | None:
    try:
        text = encode(value, limit=LONGEST)
    except PayloadError:
        return None
    return text if hide(text, secrets) == text else None


def _find(found: Kept) -> type[Exception] | None:
    """Only what the program has imported itself."""
    value: object = sys.modules.get(found.module)
    for part in found.kind.split("."):
        value = getattr(value, part, None)
    return value if isinstance(value, type) and issubclass(value, Exception) else None


def is_part(failure: Exception, error: BaseException) -> bool:
    """Whether the one is the other, or was raised from it. An exception may be raised from itself."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is None or id(each) in seen:
            continue
        if each is failure:
            return True
        seen.add(id(each))
        left += [each.__cause__, *(each.exceptions if isinstance(each, BaseExceptionGroup) else ())]
    return False
