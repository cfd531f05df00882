"""Quota of a fleet: no window exceeds its rate and burst, by arithmetic at random and by real processes on each store."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.store import quota
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.quota import Bucket, Return, Want
from holdfast.store.sqlite.store import SqliteStore

NOW = 1_900_000_000.0
amounts = st.floats(0.01, 100)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.tuples(amounts, amounts, amounts, amounts)),
        st.tuples(st.just("give back"), st.tuples(st.integers(0, 50), st.floats(0.1, 1))),
        st.tuples(st.just("slow"), amounts),
        st.tuples(st.just("speed up"), st.none() | amounts),
        st.tuples(st.just("wait"), st.floats(0, 20)),
        st.tuples(st.just("set back"), st.floats(0, 10_000)),
        st.tuples(st.just("jump ahead"), st.floats(0, 10_000)),
    ),
    max_size=60,
)


class World:
    """One bucket, the time that has passed in truth, and the clock that the database shows."""

    def __init__(self) -> None:
        self.bucket: Bucket | None = None
        self.truth, self.clock = 0.0, NOW
        self.used: list[list[float]] = []  # when in truth, units, rate, burst
        self.jumps: list[tuple[float, float]] = []
        self.grants: list[tuple[quota.Grant, int]] = []

    def step(self, kind, value):
        match kind:
            case "take":
                self.take(value)
            case "give back" if self.grants:
                self.give_back(*value)
            case "slow":
                known = quota.settled(self.bucket or Bucket(at=self.clock, rate=value), self.clock)
                self.bucket = quota.slowed(known, value, 0.0, known.version, known.version + 1)
            case "speed up" if self.bucket is not None:
                known = quota.settled(self.bucket, self.clock)
                self.bucket = quota.sped(known, value, known.version, known.version + 1)
            case "wait":
                self.truth, self.clock = self.truth + value, self.clock + value
            case "set back":
                self.clock -= value
            case "jump ahead":
                self.clock += value
                self.jumps.append((self.truth, value))

    def give_back(self, place, part, number=1):
        chosen = self.grants[place % len(self.grants) :][:number]
        self.grants = [pair for pair in self.grants if pair not in chosen]
        for grant, entry in chosen:
            self.used[entry][1] -= grant.units * part
        (item,) = quota.merged(Return(grant, grant.units * part) for grant, _ in chosen)
        self.bucket = quota.give_back(self.bucket, item, self.clock)

    def take(self, value):
        least, more, rate, burst = value
        want = Want("g", "k", min(least, burst), min(least, burst) + more, rate, burst)
        self.bucket, grant = quota.take(self.bucket, want, self.clock)
        assert grant.units == 0 or want.least <= grant.units <= want.most
        slowest = min(grant.rate, want.rate)
        assert 0 <= grant.wait <= self.bucket.level / slowest + 2 * quota.FINEST
        if grant.units:
            self.grants.append((grant, len(self.used)))
        self.used.append([self.truth, grant.units, rate, burst])  # who gets nothing has said a rate, too
        self.check()

    def check(self):
        """Every window that ends now. A jump ahead is time that was not there, and fills a bucket once at most."""
        units = 0.0
        for time, used, _, _ in reversed(self.used):
            asked = [each for each in self.used if each[0] >= time - quota.TERMS_KEPT]
            units, rate, burst = units + used, max(each[2] for each in asked), max(each[3] for each in asked)
            jumped = sum(min(rate * by, burst) for at, by in self.jumps if at >= time)
            assert units <= (rate * (self.truth - time) + burst + jumped) * (1 + 1e-9) + 1e-4


@given(steps)
@settings(max_examples=400, deadline=None)
def test_no_window_exceeds_its_rate_and_burst(commands):
    world = World()
    for kind, value in commands:
        world.step(kind, value)


turns = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.floats(0.1, 1)),
        st.tuples(st.just("give back"), st.tuples(st.integers(0, 5), st.floats(0.1, 1), st.integers(1, 3))),
        st.tuples(st.just("wait"), st.floats(0, 1)),
    ),
    min_size=4,
    max_size=40,
)


@given(turns, amounts, amounts)
@settings(max_examples=1000, deadline=None)
def test_no_window_exceeds_them_by_what_is_given_back(commands, rate, burst):
    """One rate and one burst, so that every window is tight; parts of the burst, and of the time to fill it."""
    world = World()
    for kind, value in commands:
        match kind:
            case "take":
                world.take((0.01, burst * value, rate, burst))
            case "wait":
                world.step(kind, value * burst / rate)
            case _:
                world.step(kind, value)


@given(steps, amounts, amounts)
@settings(max_examples=200, deadline=None)
def test_what_wait_says_is_true(commands, rate, burst):
    world = World()
    for kind, value in commands:
        world.step(kind, value)
    want = Want("g", "k", burst / 2, burst, rate, burst)
    world.bucket, grant = quota.take(world.bucket, want, world.clock)
    assert grant.wait <= (world.bucket.level + want.least) / min(grant.rate, rate) + 2 * quota.FINEST
    _, later = quota.take(world.bucket, want, world.clock + grant.wait * 1.000001)
    assert later.units >= want.least


def test_a_rate_far_above_the_clock_s_steps_is_kept():
    """With the time of arrival alone, a unit of less than a microsecond would cost nothing."""
    want = Want("g", "k", 1, 1, 3e6, 10)
    bucket, granted = None, 0.0
    for _ in range(50):
        bucket, grant = quota.take(bucket, want, NOW)
        granted += grant.units
    assert granted == 10


NODE = """
import asyncio, json, sys
from holdfast.store.quota import Return, Want

