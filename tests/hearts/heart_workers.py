"""Waits for worker processes until the database knows them."""

from __future__ import annotations

import asyncio


async def workers_are_there(hf, processes):
    async with asyncio.timeout(60):
        while len(await hf.workers.list()) < processes:
            await asyncio.sleep(0.05)
