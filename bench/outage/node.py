"""One process of the fleet: python -m bench.outage.node FOLDER NUMBER PORT BEGAN. It calls as fast as its guard lets it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from bench.outage.provider import LENGTH
from holdfast import Holdfast
from holdfast.guards import Breaker, Limiter, Refused

CALLERS = 6


class Answer(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status_code = status


async def run(folder: Path, number: int, port: int, began: float) -> None:
    hf = Holdfast(f"sqlite:///{folder / 'guards.db'}")
    guard = hf.guard(
        "provider",
        timeout=2,
        breaker=Breaker(failures=3, cooldown=3, permits=1),
        limiter=Limiter(rate=10, burst=10, floor=2, ceiling=80, wait=5, longest_pause=1),
    )
    async with hf:
        callers = [asyncio.create_task(_call(guard, port)) for _ in range(CALLERS)]
        seen = []
        while (now := time.time() - began) < LENGTH - 1:
            seen.append((round(now, 2), round(guard.limiter.rate(), 2), guard.breaker.state.value))
            await asyncio.sleep(0.1)
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    (folder / f"{number}.json").write_text(json.dumps(seen))


async def _call(guard: Any, port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask() -> None:
        writer.write(b"\n")
        if (status := int(await reader.readline())) != 200:
            raise Answer(status)

    while True:
        try:
            await guard.call(ask)
        except Refused as refusal:
            await asyncio.sleep(min(refusal.retry_after or 0.1, 0.1))
        except Answer:
            continue


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
