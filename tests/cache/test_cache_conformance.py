"""In memory and on Redis values are kept on the same terms as in a store."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cache_harness import MemoryHarness, RedisCacheHarness

from holdfast.testing.conformance import SharedCacheConformance


class TestMemory(SharedCacheConformance):
    @pytest.fixture
    def harness(self):
        return MemoryHarness()


class TestRedis(SharedCacheConformance):
    @pytest.fixture
    def harness(self, valkey):
        return RedisCacheHarness(valkey)
