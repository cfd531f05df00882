"""What nodes tell each other of a limiter's rate: in one unit, until it is heard, and when it is faster, too."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from holdfast.fleet.guards import GuardFleet
from holdfast.fleet.terms import terms_of
from holdfast.guards.guard import Guard
from holdfast.guards.limiter import Limiter
from holdfast.kernel.errors import StoreUnavailable
from holdfast.store.breakers import FleetBreaker
from holdfast.store.quota import Bucket, pace_of, settled, slowed, sped, take


class Store:
    """One bucket, without a database."""

    def __init__(self):
        self.bucket, self.now, self.fails, self.told = None, 1000.0, 0, []

    async def report(self, node, reports, *, ttl):
        return [FleetBreaker(guard=report.guard) for report in reports]

    async def take(self, wants):
        self.now += 1.0
        self.bucket, grant = take(self.bucket, wants[0], self.now)
        return [grant]

    async def slow(self, name, key, *, rate, pause=0.0, version=0, in_row=0):
        if self.fails:
            self.fails -= 1
            raise StoreUnavailable("away")
        self.told.append((rate, pause))
        known = self.bucket or Bucket(at=self.now, rate=rate or 1.0)
        self.bucket = slowed(settled(known, self.now), rate, pause, version, 7 + len(self.told))
        return pace_of(name, key, self.bucket)

    async def sped(self, name, key, *, rate, version):
        self.bucket = sped(self.bucket, rate, version, version + 1)
        return pace_of(name, key, self.bucket)


def _node(store, **options):
    fleet = GuardFleet()
    limiter = Limiter(**{"rate": 8, "burst": 1, "floor": 1, "ceiling": 8} | options)
    fleet.add(Guard("g", limiter=limiter))
    fleet.meet_at(store)
    return fleet, limiter


async def _asked(fleet, limiter):
    fleet._slices.come_back()
    for pot in fleet._slices.pots:
        pot.drop()
        pot.due = 0.0
    limiter.try_take()  # in vain, so the store is asked
    await fleet._round()


@pytest.mark.parametrize(
    ("fastest", "burst"), [(8, 1), (8, 1.2), (8, 2), (8, 8), (8, 40), (1000, 3), (0.5, 1)]
)
@pytest.mark.parametrize("part", [0.1, 0.5, 1.0])
def test_a_rate_comes_back_as_it_went(fastest, burst, part):
    terms = terms_of(fastest, burst)
    granted = terms.rate(fastest * part)
    assert terms.rate(terms.wanted(granted)) == pytest.approx(granted)
    assert terms.wanted(granted) <= fastest * part * 1.000001


def test_what_the_fleet_could_not_hear_it_is_told_again():
    store = Store()
    fleet, limiter = _node(store)
    store.fails = 1
    limiter.throttled(20)

    async def run():
        with pytest.raises(StoreUnavailable):
            await fleet._round()
        await fleet._round()
        await fleet._round()

    asyncio.run(run())
    [(rate, pause)] = store.told
    assert rate == pytest.approx(terms_of(8, 1).rate(4))
    assert 19 < pause <= 24


def test_of_many_keys_that_are_slowed_some_are_told_in_each_round():
    store = Store()
    fleet, limiter = _node(store)
    for number in range(250):
        limiter.throttled(20, key=f"user:{number}")

    async def run():
        numbers = []
        for _ in range(4):
            await fleet._round()
            numbers.append(len(store.told))
        return numbers

    assert asyncio.run(run()) == [100, 200, 250, 250]


def test_when_telling_takes_long_the_round_goes_on():
    class Slow(Store):
        async def slow(self, *args, **named):
            await asyncio.sleep(0.2)
            return await super().slow(*args, **named)

    store = Slow()
    fleet, limiter = _node(store)
    for number in range(20):
        limiter.throttled(20, key=f"user:{number}")
    asyncio.run(fleet._round())
    assert 0 < len(store.told) < 10


async def test_a_driver_that_swallows_a_cancellation_does_not_keep_it_from_ending():
    class Swallowing(Store):
        asked = False

        async def report(self, node, reports, *, ttl):
            if self.asked:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
            self.asked = True
            return await super().report(node, reports, ttl=ttl)

    store = Swallowing()
    fleet, _ = _node(store)
    await fleet.start()
    fleet.changed("g", None)
    await asyncio.sleep(0.1)
    async with asyncio.timeout(10):
        await fleet.stop()


def test_what_one_was_told_counts_for_the_others_and_so_does_what_makes_it_faster():
    store = Store()
    (one, first), (other, second) = _node(store), _node(store)

    async def run():
        await _asked(one, first)
        await _asked(other, second)
        first.throttled(0)
        await one._round()
        await _asked(other, second)
        assert second.rate() == pytest.approx(first.rate()) == pytest.approx(4)
        for _ in range(4):
            first.succeeded()
        faster = first.rate()
        await _asked(one, first)
        assert first.rate() == pytest.approx(faster)  # its own news is none
        await _asked(other, second)
        assert second.rate() == pytest.approx(faster)

    asyncio.run(run())
    assert 4 < second.rate() < 8
