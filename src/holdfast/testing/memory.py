"""A broker in memory, for tests and for the simulation: it keeps the promises of a transport, and breaks on demand.

    broker = MemoryBroker()
    hf = Holdfast(transport=MemoryTransport(broker))

`broker.faults` makes each delivery unreliable in a way that real ones are; `freeze`, `stop` and `lose_tail` are for one moment.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

import msgspec

from holdfast.kernel.clock import monotonic, timeout
from holdfast.kernel.errors import NotOpen, TransportUnavailable
from holdfast.kernel.names import HUNDRED_YEARS, check_int, check_name, check_seconds
from holdfast.kernel.portions import portions
from holdfast.kernel.randomness import random
from holdfast.kernel.telemetry import note
from holdfast.transport.port import Message, Received, Refused
from holdfast.transport.refusals import judged, too_large


class Faults(msgspec.Struct):
    """How often, from 0 to 1, each of these happens. All of them are within what a transport promises."""

    lost_answer: float = 0.0  # a publication is stored, and its publisher hears that nobody knows
    duplicate: float = 0.0  # a message is stored a second time, somewhat later
    lost_ack: float = 0.0  # an acknowledgement does not arrive, and nobody hears of it
    redelivery: float = 0.0  # a message that was delivered comes again at once, though it is held
    reordering: float = 0.0  # a fetch gives messages of different keys in another order


class _Stored(msgspec.Struct, frozen=True):
    number: int  # never used again, also after a loss
    at: float
    message: Message


class _Held(msgspec.Struct):
    member: str
    until: float


class _Group:
    """How far a group is: all before `place` was delivered; of that, what is held, and what comes again."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.held: dict[int, _Held] = {}
        self.again: list[int] = []  # numbers, oldest first


