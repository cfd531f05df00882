"""A message from a broker: what a delivery needs of it, and how one that nobody understood is kept and read once more."""

from __future__ import annotations

import msgspec

from holdfast.events import envelope
from holdfast.events.routes import Telling
from holdfast.kernel.clock import moment
from holdfast.transport.port import Received

_HEAD, _BREAK = b"NATS/1.0\r\n", b"\r\n\r\n"  # as headers stand before a body on NATS; no JSON begins so


def telling(body: bytes, *, at: float) -> Telling:
    """Raises PayloadError when it is no event. One that does not say when it was made is dated by its arrival."""
    found = envelope.read(body)
    if found.time is None:
        body = msgspec.json.encode(msgspec.structs.replace(found, time=moment(at)))
    return Telling(
        found.identity, found.type, found.partitionkey, found.correlationid, found.traceparent, body
    )


def as_it_came(received: Received) -> bytes:
    """With its headers, where it has any."""
    if not received.headers:
        return received.body
    lines = "\r\n".join(f"{name}: {value}" for name, value in received.headers.items())
    return _HEAD + lines.encode(errors="backslashreplace") + _BREAK + received.body


def body_of(raw: bytes) -> bytes:
    """The message alone, of what was kept."""
    return raw.partition(_BREAK)[2] if raw.startswith(_HEAD) else raw
