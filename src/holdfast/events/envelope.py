"""An event on the wire: CloudEvents 1.0 as JSON. Built from the outbox row alone, so every delivery has the same bytes."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from holdfast.events.event import Event
from holdfast.events.patterns import check_type
from holdfast.kernel.clock import moment
from holdfast.kernel.codec import decode, decode_stored
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.names import LONGEST_NAME, check_name
from holdfast.kernel.show import show
from holdfast.store.event_records import OutboxEvent
from holdfast.store.records import ARGS_LIMIT

SOURCE = "holdfast"
ROOM = 8 * 1024  # bytes for all that is not data: names have at most 500 each, and a quote in them takes two
DATA_LIMIT = ARGS_LIMIT - ROOM
_JSON = "application/json"


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of CloudEvents, and those of its extensions for partitioning, sequence and distributed tracing."""

    specversion: Literal["1.0"]
    id: str
    source: str
    type: str
    time: Annotated[datetime, msgspec.Meta(tz=True)]
    datacontenttype: str | None = None
    partitionkey: str | None = None
    sequence: str | None = None  # the version of its key, in 19 digits: texts are in order as the numbers are
    correlationid: str | None = None
    causationid: str | None = None
    traceparent: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def identity(self) -> str:
        """By which a group knows it again. Who else makes events has ids of their own, unique with their source."""
        if self.source == SOURCE:
            return self.id
        text = f"{self.source} {self.id}"
        return text if len(text.encode()) <= LONGEST_NAME else hashlib.sha256(text.encode()).hexdigest()

    @property
    def version(self) -> int | None:
        return None if self.sequence is None else int(self.sequence)

    def event(self, data: Any = Any) -> Event[Any]:
        """As a handler sees it, with its data in the given type. Raises PayloadError when it does not fit."""
        return Event(
            id=self.id,
            type=self.type,
            data=decode_stored(bytes(self.data), data),
            key=self.partitionkey,
            version=self.version,
            time=self.time,
            source=self.source,
            correlation_id=self.correlationid,
            causation_id=self.causationid,
            trace=self.traceparent,
        )


_encoder = msgspec.json.Encoder()


def encode(event: OutboxEvent) -> bytes:
    """The same bytes whenever, and by whomever, it is published."""
    return _encoder.encode(
        Envelope(
            specversion="1.0",
            id=event.id,
            source=SOURCE,
            type=event.type,
            time=moment(event.time),
            datacontenttype=_JSON,
            partitionkey=event.key,
            sequence=None if event.version is None else f"{event.version:019d}",
            correlationid=event.correlation_id,
            causationid=event.causation_id,
            traceparent=event.trace,
            data=msgspec.Raw(event.data.encode()),
        )
    )


def read(body: bytes) -> Envelope:
    """A message from a wire. Raises PayloadError that says what is wrong with it, whoever has sent it."""
    found = decode(body, Envelope, limit=ARGS_LIMIT - 64)  # it becomes the argument of a job
    try:
        _check(found)
    except PayloadError:
        raise
    except UsageError as error:
        raise PayloadError(f"This is no event of Holdfast: {error}") from None
    return found


def _check(found: Envelope) -> None:
    check_name("id", found.id)
    check_type(found.type)
    check_name("source", found.source)
    for kind in ("partitionkey", "correlationid", "causationid", "traceparent"):
        if (value := getattr(found, kind)) is not None:
            check_name(kind, value)
    if found.datacontenttype not in (None, _JSON):
        raise PayloadError(f"Its data is {show(found.datacontenttype)}; Holdfast reads application/json.")
    if found.sequence is not None and not (found.sequence.isdecimal() and len(found.sequence) <= 19):
        raise PayloadError(f"Its sequence is {show(found.sequence)}, and no version of a key: 1, 2, 3 …")