class MemoryBroker:
    """What the server of a real broker is: several transports may talk to one. For one event loop."""

    def __init__(self, *, largest: int = 1024 * 1024) -> None:
        self.faults = Faults()
        self.largest = largest
        self._log: list[_Stored] = []
        self._numbers = count(1)
        self._groups: dict[str, _Group] = {}
        self._answers = asyncio.Event()
        self._answers.set()
        self._runs = True
        self._changed = asyncio.Event()
        self._lives = 0  # how often connections were cut

    # --- what happens to it ---

    def freeze(self) -> None:
        """It accepts what is sent, and answers nobody."""
        self._answers.clear()

    def thaw(self) -> None:
        self._answers.set()

    def stop(self) -> None:
        """It is gone, with all connections. What it has is on its disk."""
        self._runs = False
        self.hang_up()

    def start(self) -> None:
        self._runs = True

    def hang_up(self) -> None:
        """Cut every connection."""
        self._lives += 1
        self._tell()

    def lose_tail(self, messages: int) -> list[Message]:
        """Forget the newest messages, as a crash does with what was not on the disk yet; they are returned."""
        kept = len(self._log) - messages if messages < len(self._log) else 0
        lost = self._log[kept:]
        del self._log[kept:]
        gone = {stored.number for stored in lost}
        for group in self._groups.values():
            group.held = {number: held for number, held in group.held.items() if number not in gone}
            group.again = [number for number in group.again if number not in gone]
        return [stored.message for stored in lost]

    def forget_everything(self) -> None:
        """Messages and groups, as FLUSHALL does."""
        self._log.clear()
        self._groups.clear()
        self._tell()

    @property
    def messages(self) -> list[Message]:
        """All that it has, in order."""
        return [stored.message for stored in self._log]

    # --- what it does ---

    async def reached(self, patience: float) -> None:
        """Return when it answers."""
        if not self._runs:
            raise TransportUnavailable("The broker in memory is stopped.")
        if self._answers.is_set():
            return
        try:
            async with timeout(patience):
                await self._answers.wait()
        except TimeoutError:
            raise TransportUnavailable("The broker in memory did not answer in time.") from None
        await self.reached(patience)

    def store(self, messages: Sequence[Message]) -> None:
        late: list[Message] = []
        for message in messages:
            self._append(message)
            if _happens(self.faults.duplicate):
                late.append(message)
        for message in late:
            self._append(message)
        self._tell()

    def _append(self, message: Message) -> None:
        self._log.append(_Stored(next(self._numbers), monotonic(), message))

    def join(self, name: str, *, from_start: bool) -> None:
        if name not in self._groups:
            self._groups[name] = _Group(0 if from_start else self._end)

    @property
    def _end(self) -> int:
        return self._log[-1].number if self._log else 0

    def knows(self, name: str) -> bool:
        return name in self._groups

    def groups(self) -> list[str]:
        return sorted(self._groups)

    def forget(self, name: str) -> None:
        self._groups.pop(name, None)

    def take(self, name: str, member: str, limit: int, redeliver_after: float) -> list[Received]:
        group, now = self._groups[name], monotonic()
        overdue = [number for number, held in group.held.items() if held.until <= now]
        for number in overdue:
            del group.held[number]
        group.again = sorted({*group.again, *overdue})
        first = self._index(group.place)
        late = [self._log[self._index(number) - 1] for number in group.again[:limit]]
        part = _portion([*late, *self._log[first : first + limit - len(late)]])
        chosen, fresh = part[: len(late)], part[len(late) :]
        del group.again[: len(chosen)]
        if fresh:
            group.place = fresh[-1].number
        for stored in (*chosen, *fresh):
            group.held[stored.number] = _Held(member, now + redeliver_after)
        group.again += [stored.number for stored in fresh if _happens(self.faults.redelivery)]
        if _happens(self.faults.reordering):
            fresh = _reordered(fresh)
        return [*(_received(stored, redelivered=True) for stored in chosen), *map(_received, fresh)]

    def _index(self, number: int) -> int:
        """Where in the log the first one after this number is."""
        return bisect_right(self._log, number, key=lambda stored: stored.number)

    def next_due(self, name: str) -> float | None:
        """Seconds until something that is held comes again."""
        group = self._groups.get(name)
        if group is None or not group.held:
            return None
        return max(0.0, min(held.until for held in group.held.values()) - monotonic())

    async def change(self, seconds: float | None) -> None:
        """Return when something happened, or so much time is over."""
        with suppress(TimeoutError):
            async with timeout(HUNDRED_YEARS if seconds is None else seconds):
                await self._changed.wait()

    def _tell(self) -> None:
        """Whoever waits looks again."""
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def lives(self) -> int:
        return self._lives

    def ack(self, name: str, numbers: Sequence[int]) -> None:
        group = self._groups.get(name)
        if group is None:
            return
        for number in numbers:
            if not _happens(self.faults.lost_ack):
                group.held.pop(number, None)
                group.again = [each for each in group.again if each != number]

    def give_back(self, name: str, member: str, numbers: Sequence[int] | None) -> None:
        """None: all that the member holds. What another has by now stays there."""
        group = self._groups.get(name)
        if group is None:
            return
        mine = [number for number, held in group.held.items() if held.member == member]
        for number in mine if numbers is None else set(mine).intersection(numbers):
            del group.held[number]
            group.again = sorted({*group.again, number})
        self._tell()

    def backlog(self, name: str) -> int | None:
        group = self._groups.get(name)
        if group is None:
            return None
        return len({*group.held, *group.again}) + len(self._log) - self._index(group.place)

    def oldest(self) -> float | None:
        return monotonic() - self._log[0].at if self._log else None

    def trim(self, keep: float) -> None:
        now = monotonic()
        needed = min((self._needed(group) for group in self._groups.values()), default=self._end + 1)
        self._log = [stored for stored in self._log if stored.number >= needed or stored.at > now - keep]

    @staticmethod
    def _needed(group: _Group) -> int:
        return min((*group.held, *group.again, group.place + 1))


