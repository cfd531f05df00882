"""A provider that throttles, and one that is down for a while and well again. Rows 57 and 58."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from waiting import until

OUTAGE = float(os.environ.get("HOLDFAST_OUTAGE", "4"))  # seconds
COOLDOWN, PERMITS = 1.0, 1
PROGRAM = """
from holdfast.guards import Breaker, Limiter

class Answer(Exception):
    def __init__(self, status, retry_after):
        super().__init__(f"{{status}}")
        self.status_code, self.headers = status, {{"Retry-After": retry_after}} if retry_after else {{}}

api = hf.guard(
    "api", timeout=2,
    breaker=Breaker(failures=3, cooldown={cooldown}, permits={permits}),
    limiter=Limiter(rate=50, burst=20, floor=5, longest_pause=2),
)

async def ask():
    reader, writer = await asyncio.open_connection("127.0.0.1", {port})
    try:
        writer.write(b"GET / HTTP/1.0\\r\\n\\r\\n")
        lines = (await reader.read()).decode().split("\\r\\n")
    finally:
        writer.close()
    status = int(lines[0].split()[1])
    if status != 200:
        raise Answer(status, next((line.partition(": ")[2] for line in lines if line.startswith("Retry-After")), None))

@hf.task(name="ask", guard=api, retry=Backoff(attempts=3, first=0.05, ceiling=0.2))
async def asks() -> None:
    await api.call(ask)

@hf.task(name="other")
async def other() -> None: ...
"""


class Provider:
    """Answers as it is told, and keeps when it was called."""

    def __init__(self):
        self.status, self.retry_after, self.times, self.port = 200, [], [], 0

    async def _serve(self, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        self.times.append(time.monotonic())
        told = self.retry_after[len(self.times) % len(self.retry_after)] if self.retry_after else None
        header = f"Retry-After: {told}\r\n" if told is not None and self.status != 200 else ""
        writer.write(f"HTTP/1.0 {self.status} so\r\n{header}\r\n".encode())
        await writer.drain()
        writer.close()

    @asynccontextmanager
    async def open(self):
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()


@pytest.fixture
async def provider():
    async with Provider().open() as opened:
        yield opened


async def _started(fleet, provider):
    fleet.program(PROGRAM.format(port=provider.port, cooldown=COOLDOWN, permits=PERMITS))
    for _ in range(2):
        await fleet.started("-c", "8")


async def _attempts(fleet, jobs):
    return sorted([(await fleet.record(job)).attempt for job in jobs])


async def test_a_provider_that_throttles(fleet, provider):
    """Row 57: Retry-After as seconds, a date, 10^9, -1 and garbage: clamped, put off, and nobody is charged."""
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=5), usegmt=True)
    provider.status, provider.retry_after = 429, ["5", date, str(10**9), "-1", "garbage"]
    await _started(fleet, provider)
    jobs = await fleet.put_many("ask", 30, options={"guard": "api"})
    await until(lambda: len(provider.times) >= 6, seconds=30)
    during = len(provider.times)
    began = time.monotonic()
    provider.status = 200
    await fleet.all_become(jobs, seconds=60)
    assert time.monotonic() - began < 60
    assert await _attempts(fleet, jobs) == [1] * 30
    assert during < 6 + 20  # nobody called on and on


async def test_a_provider_that_is_down_for_a_while(fleet, provider):
    """Row 58: the breaker opens, one call at a time finds out, and all of it is done when the provider is well again."""
    provider.status = 500
    await _started(fleet, provider)
    jobs = await fleet.put_many("ask", 100, options={"guard": "api"})
    others = await fleet.put_many("other", 20)
    down = time.monotonic()
    await until(lambda: time.monotonic() > down + OUTAGE, seconds=OUTAGE + 5)
    calls = len(provider.times)
    # Until each of two processes has opened, and then its permits, and a few for races, at each end of a cool-down.
    assert calls <= 2 * (8 + 3) + 2 * (PERMITS + 1) * (OUTAGE / (COOLDOWN * 0.8) + 1)
    await fleet.all_become(others, seconds=5)  # they never waited
    held = sum(each.number for each in await fleet.hf.store.holds.gated())
    assert held > 50
    provider.status = 200
    await fleet.all_become(jobs, seconds=60)
    attempts = await _attempts(fleet, jobs)
    assert attempts[-1] <= 3  # no job is dead; who has really tried before the breaker opened was charged
    assert attempts.count(1) >= 70
