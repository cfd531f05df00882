"""A program on a fresh store of each kind, under a clock that the test turns."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.testing import fresh


@pytest.fixture
def clock(manual_clock):
    return manual_clock


@pytest.fixture
async def hf(manual_clock, url):
    async with fresh(Holdfast("sqlite:///never-made.db"), url) as opened:
        yield opened
