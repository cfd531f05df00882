"""A fleet's quota and breakers: random commands on the model and on a store, or on what keeps only the shared part."""

from __future__ import annotations

from math import inf
from typing import ClassVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from holdfast.store import quota
from holdfast.store.breakers import BreakerReport, BreakerState, Probe
from holdfast.store.quota import Grant, Pace, Return, Want
from holdfast.testing.conformance.guards_model import Fleet, Ledger
from holdfast.testing.conformance.store_machine import StoreMachine, same

# All of them are sums of powers of 2, so that every store can be exact.
keys = st.sampled_from(["a", "b"])
rates = st.sampled_from([0.5, 2.0, 8.0])
guards = st.sampled_from(["g1", "g2"])
nodes = st.sampled_from(["n1", "n2", "n3"])
places = st.integers(0, 30)
in_rows = st.integers(0, 3)
states = st.sampled_from(list(BreakerState))
seconds = st.sampled_from([0.25, 1.0, 5.0, 30.0])


class SharedGuardsMachine(StoreMachine):
    """The verbs of `SharedGuards`: every answer is as the model's."""

    grace: ClassVar[float] = inf  # as in the model
    counts: ClassVar[bool] = True  # generations go up by one

    def __init__(self) -> None:
        super().__init__()
        self.model = Fleet(self.do(self.store.now()), self.grace)
        self.generations = {("g1", 0): 0, ("g2", 0): 0}  # the store's, by guard and the model's
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
        entry = self.ledgers[key].add(self.truth, want, found.units)  # who gets nothing has said a rate, too
        self.ledgers[key].check()
        if found.units:
            self.grants.append((found, entry))

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
        in_row=in_rows,
    )
    def slow(self, key: str, rate: float | None, pause: float, version: int, in_row: int) -> None:
        mine, model = self._version(version)
        pace = self.do(self.store.guards.slow("g1", key, rate=rate, pause=pause, version=mine, in_row=in_row))
        self._same_pace(pace, self.model.slow("g1", key, rate, min(pause, quota.DAY), model, in_row))

    @rule(key=keys, in_row=in_rows)
    def calm(self, key: str, in_row: int) -> None:
        pace = self.do(self.store.guards.calm("g1", key, in_row=in_row))
        self._same_pace(pace, self.model.calm("g1", key, in_row))

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
        expected = self.model.report(node, item, 5)
        self._same_generation(guard, found.generation, expected.generation)
        same(found, msgspec.structs.replace(expected, generation=found.generation))

    def _same_generation(self, guard: str, mine: int, model: int) -> None:
        if self.counts:
            same(mine, model)
        known = self.generations.setdefault((guard, model), mine)
        same(mine, known)
        same(sorted(self._generations(guard)), self._generations(guard))

    def _generations(self, guard: str) -> list[int]:
        """In the model's order: each is larger than the one before."""
        return [mine for (name, _), mine in sorted(self.generations.items()) if name == guard]

    def _generation(self, guard: str, model: int) -> int:
        """One that the store has told; where it counts by itself, it is the model's."""
        return model if self.counts else self.generations[guard, model]

    @rule(guard=guards, generation=st.integers(-1, 1))
    def open_fleet(self, guard: str, generation: int) -> None:
        seen = max(self.model.generation(guard) + min(generation, 0), 0)
        mine = self._generation(guard, seen)
        opened = self.do(self.store.guards.open_fleet(guard, generation=mine, open_for=30))
        same(opened, self.model.open_fleet(guard, seen, 30))
        self._learn(guard, opened)

    @rule(guard=guards, generation=st.integers(-1, 1))
    def close_fleet(self, guard: str, generation: int) -> None:
        seen = max(self.model.generation(guard) + min(generation, 0), 0)
        mine = self._generation(guard, seen)
        closed = self.do(self.store.guards.close_fleet(guard, generation=mine))
        same(closed, self.model.close_fleet(guard, seen))
        self._learn(guard, closed)

    def _learn(self, guard: str, changed: bool) -> None:
        """Where the new generation cannot be counted, a node hears of it."""
        if changed and not self.counts:
            self.report(guard=guard, node="n1", state=BreakerState.CLOSED, failures=0)

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


class GuardsMachine(SharedGuardsMachine):
    """And what a store keeps for people."""

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
