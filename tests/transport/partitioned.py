"""A broker as Kafka is one, in memory: partitions, offsets, a committed low-water mark for each group, and members that own partitions.

It knows nothing of single messages: what an adapter of such a broker has to do for the port is in `PartitionedConsumer`.
"""

from __future__ import annotations

import itertools
import zlib
from contextlib import suppress

from holdfast.kernel.clock import monotonic, timeout
from holdfast.kernel.errors import NotOpen, TransportUnavailable
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.kernel.portions import PORTION
from holdfast.kernel.telemetry import note
from holdfast.testing.memory import MemoryBroker, MemoryTransport
from holdfast.transport.port import Received

PARTITIONS = 4


class Cluster(MemoryBroker):
    """Its verbs are those of Kafka: produce, read from an offset, commit an offset, join and leave a group, delete up to an offset."""

    def __init__(self, **options):
        super().__init__(**options)
        self._round = itertools.count()
        self.forget_everything()

    def forget_everything(self):
        self.logs = [{} for _ in range(PARTITIONS)]  # by offset
        self.ends = [0] * PARTITIONS
        self.committed = {}
        self.members = {}
        self._tell()

    def store(self, messages):
        for message in messages:
            chosen = next(self._round) if message.key is None else zlib.crc32(message.key.encode())
            place = chosen % PARTITIONS
            self.logs[place][self.ends[place]] = (monotonic(), message)
            self.ends[place] += 1
        self._tell()

    def starts(self):
        return [min(log, default=end) for log, end in zip(self.logs, self.ends, strict=True)]

    def join(self, name, *, from_start):
        if name not in self.committed:
            self.committed[name] = self.starts() if from_start else list(self.ends)
            self.members[name] = {}

    def knows(self, name):
        return name in self.committed

    def groups(self):
        return sorted(self.committed)

    def forget(self, name):
        self.committed.pop(name, None)
        self.members.pop(name, None)

    def owned(self, name, member, poll):
        """The partitions of a member that asks at least every `poll` seconds. Who does not has left."""
        members, now = self.members[name], monotonic()
        for other, until in list(members.items()):
            if until < now:
                del members[other]
        members[member] = now + poll
        place = list(members).index(member)
        return {number for number in range(PARTITIONS) if number % len(members) == place}

    def leave(self, name, member):
        self.members.get(name, {}).pop(member, None)
        self._tell()

    def commit(self, name, place, offset):
        self.committed[name][place] = offset

    def backlog(self, name):
        return sum(self.ends) - sum(self.committed[name]) if name in self.committed else None

    def oldest(self):
        return max((monotonic() - at for log in self.logs for at, _ in log.values()), default=None)

    def trim(self, keep):
        young = monotonic() - keep
        for place, log in enumerate(self.logs):
            low = min((floors[place] for floors in self.committed.values()), default=self.ends[place])
            for offset in [offset for offset, (at, _) in log.items() if offset < low and at <= young]:
                del log[offset]


class PartitionedTransport(MemoryTransport):
    name = "partitioned"

    async def consumer(self, group, member, *, redeliver_after, from_start=False):
        check_name("group", group)
        check_name("member", member)
        check_seconds("redeliver_after", redeliver_after, 0.001)
        await self._reached()
        self.broker.join(group, from_start=from_start)
        consumer = PartitionedConsumer(self, group, member, redeliver_after)
        consumer.own()
        return consumer


class Place:
    """One partition, as its owner sees it."""

    def __init__(self, committed, end):
        self.committed, self.next = committed, committed
        self.before = end  # what was there before we came may have been another's
        self.held = {}  # offsets that were handed out, and until when each is with whoever has it
        self.acked = set()


class PartitionedConsumer:
    def __init__(self, transport, group, member, redeliver_after):
        self._transport, self._cluster = transport, transport.broker
        self._group, self._member, self._redeliver_after = group, member, redeliver_after
        self._places = {}

    def own(self):
        cluster = self._cluster
        if not cluster.knows(self._group):
            cluster.join(self._group, from_start=True)
            self._places = {}
            note("transport.group_lost", transport="partitioned", group=self._group, error="it was forgotten")
        if self._member not in cluster.members[self._group]:
            self._places = {}  # others had our partitions meanwhile
        owned = cluster.owned(self._group, self._member, self._redeliver_after)
        committed, ends = cluster.committed[self._group], cluster.ends
        self._places = {
            place: self._places.get(place) or Place(committed[place], ends[place]) for place in owned
        }

    async def fetch(self, limit, *, wait):
        check_int("limit", limit, 1, 10_000)
        check_seconds("wait", wait)
        lives = self._cluster.lives
        with suppress(TimeoutError):
            async with timeout(wait):
                while not (found := await self._look(limit)):
                    await self._cluster.change(0.05)
                    if lives != self._cluster.lives:
                        raise TransportUnavailable("The connection was cut.")
                return found
        return await self._look(limit)

    async def _look(self, limit):
        await self._transport._reached()
        self.own()
        found, room, now = [], PORTION, monotonic()
        for number, place in self._places.items():
            log = self._cluster.logs[number]
            again = sorted(offset for offset, until in place.held.items() if until <= now)
            for offset in [*again, *range(place.next, self._cluster.ends[number])]:
                if len(found) >= limit or room <= 0:
                    break
                if offset in log:
                    is_again = offset in place.held or offset < place.before
                    found.append(Received(log[offset][1].body, f"{number}:{offset}", is_again))
                    room -= len(log[offset][1].body)
                    place.held[offset] = now + self._redeliver_after
                place.next = max(place.next, offset + 1)
        return found

    async def ack(self, marks):
        """Committed is the offset below which all are acknowledged: never beyond a gap."""
        await self._transport._reached()
        if not self._cluster.knows(self._group):
            return
        mine = self._member in self._cluster.members[self._group]
        for mark in marks:
            number, offset = map(int, mark.split(":"))
            place = self._places.get(number)
            if place is None or not mine:
                raise TransportUnavailable(f"The partition {number} is another member's by now.")
            place.held.pop(offset, None)
            place.acked.add(offset)
        for number, place in self._places.items():
            while place.committed in place.acked or (
                place.committed < place.next and place.committed not in self._cluster.logs[number]
            ):
                place.acked.discard(place.committed)
                place.committed += 1
            self._cluster.commit(self._group, number, place.committed)

    async def give_back(self, marks):
        await self._transport._reached()
        for mark in marks:
            number, offset = map(int, mark.split(":"))
            place = self._places.get(number)
            if place is not None and offset in place.held:
                place.held[offset] = 0.0

    async def close(self):
        with suppress(TransportUnavailable, NotOpen):
            await self._transport._reached()
            self._cluster.leave(self._group, self._member)
