"""Latency: from before the call that enqueues until the handler starts, with one idle worker in another process.

The idle worker's memory is taken on the way. Runs beside the peers.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

from bench import body
from bench.caller import Caller
from bench.fleet import Fleet
from bench.place import arguments

PAUSE = (0.02, 0.04)  # seconds between two jobs
_PROBE = -1_000  # numbers from here down are not counted
_UP = 40.0  # seconds until the worker has run its first job


def latency(peer: Any, *, samples: int, idle: float, **_: Any) -> dict[str, Any]:
    with Fleet(peer.workers(1)) as fleet:
        return asyncio.run(_latency(peer, fleet, samples, idle))


async def _latency(peer: Any, fleet: Fleet, samples: int, idle: float) -> dict[str, Any]:
    async with Caller(peer) as caller:
        await until_up(caller, fleet)
        await _send(caller, range(_PROBE - 10, _PROBE))
        await asyncio.sleep(idle)
        largest, whole = fleet.memory()
        await _send(caller, range(samples))
        times = await _arrived(samples)
    return {
        "p50": times[len(times) // 2], "p99": times[min(len(times) - 1, int(len(times) * 0.99))],
        "samples": len(times), "memory": largest, "memory_all": round(whole, 1),
    }  # fmt: skip


async def until_up(caller: Caller, fleet: Fleet) -> None:
    """Until the worker has run a job. A job that was sent before it listened may have to wait for the next one."""
    until = time.monotonic() + _UP
    number = _PROBE
    while not body.starts():
        if not fleet.alive:
            raise RuntimeError("the worker has ended by itself")
        if time.monotonic() > until:
            raise TimeoutError(f"the worker ran no job within {_UP:g} s")
        number -= 100
        await caller.one(arguments(number, time.monotonic_ns()))
        for _ in range(20):
            await asyncio.sleep(0.1)
            if body.starts():
                break


async def _send(caller: Caller, numbers: range) -> None:
    for number in numbers:
        await caller.one(arguments(number, time.monotonic_ns()))
        await asyncio.sleep(random.uniform(*PAUSE))


async def _arrived(samples: int) -> list[float]:
    """Milliseconds, sorted."""
    until = time.monotonic() + 20
    while True:
        first: dict[int, float] = {}
        for number, sent, started, _ in body.starts():
            if number >= 0:
                first.setdefault(number, (started - sent) / 1e6)
        if len(first) >= samples:
            return sorted(first.values())
        if time.monotonic() > until:
            raise TimeoutError(f"only {len(first)} of {samples} jobs were started")
        await asyncio.sleep(0.05)
