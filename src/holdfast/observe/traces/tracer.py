"""Makes the spans: which kind each is of, what is its parent, and what it is linked to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import (
    Link,
    NoOpTracerProvider,
    ProxyTracerProvider,
    SpanKind,
    Tracer,
    TracerProvider,
    get_current_span,
    get_tracer_provider,
)

from holdfast.kernel.context import context
from holdfast.kernel.here import version
from holdfast.observe.traces import names
from holdfast.observe.traces.parents import below, link, read, write
from holdfast.observe.traces.spans import SpanBlock, unharmed

T = TypeVar("T")
_EVERY = 50  # questions of which one looks whether there is an SDK by now
_MOST_LINKS = 128  # of one span: what the SDK keeps, unless it is told otherwise


class OtelTracer:
    """`provider` None: the one of the process, as soon as there is one."""

    def __init__(self, provider: TracerProvider | None) -> None:
        self._tracer: Tracer | None = None if provider is None else _of(provider)
        self._asked = 0

    def is_on(self) -> bool:
        if self._tracer is not None:
            return True
        self._asked += 1  # looking each time would cost a drain two percent
        return self._asked % _EVERY == 1 and self._found()

    def _found(self) -> bool:
        provider = get_tracer_provider()
        if isinstance(provider, ProxyTracerProvider | NoOpTracerProvider):
            return False
        self._tracer = _of(provider)
        return True

    # --- spans ---

    def sends(self, name: str, queue: str | None, ids: Sequence[str], story: str | None) -> SpanBlock:
        """Its context is stored with all of them: what becomes of each begins here."""
        told = names.messaging("send", "send")
        told[names.DESTINATION] = queue or name
        if queue is not None:
            told[names.TASK], told[names.QUEUE] = name, queue
        if len(ids) == 1:
            told[names.MESSAGE] = ids[0]
        else:
            told[names.COUNT] = len(ids)
        if story is not None:
            told[names.CONVERSATION] = told[names.STORY] = story
        return self._below_current(f"send {name}", SpanKind.PRODUCER, told)

    def runs(self, claim: Any) -> SpanBlock:
        """The span that has stored the job is its parent, and it is linked to it, as the conventions want it of a consumer."""
        name, told = names.of_claim(claim)
        creator = read(claim.trace)
        return self._block(name, below(creator), SpanKind.CONSUMER, told, link(creator))

    def steps(self, name: str, kind: str) -> SpanBlock:
        return self._inside(f"step {name}", {names.STEP: name, names.STEP_KIND: kind})

    def calls(self, guard: str) -> SpanBlock:
        return self._inside(f"call {guard}", {names.GUARD: guard})

    def publishes(self, traces: Sequence[str | None], broker: str | None) -> SpanBlock:
        """Events of many stories in one batch: a trace of its own, linked to each of them."""
        told = names.messaging("publish", "send")
        told[names.COUNT] = len(traces)
        if broker is not None:
            told[names.BROKER] = broker
        found = [Link(each) for each in map(read, dict.fromkeys(traces)) if each is not None]
        return self._block("publish", below(None), SpanKind.CLIENT, told, found[:_MOST_LINKS])

    def _inside(self, name: str, told: names.Attributes) -> SpanBlock:
        if (story := context().correlation_id) is not None:
            told[names.STORY] = story
        return self._below_current(name, SpanKind.INTERNAL, told)

    def _below_current(self, name: str, kind: SpanKind, told: names.Attributes) -> SpanBlock:
        return self._block(name, _around(), kind, told)

    def _block(
        self,
        name: str,
        around: Context | None,
        kind: SpanKind,
        told: names.Attributes,
        links: Sequence[Link] = (),
    ) -> SpanBlock:
        """When no span can be made, what was current stays so."""
        assert self._tracer is not None
        span = get_current_span(around)
        with unharmed():
            span = self._tracer.start_span(name, around, kind, told, links)
        return SpanBlock(span, around)

    # --- what is current ---

    def follows(self, trace: str) -> None:
        if (told := read(trace)) is not None:
            get_current_span().add_link(told)

    def carried(self, function: Callable[[], T]) -> Callable[[], T]:
        around = get_current()

        def within() -> T:
            token = attach(around)
            try:
                return function()
            finally:
                detach(token)

        return within

    def traceparent(self) -> str | None:
        return write(get_current_span().get_span_context())

    def ids(self) -> tuple[str, str] | None:
        told = get_current_span().get_span_context()
        return (f"{told.trace_id:032x}", f"{told.span_id:016x}") if told.is_valid else None


def _around() -> Context | None:
    """None: what is current. Without a current span, a request or a program may have said which trace this belongs to."""
    if get_current_span().get_span_context().is_valid:
        return None
    told = read(context().trace)
    return None if told is None else below(told)


def _of(provider: TracerProvider) -> Tracer:
    return provider.get_tracer("holdfast", version(), names.SCHEMA)
