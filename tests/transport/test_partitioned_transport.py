"""The port fits a broker with partitions and offsets, such as Kafka: an adapter of one keeps its promises."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from partitioned import Cluster, PartitionedTransport
from test_memory_transport import MemoryHarness

from holdfast.testing.conformance import TransportConformance, TransportFaultsConformance


class PartitionedHarness(MemoryHarness):
    by_partition = True

    async def open(self):
        self.broker = Cluster(largest=150_000)
        return await self.second(None)

    async def _client(self, timeout):
        made = PartitionedTransport(self.broker, timeout=timeout)
        await made.open()
        return made


class TestPartitioned(TransportConformance):
    @pytest.fixture
    def harness(self):
        return PartitionedHarness()


class TestBrokenPartitioned(TransportFaultsConformance):
    @pytest.fixture
    def harness(self):
        return PartitionedHarness()
