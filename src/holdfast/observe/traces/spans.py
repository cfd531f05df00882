"""One span as a block: current while the block runs, ended with it, and told of what went wrong."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from holdfast.kernel.outcomes import Cancel, Dead, Done, Retry, Snooze, Unknown
from holdfast.kernel.telemetry import note
from holdfast.observe.traces.failures import shortened, tell
from holdfast.observe.traces.names import OUTCOME
from holdfast.observe.traces.parents import write

_OUTCOMES: dict[type, str] = {
    Done: "succeeded",
    Retry: "failed",
    Snooze: "snoozed",
    Cancel: "cancelled",
    Dead: "dead",
    Unknown: "unknown",
}
_FAILED = (Retry, Dead, Unknown)


@contextmanager
def unharmed() -> Generator[None, None, None]:
    """What goes wrong in the SDK, such as in a processor of the program, must not stand in the way of the work."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        note("traces.failed", error=repr(error))


class SpanBlock:
    __slots__ = ("_around", "_is_told", "_span", "_token")

    def __init__(self, span: Span, around: Context | None = None) -> None:
        self._span, self._around, self._is_told = span, around, False
        self._token: Any = None

    def __enter__(self) -> Self:
        self._token = attach(set_span_in_context(self._span, self._around))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.failed(error)
        with unharmed():
            self._span.end()
        if not isinstance(
            error, GeneratorExit
        ):  # thrown away, perhaps by another task: then it is no longer current
            detach(self._token)

    @property
    def traceparent(self) -> str | None:
        return write(self._span.get_span_context())

    def set(self, name: str, value: str | bool | float) -> None:
        with unharmed():
            self._span.set_attribute(name, value)

    def failed(self, error: BaseException) -> None:
        if not self._is_told and self._span.is_recording():
            self._is_told = True
            with unharmed():
                tell(self._span, error)

    def ended(self, ending: Any) -> None:
        """What the store is told counts: a run may fail without an exception, and an exception be no failure."""
        if self._span.is_recording():
            with unharmed():
                self._tell_end(ending)

    def _tell_end(self, ending: Any) -> None:
        self._span.set_attribute(OUTCOME, _OUTCOMES.get(type(ending), "released"))
        if isinstance(ending, _FAILED) and not self._is_told:
            why = ending.reason if isinstance(ending, Unknown) else ending.error
            first, *_ = (why or "").splitlines() or [""]
            self._span.set_status(Status(StatusCode.ERROR, shortened(first)))
