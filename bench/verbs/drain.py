"""Fill a store and drain it with finish-and-claim through its port, as one worker process would, without a body."""

from __future__ import annotations

import asyncio
import time
from multiprocessing.synchronize import Barrier

from bench.schema.model import Lap, Speed
from bench.schema.payload import arguments
from bench.schema.race import race
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Done
from holdfast.runtime.config import locate, open_store
from holdfast.store.ports import Store
from holdfast.store.records import Finish, NewJob


def fill(url: str, jobs: int) -> None:
    asyncio.run(_fill(url, jobs))


async def _fill(url: str, jobs: int) -> None:
    store = open_store(locate(url))
    await store.migrate()
    await store.open()
    for start in range(0, jobs, 10_000):
        numbers = range(start, min(start + 10_000, jobs))
        await store.jobs.enqueue(
            [NewJob(id=new_id(), task="bench", args=arguments(number)) for number in numbers]
        )
    await store.close()


def drain(url: str, batch: int, procs: int) -> Speed:
    (speed,) = race(_drain_in_process, procs, url, batch)
    return speed


def _drain_in_process(barrier: Barrier, url: str, batch: int) -> list[Lap]:
    return [asyncio.run(_drain(barrier, url, batch))]


async def _drain(barrier: Barrier, url: str, batch: int) -> Lap:
    store = open_store(locate(url))
    await store.open()
    await store.claims.claim({"nothing": 1}, lease=30, worker="warm")
    barrier.wait()
    cpu, start = time.process_time(), time.time()
    jobs, end = await _empty(store, batch)
    await store.close()
    return Lap(jobs, start, end, time.process_time() - cpu)


async def _empty(store: Store, batch: int) -> tuple[int, float]:
    finishes: list[Finish] = []
    jobs, end = 0, time.time()
    while True:
        accepted, claims = await store.claims.finish_and_claim(
            finishes, {"default": batch}, lease=30, worker="bench"
        )
        assert all(accepted)
        if not claims:
            return jobs, end
        finishes = [Finish(claim, Done("null")) for claim in claims]
        jobs, end = jobs + len(claims), time.time()
