"""A clock that stands still and a chance that is always the middle: a jitter of ± a fifth is none. And an HTTP server."""

from __future__ import annotations

import pytest
from http_server import running
from virtual import StillWorld

from holdfast.kernel.world import inhabit


@pytest.fixture
def clock():
    with inhabit(StillWorld()) as world:
        yield world


@pytest.fixture
def server():
    with running() as found:
        yield found
