"""Where spans begin, if anybody traces: each place asks here. Without a tracer that costs a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from holdfast.kernel.context import context

T = TypeVar("T")


class Span(Protocol):
    """What goes on now. It is over at the end of its block; an exception that leaves the block is told as its failure."""

    @property
    def traceparent(self) -> str | None:
        """What is stored with that which follows from it; None: nobody traces this."""

    def set(self, name: str, value: str | bool | float) -> None: ...
    def failed(self, error: BaseException) -> None: ...
    def ended(self, ending: Any) -> None:
        """Of a run: its outcome."""


Block = AbstractContextManager[Span]


class Tracer(Protocol):
    """Makes spans. What it is given is of the engine; how that is called in a trace is the tracer's to say."""

    def is_on(self) -> bool:
        """Whether anybody takes spans."""

    def sends(self, name: str, queue: str | None, ids: Sequence[str], story: str | None) -> Block: ...
    def runs(self, claim: Any) -> Block: ...
    def steps(self, name: str, kind: str) -> Block: ...
    def calls(self, guard: str) -> Block: ...
    def publishes(self, traces: Sequence[str | None], broker: str | None) -> Block: ...
    def follows(self, trace: str) -> None:
        """The current span goes on because of this one, too."""

    def carried(self, function: Callable[[], T]) -> Callable[[], T]:
        """The same, with the current span of here, on whichever thread it is called."""

    def traceparent(self) -> str | None:
        """Of the current span."""

    def ids(self) -> tuple[str, str] | None:
        """Of the current trace and span."""


_tracers: list[Tracer] = []  # the last one counts


def trace_by(tracer: Tracer) -> Callable[[], None]:
    """From now on spans of this process are made by it; call what is returned to stop."""
    _tracers.append(tracer)

    def stop() -> None:
        if tracer in _tracers:
            _tracers.remove(tracer)

    return stop


def is_traced() -> bool:
    """Whether the program has asked for spans, also when nobody takes them yet."""
    return bool(_tracers)


def tracer() -> Tracer | None:
    """Who makes spans now; None: nobody does."""
    if not _tracers:
        return None
    found = _tracers[-1]
    return found if found.is_on() else None


def traceparent() -> str | None:
    """What is stored with a job or an event that is made here: the current span, else what this story came with."""
    found = tracer()
    return (None if found is None else found.traceparent()) or context().trace


def ids() -> tuple[str, str] | None:
    """Of the trace and the span that are current here; None: there is none."""
    found = tracer()
    return None if found is None else found.ids()


def step(name: str, kind: str) -> AbstractContextManager[Span | None]:
    """A span around one step."""
    found = tracer()
    return nullcontext() if found is None else found.steps(name, kind)


def carried(function: Callable[[], T]) -> Callable[[], T]:
    """The function as it is called on another thread: with the span that is current here."""
    found = tracer()
    return function if found is None else found.carried(function)


def follows(trace: str | None) -> None:
    """What goes on here does so because of this span, too."""
    if trace is not None and (found := tracer()) is not None:
        found.follows(trace)
