"""Redis Streams keep every promise of a transport, on a real server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from transport_harness import BreakableHarness, ServerHarness

from holdfast.testing.conformance import TransportConformance, TransportFaultsConformance
from holdfast.transport.redis import RedisTransport
from tools.valkey import PERSISTENT, ValkeyServer


@pytest.fixture(scope="module")
def small_valkey():
    """Takes a megabyte at most."""
    server = ValkeyServer("--proto-max-bulk-len", "1mb")
    yield server
    server.stop()


class TestRedis(TransportConformance):
    @pytest.fixture
    def harness(self, small_valkey):
        harness = ServerHarness(small_valkey, RedisTransport)
        harness.largest = 1024 * 1024 + 1
        return harness


class BreakableRedis(BreakableHarness):
    async def wipe(self, transport):
        await transport._link.call("FLUSHALL")


class TestBrokenRedis(TransportFaultsConformance):
    @pytest.fixture
    def harness(self):
        return BreakableRedis(lambda: ValkeyServer(*PERSISTENT), RedisTransport)
