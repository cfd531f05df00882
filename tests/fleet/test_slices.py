"""Slices of a fleet's quota: what lapses, what comes back, who waits, and what there is when the store answers too late."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from holdfast.fleet.pots import Pot
from holdfast.fleet.slices import Slices
from holdfast.guards.limiter import Limiter
from holdfast.guards.ports import Slice
from holdfast.kernel.world import inhabit
from holdfast.store.quota import Grant, Return
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


def _grant(units=1.0, key="", wait=0.0):
    return Grant("api", key, units, wait, 8.0, 0.0, 0, 0.0, 0.0)


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
    for _ in range(6):
        _grant_late(slices, clock)
    assert [name for name, _ in notes] == ["guards.late"]  # once, and it begins once
    assert slices.take("api", "", 1.0).units == 0  # others may have come since they were counted
    slices.count(2, clock.monotonic())
    assert slices.take("api", "", 1.0).units == 1.0  # 8 a second for two of them: 1 in a quarter of one
    assert slices.take("api", "", 1.0).ask_again == pytest.approx(0.1, abs=0.16)
    clock.advance(1.0)
    assert slices.take("api", "", 1.0).units == 0  # it asks the store again
    slices.granted([_grant()], clock.monotonic())  # what it owes is paid first
    assert slices.take("api", "", 1.0).units == 0
    slices.granted([_grant()], clock.monotonic())
    assert slices.take("api", "", 1.0).units == 1.0


def test_one_late_answer_gives_nobody_a_share(clock, notes):
    """A database that restarts is late for each of them at another moment: their shares came on top of what others were granted."""
    slices = _shared()
    slices.take("api", "", 1.0)
    _grant_late(slices, clock)
    _grant_late(slices, clock)
    slices.count(2, clock.monotonic())
    assert slices.take("api", "", 1.0).units == 0
    slices.granted([_grant()], clock.monotonic())  # in time
    clock.advance(1.0)
    _grant_late(slices, clock)
    slices.count(2, clock.monotonic())
    assert (slices.take("api", "", 1.0).units, notes) == (0, [])


def _grant_late(slices, clock):
    asked = clock.monotonic()
    clock.advance(0.2)
    slices.granted([_grant()], asked)


def test_a_store_that_has_forgotten_the_others_does_not_make_them_fewer(clock):
    """After a flush each heard only of who had reported since, and took a larger share when the store went away."""
    slices = _shared(nodes=1)
    slices.count(4, clock.monotonic())
    for nodes in (1, 2):
        clock.advance(3)
        slices.count(nodes, clock.monotonic())
        assert slices.nodes == 4
    slices.go_alone()
    clock.advance(60)
    slices.come_back()
    slices.count(1, clock.monotonic())
    assert slices.nodes == 4
    for nodes in (3, 2):  # two have left
        clock.advance(6)
        slices.count(nodes, clock.monotonic())
    assert slices.nodes == 3
    slices.count(5, clock.monotonic())
    assert slices.nodes == 5


def test_who_starts_without_the_store_counts_the_others_before_he_shares(clock):
    slices = _shared(nodes=1)
    slices.go_alone()
    slices.count_first()
    slices.count(1, clock.monotonic())  # the others may start in this very moment
    assert slices.take("api", "", 1.0).units == 0
    clock.advance(1)
    slices.count(4, clock.monotonic())
    clock.advance(1)
    assert slices.take("api", "", 1.0).units == 1.0
    assert slices.take("api", "", 1.0).ask_again == pytest.approx(0.5)  # 8 a second for four of them


def test_who_can_ask_nobody_has_his_share_all_the_same(clock):
    slices = _shared(nodes=1)
    slices.go_alone()
    slices.count_first()
    clock.advance(6)
    assert slices.take("api", "", 1.0).units == 1.0


def test_when_the_store_is_back_nobody_has_more_than_his_share_until_all_have_noticed(clock):
    """The first who asked it again was granted the whole rate, and the others had their shares on top of that."""
    slices = _shared(rate=8, burst=9, nodes=4)
    slices.go_alone(is_lost=True)
    slices.come_back()
    slices.granted([_grant(4.0)], clock.monotonic())
    assert slices.take("api", "", 1.0).units == 0
    assert slices.call_when("api", "", 1.0, print) is None  # he asks again in time
    clock.advance(0.4)
    assert slices.take("api", "", 1.0).units == 0
    clock.advance(0.1)
    assert slices.take("api", "", 1.0).units == 0  # 2 a second, and what was granted has lapsed
    slices.granted([_grant(4.0)], clock.monotonic())
    assert slices.take("api", "", 1.0).units == 1.0
    assert slices.take("api", "", 1.0).ask_again == pytest.approx(0.5)
    clock.advance(2)
    slices.granted([_grant(4.0)], clock.monotonic())
    assert [slices.take("api", "", 1.0).units for _ in range(5)] == [1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("rate", "burst", "shared"), [(30, 1, 12), (30, 4, None), (30, 30, None), (0.2, 1, None)]
)
def test_a_burst_that_costs_a_part_of_the_rate_is_told(clock, rate, burst, shared):
    slices = _shared(rate=rate, burst=burst)
    assert [each for _, each in slices.slower()] == ([] if shared is None else [pytest.approx(shared)])


# --- who waits ---


def _waiting(slices, called, *units, key=""):
    """They are refused, and wait."""
    for number, wanted in enumerate(units):
        assert slices.take("api", key, wanted).units == 0
        assert slices.call_when("api", key, wanted, partial(called.append, number)) is not None


def test_who_waits_is_called_in_order_when_there_is_enough(clock):
    slices, called = _shared(rate=4, burst=9), []
    _waiting(slices, called, 1.0, 2.0, 1.0, 1.0)
    [want] = slices.wants()
    assert (want.least, want.most) == (2.0, 2.5)  # the first of them, and a node's share of what all want
    slices.granted([_grant(3.5, wait=0.25)], clock.monotonic())
    assert called == [0, 1]
    clock.advance(0.2)
    assert slices.wants() == []
    clock.advance(0.1)
    [want] = slices.wants()  # nobody has asked again: they wait
    assert want.most == 2.0
    slices.granted([_grant(1.5)], clock.monotonic())
    assert called == [0, 1, 2, 3]
    assert slices.wants() == []


def test_who_no_longer_waits_is_not_asked_for(clock):
    slices, called = _shared(rate=4, burst=9), []
    slices.take("api", "", 1.0)
    slices.wants()
    slices.granted([_grant(0.0, wait=0.5)], clock.monotonic())
    back = slices.call_when("api", "", 1.0, partial(called.append, 1))
    back()
    back()
    clock.advance(1)
    assert slices.wants() == []
    slices.granted([_grant(1.0)], clock.monotonic())
    assert called == []


def test_what_comes_back_is_for_the_first_who_waits(clock):
    slices, called = _shared(rate=4, burst=9), []
    clock.advance(2)
    _waiting(slices, called, 1.0, 1.0)
    slices.give_back("api", "", Slice(1.0, 0.3))
    assert called == [0]


def test_who_waits_is_called_when_the_store_is_away_or_a_person_has_reset_it(clock):
    for happens in (Slices.go_alone, partial(Slices.forget, name="api")):
        slices, called = _shared(), []
        _waiting(slices, called, 1.0, 1.0)
        happens(slices)
        assert called == [0, 1]
    slices.go_alone()
    assert slices.call_when("api", "", 1.0, called.clear) is None  # he asks again in time


def test_a_grant_that_came_before_he_could_wait_is_not_missed(clock):
    slices, called = _shared(), []
    slices.take("api", "", 1.0)
    slices.granted([_grant()], clock.monotonic())
    slices.call_when("api", "", 1.0, partial(called.append, 1))
    assert called == [1]


async def test_hundreds_who_wait_for_a_first_slice_do_not_ask_again_and_again(monkeypatch):
    slices, asked = _shared(rate=500, burst=1000, nodes=1), []
    original = Slices.take
    monkeypatch.setattr(Slices, "take", lambda *args: asked.append(1) or original(*args))
    [(limiter, _)] = slices._limiters.values()
    calls = [asyncio.create_task(limiter.take()) for _ in range(400)]
    await asyncio.sleep(0.2)  # else each of them would ask every 5 ms
    assert len(asked) == 400
    [want] = slices.wants()
    slices.granted([_grant(want.most)], asyncio.get_running_loop().time())
    await asyncio.gather(*calls)
    assert len(asked) <= 1200


# --- many keys ---


def test_only_keys_that_may_want_something_are_looked_at(clock, monkeypatch):
    slices, looked = _shared(), []
    for number in range(500):
        slices.take("api", f"user:{number}", 1.0)
    assert [len(slices.wants()) for _ in range(6)] == [100] * 5 + [0]
    slices.granted([_grant(key=f"user:{number}", wait=9.0) for number in range(500)], clock.monotonic())
    original = Pot.want
    monkeypatch.setattr(Pot, "want", lambda pot, *args: looked.append(pot.key) or original(pot, *args))
    slices.take("api", "user:7", 1.0)
    slices.take("api", "another", 1.0)
    assert [want.key for want in slices.wants()] == ["another"]
    assert looked == ["another"]


def test_no_more_keys_are_kept_than_the_limiter_keeps(clock):
    slices = Slices(lambda: None)
    slices.add(Limiter(rate=1, burst=1, name="api", keys=50))
    slices.come_back()
    slices.nodes = 2
    slices.slowed("api", "slowed", None)
    for number in range(500):
        slices.take("api", f"user:{number}", 1.0)
    kept = {pot.key for pot in slices.pots}
    assert len(kept) <= 52
    assert {"slowed", "user:499"} <= kept
    assert len({want.key for want in slices.wants()}) <= 52


def test_keys_that_nobody_asks_for_are_forgotten(clock):
    slices = _shared()
    slices.take("api", "old", 1.0)
    clock.advance(50)
    slices.take("api", "new", 1.0)
    clock.advance(20)
    slices.tidy()
    assert [pot.key for pot in slices.pots] == ["new"]


# --- what is not used ---


def test_what_lapses_unused_is_given_back(clock):
    slices = _shared(rate=8, burst=100, nodes=1)
    slices.take("api", "", 1.0)
    grant = _grant(40.0)
    slices.granted([grant], clock.monotonic())
    assert slices.take("api", "", 5.0).units == 5.0
    assert slices.unused() == []
    assert slices.next <= clock.monotonic() + 1.0
    clock.advance(1.1)
    assert slices.unused() == [Return(grant, 35.0)]
    assert slices.unused() == []


def test_what_has_drained_meanwhile_is_not_worth_a_question(clock):
    slices = _shared(rate=8, burst=16, nodes=1)
    slices.granted([_grant(7.0)], clock.monotonic())
    clock.advance(2)
    assert slices.unused() == []
    assert slices.next == float("inf")


def test_the_one_call_of_a_slow_limiter_is_given_back(clock):
    """Else nobody may call for a whole interval, because one who was granted it was gone by then."""
    slices = _shared(rate=1 / 3, burst=1, nodes=1)
    slices.take("api", "", 1.0)
    grant = Grant("api", "", 1.0, 0.0, 0.3, 0.0, 0, 0.0, 0.0)
    slices.granted([grant], clock.monotonic())
    clock.advance(1)
    assert slices.unused() == [Return(grant, 1.0)]


def test_who_leaves_gives_back_what_he_has(clock):
    slices = _shared(rate=8, burst=100, nodes=1)
    slices.granted([_grant(40.0)], clock.monotonic())
    assert [item.units for item in slices.leave()] == [40.0]
    assert slices.take("api", "", 1.0).units == 0
