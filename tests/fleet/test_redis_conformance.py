"""On Redis the shared part of guards keeps every promise that it keeps in a store."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from redis_harness import RedisHarness

from holdfast.testing.conformance import SharedGuardsConformance
from holdfast.testing.conformance.machine import SharedGuardsMachineConformance


class TestRedis(SharedGuardsConformance):
    counts = False

    @pytest.fixture
    def harness(self, valkey):
        return RedisHarness(valkey)


class TestRedisAtRandom(SharedGuardsMachineConformance):
    counts = False
    grace = 60.0
    examples = 80

    @pytest.fixture
    def harness(self, valkey):
        return RedisHarness(valkey)
