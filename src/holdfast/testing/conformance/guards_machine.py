"""A fleet's quota and breakers: the model, random commands on it and on a store, and what no window may exceed."""

from __future__ import annotations

from itertools import count
from math import ceil

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from holdfast.store import quota
from holdfast.store.breakers import BreakerReport, BreakerState, FleetBreaker, Hold, NodeBreaker, Probe
from holdfast.store.quota import Bucket, Grant, Pace, Return, Want
from holdfast.testing.conformance.store_machine import StoreMachine, same

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
        used = rate = burst = 0.0
        end = self._entries[-1][0] if self._entries else 0.0
        for time, want, units in reversed(self._entries):
            used, rate, burst = used + units, max(rate, want.rate), max(burst, want.burst)
            allowed = rate * (end - time) + burst + SLACK
            assert used <= allowed, f"{used} units were used in {end - time} s; {allowed} are allowed"


class Fleet:
    """`store.guards`."""

    def __init__(self, now: float) -> None:
        self.now = now
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

    def slow(self, name: str, key: str, rate: float | None, pause: float, version: int) -> Pace:
        known = self.buckets.get((name, key)) or Bucket(at=self.now, rate=rate or 1.0)
        bucket = quota.slowed(quota.settled(known, self.now), rate, pause, version, next(self._token))
        self.buckets[name, key] = bucket
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
            if name == guard and (bucket.slowed is not None or bucket.paused_until is not None):
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


# All of them are sums of powers of 2, so that both stores can be exact.
keys = st.sampled_from(["a", "b"])
rates = st.sampled_from([0.5, 2.0, 8.0])
guards = st.sampled_from(["g1", "g2"])
nodes = st.sampled_from(["n1", "n2", "n3"])
places = st.integers(0, 30)
states = st.sampled_from(list(BreakerState))
seconds = st.sampled_from([0.25, 1.0, 5.0, 30.0])


