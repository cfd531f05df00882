"""A clock that stands still and a chance that is always the middle: a jitter of ± a fifth is none."""

from __future__ import annotations

import pytest
from virtual import StillWorld

from holdfast.kernel.telemetry import subscribe
from holdfast.kernel.world import inhabit


@pytest.fixture
def clock():
    with inhabit(StillWorld()) as world:
        yield world


@pytest.fixture
def notes():
    """The names of all notes, in their order, with their fields."""
    heard: list[tuple[str, dict]] = []
    stop = subscribe(lambda name, fields: heard.append((name, dict(fields))))
    yield heard
    stop()
