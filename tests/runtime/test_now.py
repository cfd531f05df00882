"""`hf.now()`: the database's clock, which tests turn."""

from __future__ import annotations

import time

from holdfast import Holdfast
from holdfast.testing import ManualClock, fresh


async def test_it_is_the_time_of_the_database(tmp_path):
    async with Holdfast(f"sqlite:///{tmp_path}/now.db") as hf:
        assert abs(await hf.now() - time.time()) < 60


async def test_a_turned_clock_turns_it():
    hf = Holdfast("sqlite:///unused.db")
    with ManualClock() as clock:
        async with fresh(hf):
            before = await hf.now()
            clock.advance(3600)
            assert await hf.now() - before == 3600
