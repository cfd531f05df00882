"""What we say to JetStream, and what of its answers we read."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec

from holdfast.kernel.clock import moment
from holdfast.kernel.errors import TransportUnavailable
from holdfast.transport.nats_link import Link

T = TypeVar("T")

SECOND = 1_000_000_000  # durations are nanoseconds
GROUP_FIELD = "holdfast_group"  # in the metadata of a consumer: the group's name as it was given
_NO_STREAM, _NO_CONSUMER, _CONSUMER_EXISTS = 10059, 10014, 10148
_IS_OFF = (10039, 10076)


class Trouble(msgspec.Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class StreamConfig(msgspec.Struct, frozen=True):
    subjects: list[str] = []
    storage: str = "file"
    num_replicas: int = 1
    max_msgs: int = -1
    max_bytes: int = -1
    max_age: int = 0
    max_msgs_per_subject: int = -1
    max_msg_size: int = -1
    discard: str = "old"
    retention: str = "limits"


class StreamState(msgspec.Struct, frozen=True):
    messages: int = 0
    first_seq: int = 0
    first_ts: datetime | None = None
    last_seq: int = 0
    num_deleted: int = 0  # of those between the first and the last


class Stream(msgspec.Struct, frozen=True):
    config: StreamConfig
    state: StreamState
    ts: datetime | None = None  # the server's clock


class Sequences(msgspec.Struct, frozen=True):
    stream_seq: int = 0


class Group(msgspec.Struct, frozen=True):
    """A durable consumer."""

    name: str
    config: dict[str, Any]
    delivered: Sequences
    ack_floor: Sequences
    num_pending: int = 0
    num_ack_pending: int = 0

    @property
    def group(self) -> str | None:
        """None: it is not one of ours."""
        found: str | None = (self.config.get("metadata") or {}).get(GROUP_FIELD)
        return found


class _Page(msgspec.Struct, frozen=True):
    total: int
    consumers: list[Group] | None = None


class _Done(msgspec.Struct, frozen=True):
    success: bool = False


class _Failed(msgspec.Struct, frozen=True):
    error: Trouble | None = None


class Missing(TransportUnavailable):
    """There is no such stream or group."""


class Exists(TransportUnavailable):
    """There is such a group, with another beginning."""


class Api:
    """The verbs of JetStream for one stream."""

    def __init__(self, link: Link, stream: str) -> None:
        self._link, self._stream = link, stream

    async def stream(self) -> Stream:
        return await self._call(f"STREAM.INFO.{self._stream}", Stream)

    async def make_stream(self, subjects: list[str], description: str) -> Stream:
        """On the disk. When it is full it refuses what is new, and drops nothing."""
        config = {"name": self._stream, "description": description, "subjects": subjects, "storage": "file"}
        return await self._call(
            f"STREAM.CREATE.{self._stream}", Stream, {**config, "retention": "limits", "discard": "new"}
        )

    async def group(self, name: str) -> Group:
        return await self._call(f"CONSUMER.INFO.{self._stream}.{name}", Group)

    async def groups(self) -> list[Group]:
        found: list[Group] = []
        while True:
            page = await self._call(f"CONSUMER.LIST.{self._stream}", _Page, {"offset": len(found)})
            found += page.consumers or []
            if not page.consumers or len(found) >= page.total:
                return found

    async def make_group(self, config: dict[str, Any], action: Literal["create", "update"]) -> Group:
        name = config["durable_name"]
        asked = {"stream_name": self._stream, "config": config, "action": action}
        return await self._call(f"CONSUMER.CREATE.{self._stream}.{name}", Group, asked)

    def next_of(self, name: str) -> str:
        """Where a group is asked for messages."""
        return f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{name}"

    async def forget(self, name: str) -> None:
        await self._call(f"CONSUMER.DELETE.{self._stream}.{name}", _Done)

    async def first_since(self, moment: datetime) -> int:
        """The first message from then on, or the one to come: where a reader would begin."""
        config = {
            "deliver_policy": "by_start_time",
            "opt_start_time": moment.isoformat(),
            "ack_policy": "none",
        }
        reader = await self._call(
            f"CONSUMER.CREATE.{self._stream}",
            Group,
            {
                "stream_name": self._stream,
                "config": {**config, "mem_storage": True, "inactive_threshold": 5 * SECOND},
            },
        )
        await self.forget(reader.name)
        return reader.delivered.stream_seq + 1

    async def purge(self, before: int) -> None:
        await self._call(f"STREAM.PURGE.{self._stream}", _Done, {"seq": before})

    async def _call(self, verb: str, kind: type[T], asked: Any = None) -> T:
        payload = b"" if asked is None else msgspec.json.encode(asked)
        answer = await self._link.ask(f"$JS.API.{verb}", payload)
        where = f"NATS at {self._link.shown}"
        if status_of(answer):
            raise TransportUnavailable(
                f"{where} does not answer for JetStream. Start it with jetstream enabled (nats-server -js)."
            )
        try:
            trouble = msgspec.json.decode(answer.data, type=_Failed).error
            if trouble is None:
                return msgspec.json.decode(answer.data, type=kind)
        except msgspec.MsgspecError as error:
            raise TransportUnavailable(f"{where} gave an answer that is none: {error}.") from error
        raise refusal(where, trouble)


def refusal(where: str, trouble: Trouble) -> TransportUnavailable:
    text = f"({trouble.description}, code {trouble.err_code})"
    if trouble.err_code in (_NO_STREAM, _NO_CONSUMER):
        return Missing(f"{where} has no such stream or group {text}.")
    if trouble.err_code == _CONSUMER_EXISTS:
        return Exists(f"{where} has the group already {text}.")
    if trouble.err_code in _IS_OFF:
        return TransportUnavailable(f"{where} has no JetStream {text}. Enable it (nats-server -js).")
    return TransportUnavailable(f"{where} could not do it {text}.")


def status_of(message: Any) -> str | None:
    """404, 408, 409, 503 …: what the server says in place of a message.

    It waits for no answer to that. One that does is a delivery: others may have given theirs a header of this name.
    """
    headers = message.headers
    status: str | None = headers.get("Status") if headers and not message.data and not message.reply else None
    return status


def ago(now: datetime, seconds: float) -> datetime:
    """Long ago is 1970."""
    return moment(max(0.0, now.timestamp() - seconds))
