"""What the workers run: jobs that call the provider behind a gate. BENCH_URL is the store, BENCH_PORT the provider."""

from __future__ import annotations

import asyncio
import os

from bench.outage.node import Answer
from bench.place import url
from holdfast import Backoff, Holdfast
from holdfast.guards import Breaker, Limiter

COOLDOWN, FAILURES = 10.0, 3

hf = Holdfast(url())
api = hf.guard(
    "provider",
    timeout=2,
    breaker=Breaker(failures=FAILURES, cooldown=COOLDOWN, permits=1),
    limiter=Limiter(rate=50, burst=50, floor=5),
)


@hf.task(guard=api, retry=Backoff(attempts=3, first=1, ceiling=5))
async def call() -> None:
    await api.call(_ask, int(os.environ["BENCH_PORT"]))


@hf.task
async def other() -> None:
    """Has nothing to do with the provider."""


async def _ask(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"\n")
        if (status := int(await reader.readline())) != 200:
            raise Answer(status)
    finally:
        writer.close()
