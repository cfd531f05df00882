"""Redis forgets: whatever is flushed, evicted or lost in a restart, no window exceeds its rate and burst."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

sys.path.insert(0, str(Path(__file__).parent))

from redis_clock import lasted, server_time
from redis_harness import RedisHarness

from holdfast.store.breakers import BreakerReport, BreakerState
from holdfast.store.quota import Return, Want
from holdfast.testing.conformance.guards_model import Ledger
from holdfast.testing.conformance.harness import event_loop
from holdfast.testing.conformance.quota import ask, units
from holdfast.testing.conformance.store_machine import StoreMachine


class Loss:
    """What happens to the keys of one harness."""

    def __init__(self, harness):
        self.raw, self.prefix = harness._raw, harness._prefix

    async def keys(self, pattern="*"):
        found = [key async for key in self.raw.scan_iter(f"{self.prefix}{pattern}")]
        return [key for key in found if not key.endswith(b":clock")]

    async def flush(self):
        for key in await self.keys():
            await self.raw.delete(key)

    async def evict(self, name="*"):
        """The server counts what it evicts: here it has counted more than was noted."""
        for key in await self.keys(f"bucket:*{name}"):
            await self.raw.delete(key)
        await self._note(evicted="7")

    async def save(self):
        return {key: await self.raw.get(key) for key in await self.keys("[bm]*")}

    async def restart(self, saved):
        await self.flush()
        for key, value in saved.items():
            await self.raw.set(key, value)
        await self._note(run="another")

    async def _note(self, **fields):
        key = f"{self.prefix}memory"
        if (packed := await self.raw.get(key)) is not None:
            memory = msgspec.msgpack.decode(packed) | fields
            await self.raw.set(key, msgspec.msgpack.encode(memory))


@contextmanager
def standing_still(valkey):
    """A client, its harness whose clock stands still, and a way to run coroutines."""
    harness = RedisHarness(valkey)
    with event_loop(harness) as runner:
        try:
            yield runner.run(harness.open()), harness, runner.run
        finally:
            runner.run(harness.close())


def test_after_a_flush_a_bucket_has_what_its_rate_has_earned_since(valkey):
    with standing_still(valkey) as (store, harness, run):
        assert run(units(store)) == 8
        run(Loss(harness).flush())
        grant = run(ask(store))
        assert (grant.units, round(grant.wait, 3)) == (0, 0.5)
        run(harness.advance(store, 1))
        assert run(units(store)) == 2
        assert run(units(store, "new")) == 2, "nor is one full that was never asked for, as far as is known"
        run(harness.advance(store, 100))
        assert run(units(store)) == 8
        assert run(units(store, "newer")) == 8


def test_an_evicted_bucket_is_not_a_full_one_and_the_others_are_as_before(valkey):
    with standing_still(valkey) as (store, harness, run):
        assert run(units(store)) == 8
        assert run(units(store, "other", most=3)) == 3
        run(Loss(harness).evict(":k"))
        assert run(units(store)) == 0
        assert run(units(store, "other")) == 5
        run(harness.advance(store, 1))
        assert run(units(store)) == 2


def test_after_a_restart_with_old_data_nothing_is_granted_twice(valkey):
    with standing_still(valkey) as (store, harness, run):
        assert run(units(store, most=2)) == 2
        loss = Loss(harness)
        saved = run(loss.save())
        lost = run(ask(store))
        assert lost.units == 6
        run(loss.restart(saved))
        assert run(units(store)) == 0
        run(store.guards.give_back([Return(lost, 6)]))
        assert run(units(store)) == 0, "it was another bucket that this came from"
        run(harness.advance(store, 1))
        assert run(units(store)) == 2


def test_a_clock_that_was_set_back_hides_no_loss(valkey):
    with standing_still(valkey) as (store, harness, run):
        assert run(units(store, most=2)) == 2
        loss = Loss(harness)
        saved = run(loss.save())
        run(harness.advance(store, -10))
        assert run(units(store)) == 6
        run(loss.restart(saved))
        assert run(units(store)) == 0
        run(harness.advance(store, 20))
        assert run(units(store)) == 8


def test_a_bucket_is_kept_until_it_has_earned_its_burst(valkey):
    """One that ended before would be made anew, and what it had granted would not count."""
    with standing_still(valkey) as (store, harness, run):
        loss = Loss(harness)

        def lasts(key):
            return run(loss.raw.pttl(f"{loss.prefix}bucket:3:api:{key}")) / 1000

        assert run(units(store)) == 8
        assert 3600 < lasts("k") < 3700
        assert run(units(store, "slow", rate=0.001)) == 8
        assert 8000 < lasts("slow") < 8100
        run(loss.flush())
        assert run(units(store, "slow", rate=0.001)) == 0
        assert 8000 < lasts("slow") < 8100
        run(store.guards.slow("api", "k", rate=0.5, pause=60))
        assert 604_800 < lasts("k") < 604_900


def test_what_was_granted_before_a_flush_is_not_given_back_after_it(valkey):
    with standing_still(valkey) as (store, harness, run):
        old = run(ask(store))
        run(Loss(harness).flush())
        run(ask(store))
        run(harness.advance(store, 4))
        assert run(units(store)) == 8
        run(store.guards.give_back([Return(old, 8)]))
        assert run(units(store)) == 0


def test_a_larger_burst_after_a_flush_has_not_earned_more(valkey):
    with standing_still(valkey) as (store, harness, run):
        assert run(units(store, most=100, burst=100)) == 100
        run(Loss(harness).flush())
        assert run(units(store)) == 0
        for _ in range(10):
            run(harness.advance(store, 1))
            assert run(units(store)) == 2
        assert run(units(store, most=100, burst=100)) == 0


def test_numbers_grow_also_after_a_flush(valkey):
    with standing_still(valkey) as (store, harness, run):
        closed = [BreakerReport("api", BreakerState.CLOSED)]

        def numbers():
            assert run(store.guards.open_fleet("api", generation=0, open_for=30))
            (told,) = run(store.guards.report("n1", closed, ttl=5))
            pace = run(store.guards.slow("api", "k", rate=1, version=2**53))
            probe = run(store.guards.probe("api", "n1", permits=9, lease=5))
            return told.generation, pace.version, probe.token

        before = numbers()
        run(Loss(harness).flush())
        run(harness.advance(store, 0.001))
        (told,) = run(store.guards.report("n1", closed, ttl=5))
        assert (told.generation, told.opened_until, told.held, told.reset) == (0, None, None, 0)
        assert not run(store.guards.open_fleet("api", generation=before[0], open_for=30)), "late"
        assert all(new > old for new, old in zip(numbers(), before, strict=True))


bursts = st.sampled_from([4.0, 16.0])


class LossMachine(StoreMachine):
    """Quota is taken and given back while the server forgets in every way, and a ledger counts what was used."""

    def __init__(self):
        super().__init__()
        self.loss = Loss(self.bench)
        self.ledgers = {key: Ledger() for key in ("a", "b")}
        self.grants = []
        self.truth = 0.0
        self.saved = {}
        self.ends = {}  # when a bucket expires: the server's own time does not pass here

    @rule(
        key=st.sampled_from(["a", "b"]), least=st.sampled_from([0.25, 1.0, 4.0]), more=st.sampled_from([0.0, 50.0]),
        rate=st.sampled_from([0.001, 2.0, 8.0]), burst=bursts,
    )  # fmt: skip
    def take(self, key, least, more, rate, burst):
        want, began = Want("g", key, least, least + more, rate, burst), self.server_time()
        (grant,) = self.do(self.store.guards.take([want]))
        self.note_end(key, began)
        entry = self.ledgers[key].add(self.truth, want, grant.units)  # who gets nothing has said a rate, too
        self.ledgers[key].check()
        if grant.units:
            self.grants.append((grant, entry))

    @rule(place=st.integers(0, 30), part=st.sampled_from([0.5, 1.0]))
    @precondition(lambda self: self.grants)
    def give_back(self, place, part):
        grant, entry = self.grants.pop(-1 - place % len(self.grants))
        began = self.server_time()
        self.do(self.store.guards.give_back([Return(grant, grant.units * part)]))
        self.note_end(grant.key, began)
        self.ledgers[grant.key].give_back(entry, grant.units * part)

    @rule(key=st.sampled_from(["a", "b"]), pause=st.sampled_from([0.0, 1.0]))
    def slow(self, key, pause):
        began = self.server_time()
        self.do(self.store.guards.slow("g", key, rate=1.0, pause=pause, version=2**53))
        self.note_end(key, began)

    def server_time(self):
        return self.do(server_time(self.loss.raw))

    def note_end(self, key, began):
        lasts = self.do(lasted(self.loss.raw, f"{self.loss.prefix}bucket:1:g:{key}", began))
        self.ends[key] = self.bench.world.now() + lasts + 0.1

    @rule(by=st.sampled_from([0.25, 1.0, 5.0, 3700.0, 20_000.0]))
    def advance(self, by):
        self.do(self.bench.advance(self.store, by))
        self.truth += by
        for key in [key for key, end in self.ends.items() if end <= self.bench.world.now()]:
            self.do(self.loss.raw.delete(f"{self.loss.prefix}bucket:1:g:{key}"))
            del self.ends[key]

    @rule(by=st.sampled_from([0.25, 5.0]))
    def set_back(self, by):
        """Then nothing is given back that was granted before: when the server forgets as well, nobody can tell its age."""
        self.do(self.bench.advance(self.store, -by))
        self.grants.clear()

    @rule()
    def flush(self):
        self.do(self.loss.flush())

    @rule()
    def evict(self):
        self.do(self.loss.evict())

    @rule()
    def save(self):
        self.saved = self.do(self.loss.save())

    @rule()
    def restart(self):
        self.do(self.loss.restart(self.saved))


def test_no_window_exceeds_rate_and_burst_whatever_is_forgotten(valkey):
    machine = type("LossMachine", (LossMachine,), {"bench": RedisHarness(valkey)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=100 * int(os.environ.get("HOLDFAST_TEST_DEEP", "1")),
            stateful_step_count=40,
            derandomize="HOLDFAST_TEST_DEEP" not in os.environ,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
