"""The broker in memory keeps every promise of a transport, and breaks them only where it is told to."""

from __future__ import annotations

import pytest

from holdfast.kernel.reality import REALITY
from holdfast.testing.conformance import TransportConformance, TransportFaultsConformance
from holdfast.testing.memory import MemoryBroker, MemoryTransport


class MemoryHarness:
    world = REALITY
    largest = 150_001
    keeps_acks = True
    url = None

    def __init__(self):
        self.broker = None

    async def open(self):
        self.broker = MemoryBroker(largest=150_000)
        return await self.second(None)

    async def second(self, transport):
        return await self._client(5.0)

    async def hasty(self, transport):
        return await self._client(0.1)

    async def _client(self, timeout):
        made = MemoryTransport(self.broker, timeout=timeout)
        await made.open()
        return made

    async def freeze(self):
        self.broker.freeze()

    async def thaw(self):
        self.broker.thaw()

    async def kill(self):
        self.broker.stop()

    async def start(self):
        self.broker.start()

    async def cut(self):
        self.broker.hang_up()

    async def wipe(self, transport):
        self.broker.forget_everything()

    async def close(self):
        pass


class TestMemory(TransportConformance):
    @pytest.fixture
    def harness(self):
        return MemoryHarness()


class TestBrokenMemory(TransportFaultsConformance):
    @pytest.fixture
    def harness(self):
        return MemoryHarness()