class MemoryTransport:
    """One client of a broker in memory."""

    name = "memory"
    loss = "everything, with the process that it is in"

    def __init__(self, broker: MemoryBroker, *, timeout: float = 5.0) -> None:
        self.broker = broker
        self._patience = timeout
        self._is_open = False

    async def open(self) -> None:
        self._is_open = True
        await self._reached()

    async def close(self) -> None:
        self._is_open = False

    async def _reached(self) -> None:
        if not self._is_open:
            raise NotOpen("The transport in memory is not open. Call open() first.")
        await self.broker.reached(self._patience)

    async def publish(self, messages: Sequence[Message]) -> list[Refused | None]:
        await self._reached()
        answers = judged(messages, self._objection)
        self.broker.store(
            [message for message, answer in zip(messages, answers, strict=True) if answer is None]
        )
        if _happens(self.broker.faults.lost_answer):
            raise TransportUnavailable("The answer of the broker in memory was lost.")
        return answers

    def _objection(self, message: Message) -> str | None:
        return too_large(len(message.body), self.broker.largest, "this broker")

    async def consumer(
        self, group: str, member: str, *, redeliver_after: float, from_start: bool = False
    ) -> MemoryConsumer:
        check_name("group", group)
        check_name("member", member)
        check_seconds("redeliver_after", redeliver_after, 0.001)
        await self._reached()
        self.broker.join(group, from_start=from_start)
        return MemoryConsumer(self, group, member, redeliver_after)

    async def groups(self) -> list[str]:
        await self._reached()
        return self.broker.groups()

    async def forget(self, group: str) -> None:
        await self._reached()
        self.broker.forget(group)

    async def backlog(self, group: str) -> int | None:
        await self._reached()
        return self.broker.backlog(group)

    async def oldest(self) -> float | None:
        await self._reached()
        return self.broker.oldest()

    async def trim(self, *, keep: float) -> None:
        check_seconds("keep", keep)
        await self._reached()
        self.broker.trim(keep)


class MemoryConsumer:
    def __init__(self, transport: MemoryTransport, group: str, member: str, redeliver_after: float) -> None:
        self._transport, self._broker = transport, transport.broker
        self._group, self._member, self._redeliver_after = group, member, redeliver_after

    async def fetch(self, limit: int, *, wait: float) -> list[Received]:
        check_int("limit", limit, 1, 10_000)
        end = monotonic() + check_seconds("wait", wait)
        lives = self._broker.lives
        while not (found := await self._look(limit)):
            with suppress(TimeoutError):
                async with timeout(max(0.0, end - monotonic())):
                    await self._broker.change(self._broker.next_due(self._group))
            if lives != self._broker.lives:
                raise TransportUnavailable("The connection to the broker in memory was cut.")
            if monotonic() >= end:  # long ago, maybe: who stood still may not be the one who reads any more
                break
        return found

    async def _look(self, limit: int) -> list[Received]:
        await self._transport._reached()  # noqa: SLF001  they are one thing
        if not self._broker.knows(self._group):
            self._broker.join(self._group, from_start=True)
            note("transport.group_lost", transport="memory", group=self._group, error="it was forgotten")
        return self._broker.take(self._group, self._member, limit, self._redeliver_after)

    async def ack(self, marks: Sequence[str]) -> None:
        await self._transport._reached()  # noqa: SLF001
        self._broker.ack(self._group, [int(mark) for mark in marks])

    async def give_back(self, marks: Sequence[str]) -> None:
        await self._transport._reached()  # noqa: SLF001
        self._broker.give_back(self._group, self._member, [int(mark) for mark in marks])

    async def close(self) -> None:
        with suppress(TransportUnavailable, NotOpen):
            await self._transport._reached()  # noqa: SLF001
            self._broker.give_back(self._group, self._member, None)


def _happens(chance: float) -> bool:
    return chance > 0 and random() < chance


def _portion(stored: list[_Stored]) -> list[_Stored]:
    return next(portions(stored, lambda each: len(each.message.body), most=len(stored)), [])


def _received(stored: _Stored, *, redelivered: bool = False) -> Received:
    return Received(stored.message.body, str(stored.number), redelivered)


def _reordered(stored: list[_Stored]) -> list[_Stored]:
    """Shuffled, but for the order within each key: that of the places which its messages got."""
    places = sorted(range(len(stored)), key=lambda _: random())
    waiting: dict[str | int, list[_Stored]] = {}
    for each in stored:
        waiting.setdefault(each.message.key if each.message.key is not None else each.number, []).append(each)
    lines = [stored[place] for place in places]
    return [
        waiting[each.message.key if each.message.key is not None else each.number].pop(0) for each in lines
    ]
