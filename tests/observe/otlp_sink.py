"""A collector of traces: a small HTTP server that decodes what OTLP exporters send, and keeps it."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class Sent:
    """One span as it came over the wire."""

    service: str
    name: str
    kind: int
    trace: str
    id: str
    parent: str  # empty: none
    links: tuple[str, ...]
    says: dict
    failed: bool


class Sink:
    def __init__(self) -> None:
        self.spans: list[Sent] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                assert self.path == "/v1/traces", self.path
                sink.spans += read(body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def called(self, name: str) -> list[Sent]:
        return [each for each in tuple(self.spans) if each.name == name]

    def one(self, name: str) -> Sent:
        found = self.called(name)
        assert len(found) == 1, f"{name}: {[(each.service, each.name) for each in self.spans]}"
        return found[0]


def read(body: bytes) -> list[Sent]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        Sent(
            service=said(resource.resource.attributes)["service.name"],
            name=span.name,
            kind=span.kind,
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            links=tuple(each.span_id.hex() for each in span.links),
            says=said(span.attributes),
            failed=span.status.code == span.status.STATUS_CODE_ERROR,
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def said(attributes) -> dict:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