class GuardsMachine(StoreMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Fleet(self.do(self.store.now()))
        self.truth = 0.0  # seconds that have passed, whatever the clock says
        self.ledgers = {key: Ledger() for key in ("a", "b")}
        self.grants: list[tuple[Grant, int]] = []  # not given back yet, with their places in the ledger
        self.versions = {0: 0}  # the store's and the model's
        self.permits: list[tuple[Probe, int]] = []

    @rule(
        key=keys, least=st.sampled_from([0.5, 1.0, 4.0]), more=st.sampled_from([0.0, 3.0, 50.0]),
        rate=rates, burst=st.sampled_from([4.0, 16.0]),
    )  # fmt: skip
    def take(self, key: str, least: float, more: float, rate: float, burst: float) -> None:
        want = Want("g1", key, least, least + more, rate, burst)
        (found,) = self.do(self.store.guards.take([want]))
        expected = self.model.take(want)
        self._known(found.version, expected.version)
        same(msgspec.structs.replace(found, version=0), msgspec.structs.replace(expected, version=0))
        assert found.units == 0 or want.least <= found.units <= want.most
        if found.units:
            self.grants.append((found, self.ledgers[key].add(self.truth, want, found.units)))
            self.ledgers[key].check()

    @rule(place=places, part=st.sampled_from([0.5, 1.0]))
    @precondition(lambda self: self.grants)
    def give_back(self, place: int, part: float) -> None:
        grant, entry = self.grants.pop(-1 - place % len(self.grants))
        item = Return(grant, grant.units * part)
        self.do(self.store.guards.give_back([item]))
        self.model.give_back(item)
        self.ledgers[grant.key].give_back(entry, item.units)

    @rule(
        key=keys,
        rate=st.none() | rates,
        pause=st.sampled_from([0.0, 0.25, 5.0, 100_000.0]),
        version=places,
    )
    def slow(self, key: str, rate: float | None, pause: float, version: int) -> None:
        mine, model = self._version(version)
        pace = self.do(self.store.guards.slow("g1", key, rate=rate, pause=pause, version=mine))
        self._same_pace(pace, self.model.slow("g1", key, rate, min(pause, quota.DAY), model))

    @rule(key=keys, rate=st.none() | rates, version=places)
    def sped(self, key: str, rate: float | None, version: int) -> None:
        mine, model = self._version(version)
        pace = self.do(self.store.guards.sped("g1", key, rate=rate, version=mine))
        self._same_pace(pace, self.model.sped("g1", key, rate, model))

    def _version(self, place: int) -> tuple[int, int]:
        """A recent one, more often than not."""
        known = sorted(self.versions.items())[-3:]
        return known[-1 - place % len(known)]

    def _same_pace(self, found: Pace, expected: Pace) -> None:
        self._known(found.version, expected.version)
        same(msgspec.structs.replace(found, version=0), msgspec.structs.replace(expected, version=0))

    def _known(self, mine: int, model: int) -> None:
        same(self.versions.setdefault(mine, model), model)

    @rule(guard=guards, node=nodes, state=states, failures=st.integers(0, 5))
    def report(self, guard: str, node: str, state: BreakerState, failures: int) -> None:
        item = BreakerReport(guard, state, 1, 2.5, 9, failures, 0)
        (found,) = self.do(self.store.guards.report(node, [item], ttl=5))
        same(found, self.model.report(node, item, 5))

    @rule(guard=guards, generation=st.integers(-1, 1))
    def open_fleet(self, guard: str, generation: int) -> None:
        seen = max(self.model.generation(guard) + min(generation, 0), 0)
        opened = self.do(self.store.guards.open_fleet(guard, generation=seen, open_for=30))
        same(opened, self.model.open_fleet(guard, seen, 30))

    @rule(guard=guards, generation=st.integers(-1, 1))
    def close_fleet(self, guard: str, generation: int) -> None:
        seen = max(self.model.generation(guard) + min(generation, 0), 0)
        closed = self.do(self.store.guards.close_fleet(guard, generation=seen))
        same(closed, self.model.close_fleet(guard, seen))

    @rule(guard=guards, node=nodes, permits=st.integers(1, 2))
    def probe(self, guard: str, node: str, permits: int) -> None:
        found = self.do(self.store.guards.probe(guard, node, permits=permits, lease=5))
        expected = self.model.probe(guard, permits, 5)
        same(found is None, expected is None)
        if found is not None and expected is not None:
            same(found.until, self.model.now + 5)
            self.permits.append((found, expected))

    @rule(place=places)
    @precondition(lambda self: self.permits)
    def probed(self, place: int) -> None:
        mine, model = self.permits[-1 - place % len(self.permits)]
        same(self.do(self.store.guards.probed(mine)), self.model.probed(model))

    @rule(guard=guards, state=st.sampled_from([BreakerState.OPEN, BreakerState.CLOSED]))
    def hold(self, guard: str, state: BreakerState) -> None:
        self.do(self.store.guards.hold(guard, state, actor="ada"))
        self.model.hold(guard, state, "ada")

    @rule(guard=guards)
    def let_go(self, guard: str) -> None:
        same(self.do(self.store.guards.let_go(guard, actor="ada")), self.model.let_go(guard))

    @rule(guard=guards)
    def reset(self, guard: str) -> None:
        same(self.do(self.store.guards.reset(guard, actor="ada")), self.model.reset(guard))

    @rule()
    def prune(self) -> None:
        same(self.do(self.store.guards.prune()), self.model.prune())

    @rule(by=seconds)
    def advance(self, by: float) -> None:
        self._move(by)
        self.truth += by

    @rule()
    def advance_long(self) -> None:
        self.advance(3700.0)

    @rule(by=seconds)
    def set_back(self, by: float) -> None:
        """The clock, and not the time."""
        self._move(-by)

    def _move(self, by: float) -> None:
        self.do(self.bench.advance(self.store, by))
        self.model.now += by

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        found = self.do(self.store.guards.find())
        same([each.name for each in found], self.model.names())
        for each in found:
            told = self.model.told(each.name, "")
            same((each.generation, each.opened_until), (told.generation, told.opened_until))
            same((each.held, each.nodes), (told.held, told.others))
            same(each.keys, sum(name == each.name for name, _ in self.model.buckets))
        same(len(self.do(self.store.audit.find(limit=1000))), self.model.audited)
