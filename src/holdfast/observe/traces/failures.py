"""How a failure stands in a span: its type, its message and its place, masked as the log masks them."""

from __future__ import annotations

from textwrap import dedent

from opentelemetry.trace import Span, Status, StatusCode

from holdfast.jobs.control import Cancel, Gated, Snooze
from holdfast.kernel.failure import Failure
from holdfast.kernel.masking import hide, secrets_here
from holdfast.observe.traces.names import (
    ERROR_TYPE,
    EXCEPTION,
    EXCEPTION_MESSAGE,
    EXCEPTION_TRACE,
    EXCEPTION_TYPE,
)

_LONGEST = 500  # characters of one message
_NO_FAILURE = (Snooze, Cancel, Gated)


def tell(span: Span, error: BaseException) -> None:
    """What is no failure, such as a snooze or a cancellation from outside, leaves the status as it is."""
    kind = _type(error)
    if not isinstance(error, Exception) or isinstance(error, _NO_FAILURE):
        return
    said = message(error)
    span.set_status(Status(StatusCode.ERROR, said))
    span.set_attribute(ERROR_TYPE, kind)
    trace = dedent(Failure(error, secrets_here.get()).text())
    span.add_event(EXCEPTION, {EXCEPTION_TYPE: kind, EXCEPTION_MESSAGE: said, EXCEPTION_TRACE: trace})


def message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  an exception that cannot be printed must not hide itself
        return type(error).__name__
    return shortened(text)


def shortened(text: str) -> str:
    text = hide(text, secrets_here.get())  # before it is cut, or half a secret would stay
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"


def _type(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
