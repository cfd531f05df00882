"""Events on NATS JetStream: a stream for a topic, a subject for each type, a durable consumer for each group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from holdfast.kernel.clock import moment, now, recover
from holdfast.kernel.errors import TransportUnavailable
from holdfast.kernel.names import check_name, check_seconds
from holdfast.kernel.portions import portions
from holdfast.kernel.telemetry import note
from holdfast.transport.nats_api import Api, Missing, Stream, Trouble, ago, refusal, status_of
from holdfast.transport.nats_consumer import NatsConsumer
from holdfast.transport.nats_link import Connection, Link
from holdfast.transport.nats_loss import UNKNOWN, loss_of
from holdfast.transport.nats_names import one_word, subject
from holdfast.transport.nats_url import parse
from holdfast.transport.port import Message, Refused
from holdfast.transport.refusals import judged, too_large
from holdfast.transport.settings import read

_LOOKS, _MOMENT = 25, 0.02  # and seconds between them
_IN_FLIGHT = 500  # sent and not answered yet
_HEADER = len("NATS/1.0\r\nNats-Msg-Id: \r\n\r\n")  # it counts


class _Answer(msgspec.Struct, frozen=True):
    """Of the stream, to one message."""

    seq: int = 0
    error: Trouble | None = None


class NatsTransport:
    """`NatsTransport("nats://localhost:4222?topic=holdfast.events")`: NATS 2.10 or newer, with JetStream."""

    name = "nats"

    def __init__(self, url: str) -> None:
        target = parse(url)
        settings = read(target.more, topic="holdfast.events", shown=target.shown)
        self._topic = settings.topic
        self._subjects = subject(self._topic)
        self._link = Link(target, patience=settings.timeout)
        self._api = Api(self._link, one_word(self._topic))
        self._stream: Stream | None = None  # as we have seen it last
        self.loss = UNKNOWN

    def __repr__(self) -> str:
        return f"NatsTransport({self._link.shown!r}, topic={self._topic!r})"

    async def open(self) -> None:
        self._link.open()
        self._stream = None
        await self._known()

    async def close(self) -> None:
        await self._link.close()

    async def _known(self) -> Stream:
        """The stream, made when it is missing."""
        if self._stream is None:
            self._stream = await self._find() or await self._make()
            self.loss = loss_of(self._stream.config)
        return self._stream

    async def _find(self) -> Stream | None:
        try:
            found = await self._api.stream()
        except Missing:
            return None
        if f"{self._subjects}.>" not in found.config.subjects:
            raise TransportUnavailable(
                f"NATS at {self._link.shown} has a stream for the topic {self._topic!r} with other subjects "
                f"({', '.join(found.config.subjects)}). Add {self._subjects}.> to it, or give the URL another ?topic=."
            )
        return found

    async def _make(self) -> Stream:
        note("transport.stream_made", transport="nats", topic=self._topic)
        return await self._api.make_stream([f"{self._subjects}.>"], f"Holdfast: {self._topic}"[:1000])

    async def publish(self, messages: Sequence[Message]) -> list[Refused | None]:
        if not messages:
            return []
        stream, connection = await self._known(), await self._link.connection()
        largest = connection.client.max_payload
        if stream.config.max_msg_size >= 0:
            largest = min(largest, stream.config.max_msg_size)
        answers = judged(messages, lambda message: too_large(_size(message), largest, "this NATS"))
        accepted = [message for message, answer in zip(messages, answers, strict=True) if answer is None]
        for wave in _waves(accepted):
            await self._send(connection, wave)
        return answers

    async def _send(self, connection: Connection, wave: list[Message]) -> None:
        answers = await self._link.answers(
            connection,
            (
                (f"{self._subjects}.{subject(message.type)}", message.body, {"Nats-Msg-Id": message.id})
                for message in wave
            ),
        )
        for answer in answers:
            self._check(answer)

    def _check(self, answer: Any) -> None:
        where = f"NATS at {self._link.shown}"
        if status_of(answer):  # nobody listens: the stream is gone, or not there yet
            self._stream = None
            raise TransportUnavailable(f"{where} has no stream for the topic {self._topic!r} now.")
        told = msgspec.json.decode(answer.data, type=_Answer)
        if told.error is not None:
            self._stream = None  # its settings may have changed
            raise refusal(where, told.error)

    async def consumer(
        self, group: str, member: str, *, redeliver_after: float, from_start: bool = False
    ) -> NatsConsumer:
        check_name("group", group)
        check_name("member", member)
        check_seconds("redeliver_after", redeliver_after, 0.001)
        consumer = NatsConsumer(self._link, self._api, self._again, group, redeliver_after=redeliver_after)
        await self._known()
        try:
            await consumer.join(from_start=from_start)
        except Missing:  # the stream is gone since we have seen it
            await self._again()
            await consumer.join(from_start=from_start)
        return consumer

    async def _again(self) -> None:
        """Make the stream again when it is gone."""
        self._stream = None
        await self._known()

    async def groups(self) -> list[str]:
        return sorted(group.group for group in await self._api.groups() if group.group is not None)

    async def forget(self, group: str) -> None:
        try:
            await self._api.forget(one_word(group))
        except Missing:
            return

    async def backlog(self, group: str) -> int | None:
        """The server counts for a group a moment after it has taken a message: until then it is asked again."""
        try:
            for _ in range(_LOOKS):
                stream = (await self._api.stream()).state
                found = await self._api.group(one_word(group))
                begun = max(found.delivered.stream_seq, stream.first_seq - 1)
                if found.num_pending >= stream.last_seq - begun - stream.num_deleted:
                    break
                await recover(_MOMENT)
        except Missing:
            return None
        return found.num_pending + found.num_ack_pending

    async def oldest(self) -> float | None:
        stream = await self._api.stream()
        if not stream.state.messages or stream.state.first_ts is None:
            return None
        here = stream.ts or moment(now())
        return max(0.0, (here - stream.state.first_ts).total_seconds())

    async def trim(self, *, keep: float) -> None:
        """A group that joins from the start meanwhile may miss what this forgets."""
        check_seconds("keep", keep)
        stream = await self._api.stream()
        first = await self._api.first_since(ago(stream.ts or moment(now()), keep))
        for group in await self._api.groups():
            if group.group is not None:
                first = min(first, group.ack_floor.stream_seq + 1)
        if first > stream.state.first_seq:
            await self._api.purge(first)


def _size(message: Message) -> int:
    return _HEADER + len(message.id.encode()) + len(message.body)


def _waves(messages: list[Message]) -> Iterator[list[Message]]:
    """Messages that may be under way together: of each key only one, so that none can overtake another."""
    waves: list[list[Message]] = []
    seen: dict[str, int] = {}
    for message in messages:
        number = 0 if message.key is None else seen.get(message.key, 0)
        if message.key is not None:
            seen[message.key] = number + 1
        if number == len(waves):
            waves.append([])
        waves[number].append(message)
    for wave in waves:
        yield from portions(wave, _size, most=_IN_FLIGHT)
