"""Events on Redis Streams: one stream for a topic, a consumer group for each group of subscribers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.kernel.errors import TransportUnavailable
from holdfast.kernel.names import check_name, check_seconds
from holdfast.kernel.portions import portions
from holdfast.transport.port import Message, Refused
from holdfast.transport.redis_consumer import RedisConsumer
from holdfast.transport.redis_link import Link
from holdfast.transport.redis_loss import SEEN, UNKNOWN, largest_of, loss_of
from holdfast.transport.redis_url import parse
from holdfast.transport.refusals import judged, too_large
from holdfast.transport.settings import NAMES, read

_AT_ONCE, _BYTES_AT_ONCE = (
    500,
    4 * 1024 * 1024,
)  # in one transaction of Redis, during which it does nothing else
_TRIMMED_AT_ONCE = 10_000
_MEMBER_KEPT = 86_400_000  # milliseconds: a day


class RedisTransport:
    """`RedisTransport("redis://localhost:6379/0?topic=holdfast:events")`: Redis 6.2 or newer, or Valkey; no cluster."""

    name = "redis"

    def __init__(self, url: str) -> None:
        target = parse(url, more=NAMES)
        settings = read(target.more, topic="holdfast:events", shown=target.shown)
        self._topic = settings.topic
        self._link = Link(target, patience=settings.timeout)
        self._largest = largest_of({})
        self.loss = UNKNOWN

    def __repr__(self) -> str:
        return f"RedisTransport({self._link.shown!r}, topic={self._topic!r})"

    async def open(self) -> None:
        self._link.open()
        await self._link.call("PING")
        settings = await self._settings()
        self.loss, self._largest = loss_of(settings), largest_of(settings)

    async def close(self) -> None:
        await self._link.close()

    async def _settings(self) -> dict[str, str]:
        """Those that tell what may be lost. Empty: we may not see them, as with many that are rented."""
        async with self._link.client.pipeline(transaction=False) as pipe:
            for name in SEEN:  # one by one, for older servers; and not all, for some are secrets
                pipe.config_get(name)
            try:
                found = await self._link.in_time(pipe.execute())
            except TransportUnavailable:
                return {}
        return {name: value for each in found for name, value in each.items()}

    async def publish(self, messages: Sequence[Message]) -> list[Refused | None]:
        answers = judged(messages, self._objection)
        accepted = [message for message, answer in zip(messages, answers, strict=True) if answer is None]
        for part in portions(accepted, _size, most=_AT_ONCE, room=_BYTES_AT_ONCE):
            await self._add(part)
        return answers

    def _objection(self, message: Message) -> str | None:
        return too_large(len(message.body), self._largest, "this Redis")

    async def _add(self, part: list[Message]) -> None:
        """All of them or none: a message that Redis has no room for must not be overtaken by the next of its key."""
        async with self._link.client.pipeline(transaction=True) as pipe:
            for message in part:
                pipe.execute_command("XADD", self._topic, "*", *_fields(message))
            await self._link.in_time(pipe.execute())

    async def consumer(
        self, group: str, member: str, *, redeliver_after: float, from_start: bool = False
    ) -> RedisConsumer:
        check_name("group", group)
        check_name("member", member)
        check_seconds("redeliver_after", redeliver_after, 0.001)
        consumer = RedisConsumer(self._link, self._topic, group, member, redeliver_after=redeliver_after)
        await consumer.join(from_start=from_start)
        return consumer

    async def groups(self) -> list[str]:
        return sorted(await self._groups())

    async def forget(self, group: str) -> None:
        if group in await self._groups():
            await self._link.call("XGROUP", "DESTROY", self._topic, group)

    async def backlog(self, group: str) -> int | None:
        facts = (await self._groups()).get(group)
        if facts is None or facts.get("lag") is None:
            return None
        return int(facts["lag"]) + int(facts["pending"])

    async def _groups(self) -> dict[str, dict[str, Any]]:
        if not await self._link.call("EXISTS", self._topic):
            return {}
        found = await self._link.in_time(self._link.client.xinfo_groups(self._topic))
        return {facts["name"].decode(): facts for facts in found}

    async def oldest(self) -> float | None:
        """By its own clock, of which the names of messages are made."""
        found = await self._link.call("XRANGE", self._topic, "-", "+", "COUNT", 1)
        if not found:
            return None
        seconds, microseconds = await self._link.call("TIME")
        born = int(found[0][0].partition(b"-")[0]) / 1000
        return max(0.0, float(seconds) + float(microseconds) / 1_000_000 - born)

    async def trim(self, *, keep: float) -> None:
        """In parts: whole nodes of the stream first, which is quick, and then the rest of the last one."""
        milliseconds = int(check_seconds("keep", keep) * 1000)
        while await self._link.run("trim", self._topic, milliseconds, _MEMBER_KEPT, _TRIMMED_AT_ONCE):
            pass
        await self._link.run("trim", self._topic, milliseconds, _MEMBER_KEPT, 0)


def _fields(message: Message) -> list[str | bytes]:
    """The body is all that is read back; the rest is for people who look at the stream."""
    key: list[str | bytes] = [] if message.key is None else ["key", message.key]
    return ["id", message.id, "type", message.type, *key, "body", message.body]


def _size(message: Message) -> int:
    return len(message.body)
