"""NATS JetStream keeps every promise of a transport, on a real server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from transport_harness import BreakableHarness, ServerHarness

from holdfast.testing.conformance import TransportConformance, TransportFaultsConformance
from holdfast.transport.nats import NatsTransport
from tools.nats_server import NatsServer


class TestNats(TransportConformance):
    @pytest.fixture
    def harness(self, nats):
        harness = ServerHarness(nats, NatsTransport)
        harness.largest = 1024 * 1024 + 1
        return harness


class BreakableNats(BreakableHarness):
    keeps_acks = False  # it writes them a moment later

    async def wipe(self, transport):
        await transport._link.ask(f"$JS.API.STREAM.DELETE.{self._topic}")


class TestBrokenNats(TransportFaultsConformance):
    @pytest.fixture
    def harness(self):
        return BreakableNats(NatsServer, NatsTransport)