async def main(kind, place, number):
    if kind == "sqlite":
        from holdfast.store.sqlite.store import SqliteStore as Store
    else:
        from holdfast.store.postgres.store import PostgresStore as Store
    store = Store(place)
    await store.open()
    keys = ["a", "b"] if number % 2 else ["b", "a"]
    until = await store.now() + 1.5
    async def ask():
        while await store.now() < until:
            grants = await store.guards.take([Want("g", key, 1, 1 + number, 40, 20) for key in keys])
            back = [Return(grant, grant.units / 2) for grant in grants if grant.units > 2]
            await store.guards.give_back(back)
            halved = {item.grant.key for item in back}
            for grant in grants:
                if grant.units:
                    used = grant.units / 2 if grant.key in halved else grant.units
                    print(json.dumps([grant.key, grant.at, used]), flush=True)
            await asyncio.sleep(0.01)
    await asyncio.gather(*(ask() for _ in range(3)))
    await store.close()
asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_processes_together_stay_within_rate_and_burst(kind, tmp_path, request):
    place = str(tmp_path / "a.db") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    if kind == "sqlite":
        asyncio.run(SqliteStore(place).migrate())
    nodes = [
        subprocess.Popen(
            [sys.executable, "-c", NODE, kind, place, str(number)], stdout=subprocess.PIPE, text=True
        )
        for number in range(3)
    ]
    lines = [line for node in nodes for line in node.communicate(timeout=60)[0].splitlines()]
    assert [node.returncode for node in nodes] == [0, 0, 0]
    for key in ("a", "b"):
        grants = sorted((at, used) for name, at, used in map(json.loads, lines) if name == key)
        assert sum(used for _, used in grants) >= 20 + 40 * 0.5, "most of it was granted"
        for start, (since, _) in enumerate(grants):
            units = 0.0
            for at, used in grants[start:]:
                units += used
                assert units <= 40 * (at - since) + 20 + 1e-3, f"{units} of {key} in {at - since} s"


async def crowd(store, number):
    want = [Want("g", f"k{n % 3}", 1, 1, 1000, 50) for n in range(3)]
    grants = await asyncio.gather(*(store.guards.take(want[:: 1 if n % 2 else -1]) for n in range(number)))
    return [grant for batch in grants for grant in batch]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_crowds_on_the_same_keys_in_either_order_all_are_answered(kind, tmp_path, postgres_url):
    stores = (
        [SqliteStore(tmp_path / "a.db", synchronous="OFF") for _ in range(2)]
        if kind == "sqlite"
        else [PostgresStore(postgres_url) for _ in range(2)]
    )
    for store in stores:
        await store.open()
    try:
        answers = await asyncio.gather(*(crowd(store, 100) for store in stores))
        for key in ("k0", "k1", "k2"):
            grants = [grant for batch in answers for grant in batch if grant.key == key]
            took = max(grant.at for grant in grants) - min(grant.at for grant in grants)
            assert len(grants) == 200
            assert sum(grant.units for grant in grants) <= 1000 * took + 50 + 1e-3
    finally:
        for store in stores:
            await store.close()
