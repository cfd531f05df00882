"""Enqueue: one caller awaiting each commit, many callers at once, and many jobs in one call. Runs beside the peers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.caller import Caller
from bench.place import arguments

CALLERS = 100
WARM = 20


def one(peer: Any, *, seconds: float, **_: Any) -> dict[str, Any]:
    return asyncio.run(_one(peer, seconds))


async def _one(peer: Any, seconds: float) -> dict[str, Any]:
    async with Caller(peer) as caller:
        await _warm(caller)
        done, begin = 0, time.perf_counter()
        while (passed := time.perf_counter() - begin) < seconds:
            await caller.one(arguments(done))
            done += 1
        return _figures(done, passed)


def concurrent(peer: Any, *, seconds: float, **_: Any) -> dict[str, Any]:
    return asyncio.run(_concurrent(peer, seconds))


async def _concurrent(peer: Any, seconds: float) -> dict[str, Any]:
    async with Caller(peer) as caller:
        await _warm(caller)
        await caller.together(CALLERS, seconds / 10)
        return {**_figures(*await caller.together(CALLERS, seconds)), "callers": CALLERS}


def bulk(peer: Any, *, seconds: float, size: int, **_: Any) -> dict[str, Any]:
    return asyncio.run(_bulk(peer, seconds, size))


async def _bulk(peer: Any, seconds: float, size: int) -> dict[str, Any]:
    jobs = [arguments(number) for number in range(size)]
    async with Caller(peer) as caller:
        await _warm(caller)
        await caller.many(jobs[:WARM])
        done, begin = 0, time.perf_counter()
        while (passed := time.perf_counter() - begin) < seconds:
            await caller.many(jobs)
            done += size
        return {**_figures(done, passed), "size": size}


async def _warm(caller: Caller) -> None:
    for number in range(WARM):
        await caller.one(arguments(number))


def _figures(done: int, seconds: float) -> dict[str, Any]:
    return {"rate": done / seconds, "jobs": done, "seconds": round(seconds, 2)}
