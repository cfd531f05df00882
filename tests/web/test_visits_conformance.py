"""On Redis sessions are kept on the same terms as in a store."""

from __future__ import annotations

import pytest
from visits_harness import RedisVisitsHarness

from holdfast.testing.conformance import SharedVisitsConformance


class TestRedis(SharedVisitsConformance):
    @pytest.fixture
    def harness(self, valkey):
        return RedisVisitsHarness(valkey)
