"""The right to find out for all whether the other side is well: it ends, also for a node that has not used it."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.fleet.breakers import Member
from holdfast.guards import Breaker, BreakerOpen, Guard, State
from holdfast.kernel.world import inhabit
from holdfast.store.breakers import FleetBreaker, Probe
from holdfast.testing.clock import ManualClock


@pytest.fixture
def clock():
    with inhabit(ManualClock()) as world:
        world.advance(100)
        yield world


class Hints:
    """One right at a time, as the store gives it."""

    def __init__(self):
        self.is_free, self.tokens = True, 0

    async def probe(self, name, node, *, permits, lease):
        if not self.is_free:
            return None
        self.is_free, self.tokens = False, self.tokens + 1
        return Probe(name, node, self.tokens, 0.0)


def decide(member, hints, **fleet):
    member.hear(FleetBreaker(guard="api", generation=1, **fleet))
    asyncio.run(member.decide(hints, member.report()))


def test_who_has_not_used_his_right_in_time_has_it_no_more(clock):
    """Nobody called on that node; another had the right by then, and both called."""
    guard = Guard("api", breaker=Breaker(failures=1, cooldown=5, permits=1, lease=10))
    member, hints = Member(guard, "one", print), Hints()
    decide(member, hints, open_for=5.0, opened_until=1.0)
    with pytest.raises(BreakerOpen):
        guard.breaker.admit()
    clock.advance(6)
    decide(member, hints)
    assert (hints.tokens, guard.breaker.state) == (1, State.HALF_OPEN)
    clock.advance(9)
    decide(member, hints)
    assert guard.breaker.state is State.HALF_OPEN
    clock.advance(2)  # another node has it now
    decide(member, hints)
    with pytest.raises(BreakerOpen):
        guard.breaker.admit()
    decide(member, hints)
    hints.is_free = True
    guard.breaker.wanted()
    decide(member, hints)
    assert hints.tokens == 2
