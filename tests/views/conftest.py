"""A store with a log of events in it, and views that run on it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from viewkit import Bench

from holdfast.runtime.config import locate, open_store


@pytest.fixture
async def bench(url):
    store = open_store(locate(url))
    await store.open()
    bench = Bench(store)
    yield bench
    await bench.end()
    await store.close()
