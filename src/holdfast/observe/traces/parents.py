"""The traceparent that is stored with a job or an event, and the span that it names."""

from __future__ import annotations

import re
from functools import lru_cache

from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    set_span_in_context,
)

_FORM = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?", re.ASCII)
_ROOT = set_span_in_context(INVALID_SPAN, Context())


@lru_cache(maxsize=1_000)  # jobs of one batch have the same
def read(trace: str | None) -> SpanContext | None:
    """The span of another process; None: it is no traceparent."""
    found = None if trace is None else _FORM.fullmatch(trace)
    if found is None or trace is None or trace.startswith("ff"):
        return None
    told = SpanContext(
        int(found[1], 16), int(found[2], 16), is_remote=True, trace_flags=TraceFlags(int(found[3], 16) & 1)
    )
    return told if told.is_valid else None


def write(told: SpanContext) -> str | None:
    if not told.is_valid:
        return None
    return f"00-{told.trace_id:032x}-{told.span_id:016x}-{told.trace_flags & 1:02x}"


def below(parent: SpanContext | None) -> Context:
    """A context with this parent alone: none of the worker's own spans. None: a new trace begins."""
    return _ROOT if parent is None else set_span_in_context(NonRecordingSpan(parent), Context())


def link(told: SpanContext | None) -> list[Link]:
    return [] if told is None else [Link(told)]
