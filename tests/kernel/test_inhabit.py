"""The world can be exchanged for a block, and everything started in it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from holdfast.kernel import clock, randomness
from holdfast.kernel.reality import REALITY
from holdfast.kernel.world import current, inhabit


def test_reality_is_the_default():
    assert current() is REALITY
    assert abs(clock.now() - datetime.now(UTC).timestamp()) < 1
    assert abs(clock.host_now() - clock.now()) < 1
    assert clock.monotonic() <= clock.monotonic()
    assert 0 <= randomness.random() < 1
    assert len(randomness.random_bytes(16)) == 16


async def test_asking_goes_to_the_world_that_is_inhabited(paper):
    assert clock.now() == 1_700_000_000.0
    assert clock.host_now() == 1_700_001_000.0
    assert clock.monotonic() == 0.0
    await clock.sleep(30)
    assert clock.monotonic() == 30.0
    assert randomness.random() == 0.5
    assert randomness.random_bytes(2) == b"\0\x01"


def test_leaving_restores_what_was_before(paper):
    other = type(paper)()
    with pytest.raises(KeyError), inhabit(other):
        assert current() is other
        raise KeyError
    assert current() is paper


async def test_tasks_stay_in_the_world_they_began_in(paper):
    async def where():
        await asyncio.sleep(0)
        return current()

    with inhabit(type(paper)()) as other:
        task = asyncio.create_task(where())
    assert await task is other
    assert current() is paper


def test_jitter(paper):
    for chance, seconds in ((0.0, 8.0), (0.5, 10.0), (1.0, 12.0)):
        paper.chance = chance
        assert clock.moment(0) == datetime(1970, 1, 1, tzinfo=UTC)
        assert randomness.jittered(10) == pytest.approx(seconds)
    assert randomness.jittered(10, share=0.5) == pytest.approx(15.0)


async def test_reality_sleeps_without_harm():
    await clock.sleep(0)
    await clock.sleep(-1)
    assert REALITY.owns(lambda: None)() is None
