"""On Redis sessions are kept on the same terms as in a store."""

from __future__ import annotations

import pytest
from redis_shared import RedisHarness

from holdfast.fleet.redis_visits import RedisVisits
from holdfast.testing.conformance import SharedVisitsConformance


class TestRedis(SharedVisitsConformance):
    @pytest.fixture
    def harness(self, valkey):
        return RedisHarness(valkey, RedisVisits, "visits")
