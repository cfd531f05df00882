"""What the suite of transports needs of an adapter's author, and the hands that its tests share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from holdfast.kernel.clock import monotonic, sleep, timeout
from holdfast.kernel.errors import TransportUnavailable
from holdfast.kernel.ids import new_ids
from holdfast.kernel.world import World
from holdfast.transport.port import Consumer, Message, Received, Transport

T = TypeVar("T")

LONG = 60.0  # seconds that nobody waits unless a test fails
HELD = 600.0  # seconds for which a member may hold a message where nothing is to come again
SOON = 0.3  # seconds, where it is


class TransportHarness(Protocol):
    """One topic for one test. `open` again starts over with an empty one."""

    world: World  # the real one, where the broker has a clock of its own
    by_partition: (
        bool  # members own partitions of the topic: one that leaves hands on all that it has not acknowledged
    )
    largest: int | None  # bytes of a body that the broker refuses; None: there is no such limit

    async def open(self) -> Transport:
        """An open transport on an empty topic."""

    async def second(self, transport: Transport) -> Transport:
        """Another client of the same topic, such as another process would have."""

    async def close(self) -> None:
        """Close every client and forget the topic."""


class BrokerHarness(TransportHarness, Protocol):
    """One whose broker the test may break. It keeps its data when it is killed."""

    url: str | None  # for another process; None: it cannot be reached from one
    keeps_acks: bool  # also the newest ones, when it is killed

    async def hasty(self, transport: Transport) -> Transport:
        """A second client that waits for half a second at most until the broker answers."""

    async def freeze(self) -> None:
        """The broker answers nobody, and hangs up on nobody."""

    async def thaw(self) -> None: ...
    async def kill(self) -> None:
        """The broker is gone at once."""

    async def start(self) -> None:
        """It is back, with its data."""

    async def cut(self) -> None:
        """End every connection; a new one may be made."""

    async def wipe(self, transport: Transport) -> None:
        """The broker loses the topic: its messages and its groups."""


def bodies(count: int, first: int = 1) -> list[bytes]:
    return [b'{"n":%d}' % number for number in range(first, first + count)]


def messages(texts: Sequence[bytes], key: str | None = None, type_: str = "order.placed") -> list[Message]:
    ids = new_ids(len(texts))
    return [Message(id_, type_, key, text) for id_, text in zip(ids, texts, strict=True)]


async def publish(transport: Transport, texts: Sequence[bytes], key: str | None = None) -> None:
    assert await transport.publish(messages(texts, key)) == [None] * len(texts)


async def take(consumer: Consumer, count: int, *, limit: int = 100) -> list[Received]:
    """So many deliveries, in their order."""
    found: list[Received] = []
    end = monotonic() + LONG
    while len(found) < count:
        assert monotonic() < end, f"only {len(found)} of {count} messages came: {found}"
        found += await consumer.fetch(min(limit, count - len(found)), wait=1)
    return found


async def take_all(
    consumer: Consumer, wanted: Sequence[bytes], *, ack: bool = True, limit: int = 100
) -> list[Received]:
    """Until each of these was there at least once; what comes, in its order."""
    found: list[Received] = []
    end = monotonic() + LONG
    while missing := set(wanted).difference(each.body for each in found):
        assert monotonic() < end, f"these never came: {sorted(missing)}"
        some = await stubborn(lambda: consumer.fetch(limit, wait=1))
        if ack:
            await ack_stubbornly(consumer, some)
        found += some
    return found


async def trim(transport: Transport) -> None:
    """Whatever is older than now; brokers count in milliseconds."""
    await sleep(0.01)
    await transport.trim(keep=0)


async def stubborn(call: Callable[[], Awaitable[T]]) -> T:
    """Until the broker does it."""
    end = monotonic() + LONG
    while True:
        try:
            return await call()
        except TransportUnavailable:
            if monotonic() > end:
                raise
            await sleep(0.05)


async def publish_stubbornly(transport: Transport, texts: Sequence[bytes], key: str | None = None) -> None:
    """The same messages, with the same ids, as the relay does."""
    batch = messages(texts, key)
    assert await stubborn(lambda: transport.publish(batch)) == [None] * len(texts)


async def ack_stubbornly(consumer: Consumer, found: Sequence[Received]) -> None:
    await stubborn(lambda: consumer.ack(marks_of(found)))


async def in_time(work: Awaitable[T]) -> T:
    """Nothing waits without end, however busy the machine is."""
    async with timeout(LONG):
        return await work


def texts_of(found: Sequence[Received]) -> list[bytes]:
    return [each.body for each in found]


def marks_of(found: Sequence[Received]) -> list[str]:
    return [each.mark for each in found]


def firsts(texts: Sequence[bytes]) -> list[bytes]:
    """Without what came again."""
    return list(dict.fromkeys(texts))
