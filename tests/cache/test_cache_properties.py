"""I31 in virtual time, for many seeds: one loader, nothing too old, no failure of a cache is one of its callers."""

from __future__ import annotations

import os

import pytest
from cache_fleet import LEASE, LONGEST, STALE, WAIT, Fleet, LoadFailed
from virtual import virtually

from holdfast.kernel.errors import NotOpen
from holdfast.views.cache_place import PATIENCE

SEEDS = range(int(os.environ.get("HOLDFAST_TEST_DEEP", "1")) * 6)
# A value is written at most so long after its load has ended: a put, and the question whether it was kept.
WRITTEN = 2 * PATIENCE


def simulated(seed, **plan):
    made = {key: plan.pop(key) for key in ("processes", "failing", "faults") if key in plan}

    async def main():
        return await Fleet(seed, **made).run(**plan)

    return virtually(main, str(seed + 1))


def none_too_old(seen):
    assert seen.served
    for each in seen.served:
        assert each.got - each.loaded <= STALE + WRITTEN, each


def one_loader_in_each_process(seen):
    assert seen.most_in_process == 1


def none_from_before_an_invalidation(seen):
    for name, done, version in seen.invalidated:
        for each in seen.served:
            assert each.key != name or each.asked < done or each.version >= version, (each, done, version)


def none_from_before_an_invalidation_of_its_own(seen):
    """The place did not answer: at least who has invalidated it does not serve it."""
    for process, name, done, version in seen.owed:
        for each in seen.served:
            is_later = each.process == process and each.key == name and each.asked >= done
            assert not is_later or each.version >= version, (each, done, version)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_too_old_is_served_to_those_who_come_seldom(seed):
    seen = simulated(seed, readers=60, seconds=4000)
    none_too_old(seen)
    assert any(each.got - each.loaded > STALE / 2 for each in seen.served), "some were old"
    assert seen.most_in_fleet == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_calm_fleet_has_one_loader_for_each_key(seed):
    seen = simulated(seed, readers=400, seconds=400, failing=0.3)
    assert seen.most_in_fleet == 1
    none_too_old(seen)
    assert {type(error) for error in seen.errors} <= {LoadFailed}
    assert len(seen.loads) < 400 / 4


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_from_before_an_invalidation_is_served_after_it(seed):
    seen = simulated(seed, readers=400, seconds=400, writes=3 * LONGEST, refreshes=10)
    assert len(seen.invalidated) > 5
    none_from_before_an_invalidation(seen)
    one_loader_in_each_process(seen)
    none_too_old(seen)
    assert seen.errors == []


@pytest.mark.parametrize("seed", SEEDS)
def test_no_trouble_of_the_place_reaches_a_caller(seed):
    seen = simulated(seed, readers=400, seconds=400, writes=3 * LONGEST, faults=lambda now: now % 100 < 50)
    none_from_before_an_invalidation_of_its_own(seen)
    assert seen.errors == []
    assert len(seen.served) == 400
    one_loader_in_each_process(seen)
    none_too_old(seen)
    assert seen.longest_wait < WAIT + 3 * LONGEST + 10 * PATIENCE


@pytest.mark.parametrize("seed", SEEDS)
def test_deaths_let_another_begin_after_the_lease(seed):
    seen = simulated(seed, processes=5, readers=400, seconds=400, deaths=3)
    assert {type(error) for error in seen.errors} <= {NotOpen}, "those of the dead themselves"
    none_too_old(seen)
    one_loader_in_each_process(seen)
    assert seen.longest_wait < LEASE + 2 * LONGEST + 5
