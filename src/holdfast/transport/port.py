"""What a transport can do: publish messages, and give each group all of them, again and again until acknowledged.

Every verb but `close` raises TransportUnavailable when the broker does not answer in its time, or cannot do it now: none
waits without end, and the next call tries again, with a new connection where the old one broke.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class Message(msgspec.Struct, frozen=True, gc=False):
    """One event on the wire. The body is the whole of it (CloudEvents 1.0 JSON); the rest is for the broker to route by."""

    id: str
    type: str
    key: str | None  # messages of one key stay in order
    body: bytes


class Refused(msgspec.Struct, frozen=True):
    """The broker will not take this message, now or later: such as one that is too large."""

    reason: str
    behind: bool = (
        False  # nothing is wrong with it: it was not sent, because one of its key ahead of it was refused
    )


class Received(msgspec.Struct, frozen=True):
    """One delivery of a message, to be acknowledged by its mark."""

    body: bytes
    mark: str  # the broker's own name of this delivery: stream id, sequence, partition and offset
    redelivered: bool = False  # somebody had it before, and did not acknowledge it
    headers: Mapping[str, str] = {}  # beside the body, where the broker has such


class Consumer(Protocol):
    """One member of a group. Each message goes to one member; what a member holds too long goes to another."""

    async def fetch(self, limit: int, *, wait: float) -> list[Received]:
        """At most so many messages, as soon as there is one; empty after `wait` seconds.

        What dead members held, and what was given back, comes first and in its order: newer messages of a key would overtake it.
        No more are taken once they have PORTION bytes together. One call at a time. A call that is cancelled loses nothing: what was on its way comes again.
        """

    async def ack(self, marks: Sequence[str]) -> None:
        """They are stored: never give them to this group again. Where there are offsets, only without a gap.

        When it returns, the broker has it. They may come again after it has raised, and when the broker dies: some keep
        messages on their disk at once, and acknowledgements a moment later.
        """

    async def give_back(self, marks: Sequence[str]) -> None:
        """They were not stored: another member, or this one, may have them now."""

    async def close(self) -> None:
        """Leave: what is held and not acknowledged is given back, when the broker can be told."""


class Transport(Protocol):
    name: str  # redis, nats
    loss: str  # in words: what may be lost when the broker dies, with the settings that it has

    async def open(self) -> None:
        """Raises TransportUnavailable when the broker does not answer; the verbs may be used all the same."""

    async def close(self) -> None: ...
    async def publish(self, messages: Sequence[Message]) -> list[Refused | None]:
        """In this order. None: the broker has it, as safely as `loss` says. Raises TransportUnavailable when that is not known.

        After it has raised, the same messages may be published again: those with one id are one event. The broker never gets
        a message without those of the same key that are ahead of it in the call.
        """

    async def consumer(
        self, group: str, member: str, *, redeliver_after: float, from_start: bool = False
    ) -> Consumer:
        """Join a group. `redeliver_after`: seconds for which a member may hold a message without acknowledging it.

        All members of a group say the same; else it is undefined whose counts. A group that is new hears what is published from now on, or all that is kept; one that is known goes on.
        """

    async def groups(self) -> list[str]:
        """By name."""

    async def forget(self, group: str) -> None:
        """Nothing is kept for this group any more."""

    async def backlog(self, group: str) -> int | None:
        """How many messages the group has not acknowledged; None: there is no such group, or the broker cannot tell."""

    async def oldest(self) -> float | None:
        """Seconds since the oldest message that it keeps was published: so old may be what a group gets once more.

        None: it has no message.
        """

    async def trim(self, *, keep: float) -> None:
        """Forget messages older than `keep` seconds that every group has acknowledged."""
