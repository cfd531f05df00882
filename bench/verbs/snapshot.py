"""Finish-and-claim on PostgreSQL while a forgotten transaction holds a snapshot, with low-water marks and without."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from unittest.mock import patch

import asyncpg

from bench.schema.model import Figure
from bench.verbs.drain import fill
from holdfast.kernel.outcomes import Done
from holdfast.runtime.config import locate, open_store
from holdfast.store.postgres import low_water
from holdfast.store.records import Finish

SECONDS, BATCH, QUEUED = 15.0, 100, 700_000
NEVER = 2**60  # dead rows


def measure(urls: Iterator[str]) -> Iterator[Figure]:
    for marks, many in (("without", NEVER), ("with", low_water.MANY)):
        url = next(urls)
        fill(url, QUEUED)
        with patch.object(low_water, "MANY", many):
            passed, first, last = asyncio.run(_drain(url))
        config: dict[str, object] = {
            "marks": marks, "seconds": SECONDS, "batch": BATCH, "passed": passed, "at_first": round(first),
            "of_first": round(last / first, 2),
        }  # fmt: skip
        yield Figure("holdfast", "postgres", "snapshot_held", round(last), config=config)


async def _drain(url: str) -> tuple[int, float, float]:
    """How many jobs passed, and the rates of the first and the last tenth of the time."""
    idle = await asyncpg.connect(url)
    await idle.execute("VACUUM ANALYZE holdfast.job")
    await idle.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await idle.fetch("SELECT count(*) FROM pg_class")
    store = open_store(locate(url))
    await store.open()
    finishes: list[Finish] = []
    tenths = [0] * 10
    start = time.monotonic()
    while (passed := time.monotonic() - start) < SECONDS:
        _, claims = await store.claims.finish_and_claim(
            finishes, {"default": BATCH}, lease=30, worker="bench"
        )
        tenths[int(passed / SECONDS * 10)] += len(claims)
        finishes = [Finish(claim, Done("null")) for claim in claims]
    await store.close()
    await idle.close()
    return sum(tenths), tenths[0] / SECONDS * 10, tenths[-1] / SECONDS * 10
