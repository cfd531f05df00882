"""An event on the wire: CloudEvents 1.0 as JSON. Built from the outbox row alone, so every delivery has the same bytes."""

from __future__ import annotations

import hashlib
import re
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
_NUMBER, _NEWEST = re.compile(r"[0-9]{1,19}"), 2**63 - 1
# Also application/vnd.shop.order+json, and what follows: charset=utf-8. That the data is in JSON is checked anyway.
_JSON_TYPE = re.compile(r"[\w.+-]+/([\w.+-]+\+)?json\s*(;.*)?", re.ASCII | re.IGNORECASE)


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of CloudEvents, and those of its extensions for partitioning, sequence and distributed tracing."""

    specversion: Literal["1.0"]
    id: str
    source: str
    type: str
    time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None  # others need not say it
    datacontenttype: str | None = None
    partitionkey: str | None = None
    sequence: str | None = None  # of ours the version, in 19 digits: texts are in order as the numbers are
    correlationid: str | None = None
    causationid: str | None = None
    traceparent: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")
    data_base64: str | None = None  # of others: bytes, which no handler takes

    @property
    def identity(self) -> str:
        """By which a group knows it again. Who else makes events has ids of their own, unique with their source."""
        if self.source == SOURCE:
            return self.id
        text = f"{self.source} {self.id}"
        if " " in self.source:  # no URI has one: nobody could tell where it ends
            text = f"{len(self.source)} {text}"
            return hashlib.sha256(text.encode()).hexdigest()
        return text if len(text.encode()) <= LONGEST_NAME else hashlib.sha256(text.encode()).hexdigest()

    @property
    def version(self) -> int | None:
        """None too when others count in another way: then nobody can tell which is older."""
        number = (
            int(self.sequence) if self.sequence is not None and _NUMBER.fullmatch(self.sequence) else None
        )
        return None if number is None or number > _NEWEST else number

    def event(self, data: Any = Any) -> Event[Any]:
        """As a handler sees it, with its data in the given type. Raises PayloadError when it does not fit."""
        if self.time is None:
            raise PayloadError("It does not say when it was made.")
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
    found = decode(
        body, Envelope, limit=ARGS_LIMIT - 128
    )  # it becomes the argument of a job, perhaps with a time
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
    for kind in ("partitionkey", "sequence", "correlationid", "causationid", "traceparent"):
        if (value := getattr(found, kind)) is not None:
            check_name(kind, value)
    if found.data_base64 is not None:
        raise PayloadError("Its data is bytes (data_base64); Holdfast reads application/json.")
    if found.datacontenttype is not None and not _JSON_TYPE.fullmatch(found.datacontenttype):
        raise PayloadError(f"Its data is {show(found.datacontenttype)}; Holdfast reads application/json.")
