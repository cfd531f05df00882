"""A fleet's quota and breakers as the model has them, and the ledger that says what no window may exceed."""

from __future__ import annotations

from itertools import count
from math import ceil, inf

import msgspec

from holdfast.store import quota
from holdfast.store.breakers import BreakerReport, BreakerState, FleetBreaker, Hold, NodeBreaker
from holdfast.store.quota import TERMS_KEPT, Bucket, Grant, Pace, Return, Want

SLACK = 1e-6  # units that rounding may add


class Ledger:
    """What was granted and used of one key, and when in truth: whatever the database's clock was set to."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, Want, float]] = []

    def add(self, time: float, want: Want, units: float) -> int:
        self._entries.append((time, want, units))
        return len(self._entries) - 1

    def give_back(self, place: int, units: float) -> None:
        time, want, used = self._entries[place]
        self._entries[place] = (time, want, used - units)

    def check(self) -> None:
        """Every window that ends with the last grant: the others were looked at when theirs was the last."""
        used = 0.0
        end = self._entries[-1][0] if self._entries else 0.0
        for place in reversed(range(len(self._entries))):
            time, _, units = self._entries[place]
            asked = [want for at, want, _ in self._entries if at >= time - TERMS_KEPT]
            used += units
            allowed = (
                max(want.rate for want in asked) * (end - time) + max(want.burst for want in asked) + SLACK
            )
            assert used <= allowed, f"{used} units were used in {end - time} s; {allowed} are allowed"


class Fleet:
    """`store.guards`."""

    def __init__(self, now: float, grace: float = inf) -> None:
        self.now = now
        self.grace = (
            grace  # seconds after its end from which on a word or a permit is forgotten without being pruned
        )
        self.buckets: dict[tuple[str, str], Bucket] = {}
        self.nodes: dict[tuple[str, str], tuple[NodeBreaker, float]] = {}  # with their ends
        self.guards: dict[str, FleetBreaker] = {}
        self.opened: dict[str, tuple[float, float]] = {}  # from and to
        self.probes: dict[int, tuple[str, float, float]] = {}  # guard, from and to
        self.audited = 0
        self._token = count(1)

    def take(self, want: Want) -> Grant:
        left, grant = quota.take(self.buckets.get((want.name, want.key)), want, self.now)
        self.buckets[want.name, want.key] = left
        return grant

    def give_back(self, item: Return) -> None:
        name = item.grant.name, item.grant.key
        if (bucket := self.buckets.get(name)) is not None:
            self.buckets[name] = quota.give_back(bucket, item, self.now)

    def slow(self, name: str, key: str, rate: float | None, pause: float, version: int, in_row: int) -> Pace:
        known = self.buckets.get((name, key)) or Bucket(at=self.now, rate=rate or 1.0)
        now = quota.counted(quota.settled(known, self.now), in_row, version)
        bucket = quota.slowed(now, rate, pause, version, next(self._token))
        self.buckets[name, key] = bucket
        return quota.pace_of(name, key, bucket)

    def calm(self, name: str, key: str, in_row: int) -> Pace:
        bucket = self.buckets.get((name, key))
        if bucket is not None:
            bucket = self.buckets[name, key] = quota.calmed(quota.settled(bucket, self.now), in_row)
        return quota.pace_of(name, key, bucket)

    def sped(self, name: str, key: str, rate: float | None, version: int) -> Pace:
        bucket = self.buckets.get((name, key))
        if bucket is not None:
            bucket = quota.sped(quota.settled(bucket, self.now), rate, version, next(self._token))
            self.buckets[name, key] = bucket
        return quota.pace_of(name, key, bucket)

    def report(self, node: str, item: BreakerReport, ttl: float) -> FleetBreaker:
        known = self.told(item.guard, node)
        numbers = item.generation, item.open_for, item.calls, item.failures, item.slow
        said = NodeBreaker(node, item.state, *numbers, self.now)
        self.nodes[item.guard, node] = said, self.now + ttl
        late = self.now - self.grace
        self.nodes = {
            name: (word, end)
            for name, (word, end) in self.nodes.items()
            if name[0] != item.guard or end >= late
        }
        return known

    def told(self, guard: str, node: str) -> FleetBreaker:
        since, until = self.opened.get(guard, (0.0, 0.0))
        is_open = since <= self.now < until
        others = [
            said
            for (name, other), (said, end) in sorted(self.nodes.items())
            if name == guard and other != node and said.at <= self.now < end
        ]
        return msgspec.structs.replace(
            self.guards.get(guard, FleetBreaker(guard=guard)),
            opened_until=until if is_open else None,
            open_for=until - self.now if is_open else 0.0,
            others=tuple(others),
        )

    def open_fleet(self, guard: str, generation: int, open_for: float) -> bool:
        if self.generation(guard) != generation:
            return False
        self.guards[guard] = self._next(guard)
        self.opened[guard] = self.now, self.now + open_for
        return True

    def close_fleet(self, guard: str, generation: int) -> bool:
        if guard not in self.guards or self.generation(guard) != generation:
            return False
        self.guards[guard] = self._next(guard)
        self.opened.pop(guard, None)
        return True

    def generation(self, guard: str) -> int:
        return self.guards.get(guard, FleetBreaker(guard=guard)).generation

    def _next(self, guard: str) -> FleetBreaker:
        known = self.guards.get(guard, FleetBreaker(guard=guard))
        return msgspec.structs.replace(known, generation=known.generation + 1)

    def probe(self, guard: str, permits: int, lease: float) -> int | None:
        """The number of the permit. What was given after now goes back with the clock."""
        self.guards.setdefault(guard, FleetBreaker(guard=guard))
        for number, (name, since, until) in self.probes.items():
            if name == guard and since > self.now:
                self.probes[number] = name, self.now, until - (since - self.now)
        late = self.now - self.grace
        self.probes = {
            number: out for number, out in self.probes.items() if out[0] != guard or out[2] >= late
        }
        if sum(name == guard and until > self.now for name, _, until in self.probes.values()) >= permits:
            return None
        number = next(self._token)
        self.probes[number] = guard, self.now, self.now + lease
        return number

    def probed(self, number: int) -> bool:
        found = self.probes.get(number)
        if found is None or found[2] <= self.now:
            return False
        del self.probes[number]
        return True

    def hold(self, guard: str, state: BreakerState, actor: str) -> None:
        known = self.guards.setdefault(guard, FleetBreaker(guard=guard))
        if known.held is None or known.held.state is not state:
            self.guards[guard] = msgspec.structs.replace(known, held=Hold(state, actor, self.now))
            self.audited += 1

    def let_go(self, guard: str) -> bool:
        known = self.guards.get(guard)
        if known is None or known.held is None:
            return False
        self.guards[guard] = msgspec.structs.replace(known, held=None)
        self.audited += 1
        return True

    def reset(self, guard: str) -> bool:
        if guard not in self.names():
            return False
        fresh = self._next(guard)
        self.guards[guard] = msgspec.structs.replace(fresh, reset=fresh.generation)
        self.opened.pop(guard, None)
        self.nodes = {name: said for name, said in self.nodes.items() if name[0] != guard}
        self.probes = {number: found for number, found in self.probes.items() if found[0] != guard}
        version = next(self._token)
        for (name, key), bucket in self.buckets.items():
            if name == guard and (
                bucket.slowed is not None or bucket.paused_until is not None or bucket.in_row
            ):
                self.buckets[name, key] = quota.freed(bucket, version)
        self.audited += 1
        return True

    def names(self) -> list[str]:
        return sorted({*self.guards, *(name for name, _ in self.nodes), *(name for name, _ in self.buckets)})

    def prune(self) -> int:
        minute = self.now // 60
        nodes = [name for name, (_, until) in self.nodes.items() if ceil(until / 60) <= minute]
        buckets = [name for name, bucket in self.buckets.items() if bucket.forget <= minute]
        probes = [number for number, (_, _, until) in self.probes.items() if ceil(until / 60) <= minute]
        for name in nodes:
            del self.nodes[name]
        for name in buckets:
            del self.buckets[name]
        for number in probes:
            del self.probes[number]
        return len(nodes) + len(buckets) + len(probes)
