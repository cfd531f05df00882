"""Somebody who looks at pages all the time, while API processes are restarted in turn: what one does not answer, the other does."""

from __future__ import annotations

import asyncio
import time

import httpx2

PAGES = ("/", "/probes/ready")
EVERY = 0.1  # seconds
PATIENCE = 10.0


class Visitor:
    """As a balancer before two processes does it. `took` are the seconds of what was answered."""

    def __init__(self, addresses: list[str]) -> None:
        self._addresses = addresses
        self.took: list[float] = []
        self.failed: list[str] = []

    async def are_there(self) -> None:
        for address in self._addresses:
            await self._until_ready(address)

    async def _until_ready(self, address: str) -> None:
        end = time.monotonic() + 60
        while True:
            async with httpx2.AsyncClient(trust_env=False) as client:
                try:
                    if (await client.get(f"{address}/probes/ready")).status_code == 200:
                        return
                except httpx2.TransportError:
                    pass
            assert time.monotonic() < end, f"{address} is not ready"
            await asyncio.sleep(0.1)

    async def look(self) -> None:
        """Until it is cancelled."""
        number = 0
        async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
            while True:
                await asyncio.sleep(EVERY)
                await self._one(client, number)
                number += 1

    async def _one(self, client: httpx2.AsyncClient, number: int) -> None:
        path, began = PAGES[number % len(PAGES)], time.monotonic()
        told = ""
        for turn in range(len(self._addresses)):
            address = self._addresses[(number // len(PAGES) + turn) % len(self._addresses)]
            try:
                answer = await client.get(f"{address}{path}")
            except httpx2.TransportError as error:
                told = repr(error)
                continue
            if answer.status_code == 200:
                self.took.append(time.monotonic() - began)
                return
            told = f"{path}: {answer.status_code} {answer.text[:200]}"
        self.failed.append(told)
