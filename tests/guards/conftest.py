"""A clock that stands still and a chance that is always the middle: a jitter of ± a fifth is none."""

from __future__ import annotations

import pytest
from virtual import StillWorld

from holdfast.kernel.world import inhabit


@pytest.fixture
def clock():
    with inhabit(StillWorld()) as world:
        yield world
