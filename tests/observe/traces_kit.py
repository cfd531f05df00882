"""Spans as a test reads them: by name, with what they say, their parents and their links."""

from __future__ import annotations

from contextlib import contextmanager

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast.observe import traces


class Spans:
    """What this process has made."""

    def __init__(self, **options) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False, **options)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def all(self):
        return self.exporter.get_finished_spans()

    def called(self, name):
        return [each for each in self.all if each.name == name]

    def one(self, name):
        found = self.called(name)
        assert len(found) == 1, f"{name}: {[each.name for each in self.all]}"
        return found[0]

    def says(self, name):
        return dict(self.one(name).attributes)


@contextmanager
def spans_of(**options):
    found = Spans(**options)
    stop = traces(found.provider)
    try:
        yield found
    finally:
        stop()


def parent(span):
    return None if span.parent is None else span.parent.span_id


def own(span):
    return span.context.span_id


def linked(span):
    return [each.context.span_id for each in span.links]
