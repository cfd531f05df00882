"""What one builds without a guard: retries and a breaker of two libraries, aiolimiter, and asyncio's own parts."""

from __future__ import annotations

import asyncio
import importlib
import os

from aiolimiter import AsyncLimiter

from bench.guards.overhead import Call, measurer

_RETRY, _BREAKER = os.environ["STACK"].split()
retried = importlib.import_module(f"bench.peers.guard_{_RETRY}").retried
broken = importlib.import_module(f"bench.peers.guard_{_BREAKER}").broken


def everything(work: Call) -> Call:
    limiter, room = AsyncLimiter(1_000_000, 1), asyncio.Semaphore(10)

    async def attempt() -> object:
        async with limiter, room, asyncio.timeout(5):
            return await work()

    guarded = retried(broken(attempt))

    async def call() -> object:
        try:
            async with asyncio.timeout(20):
                return await guarded()
        except Exception:
            return None

    return call


measure = measurer(all=everything)
