"""Slices of a fleet's quota: what lapses, what comes back, and what a process has when the store answers too late."""

from __future__ import annotations

import pytest

from holdfast.fleet.slices import Slices
from holdfast.guards.limiter import Limiter
from holdfast.guards.ports import Slice
from holdfast.kernel.world import inhabit
from holdfast.store.quota import Grant
from holdfast.testing.clock import ManualClock


@pytest.fixture
def clock():
    with inhabit(ManualClock()) as world:
        world.advance(100)
        yield world


def _shared(rate=8.0, burst=1.0, nodes=2):
    slices = Slices(lambda: None)
    slices.add(Limiter(rate=rate, burst=burst, name="api"))
    slices.come_back()
    slices.nodes = nodes
    return slices


def _grant(units=1.0):
    return Grant("api", "", units, 0.0, 8.0, 0.0, 0, 0.0, 0.0)


def test_what_is_granted_lapses(clock):
    slices = _shared()
    slices.granted([_grant()], clock.monotonic())
    clock.advance(0.06)
    assert slices.take("api", "", 1.0).units == 0


def test_what_comes_back_is_good_for_as_long_as_it_was(clock):
    slices = _shared(rate=4, burst=9)
    clock.advance(2)
    slices.give_back("api", "", Slice(1.0, 0.3))
    clock.advance(0.2)
    assert slices.take("api", "", 1.0).lasts == pytest.approx(0.1)
    slices.give_back("api", "", Slice(1.0, 0.1))
    clock.advance(0.2)
    assert slices.take("api", "", 1.0).units == 0


def test_when_the_store_answers_too_late_there_is_the_share(clock, notes):
    slices = _shared()
    slices.take("api", "", 1.0)
    for _ in range(3):
        asked = clock.monotonic()
        clock.advance(0.2)
        slices.granted([_grant()], asked)
    assert [name for name, _ in notes] == ["guards.late"]  # once, and it begins once
    assert slices.take("api", "", 1.0).units == 1.0  # 8 a second for two of them: 1 in a quarter of one
    assert slices.take("api", "", 1.0).ask_again == pytest.approx(0.1, abs=0.16)
    clock.advance(1.0)
    assert slices.take("api", "", 1.0).units == 0  # it asks the store again
    slices.granted([_grant()], clock.monotonic())  # what it owes is paid first
    assert slices.take("api", "", 1.0).units == 0
    slices.granted([_grant()], clock.monotonic())
    assert slices.take("api", "", 1.0).units == 1.0
