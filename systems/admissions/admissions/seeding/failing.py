"""Applications that stop for good, by the pipeline itself: their files are away while it looks, and back when it has given up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from admissions.core import VERIFY, Submitted, Uploaded, hf, key_of
from admissions.seeding.rows import Planted
from holdfast import Tx, within

_LOOKS = 600  # a tenth of a second apart


async def stop_for_good(planted: Sequence[Planted]) -> None:
    """Nothing else is queued yet: the worker that runs here has these alone."""
    for each in planted:
        await _take_away(each)
        await _tell(each)
    with _quiet():
        await _let_them_fail(planted)
    for each in planted:
        await _bring_back(each)


@contextmanager
def _quiet() -> Iterator[None]:
    """That these fail is no news."""
    log = logging.getLogger("holdfast")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)


async def _let_them_fail(planted: Sequence[Planted]) -> None:
    async with hf.worker({VERIFY: 4, "default": 2}, poll=0.05):
        for _ in range(_LOOKS):
            if not await _under_way(planted):
                break
            await asyncio.sleep(0.1)


async def _take_away(each: Planted) -> None:
    async with hf.transaction() as tx:
        with within(tenant=each.id):
            await hf.blobs.delete(*await _keys(tx, each), tx=tx)


async def _bring_back(each: Planted) -> None:
    async with hf.transaction() as tx:
        with within(tenant=each.id):
            for key in await _keys(tx, each):
                await hf.blobs.restore(key, tx=tx)


async def _keys(tx: Tx, each: Planted) -> list[str]:
    return [key for (key,) in await tx.fetch("SELECT key FROM documents WHERE application_id = $1", each.id)]


async def _tell(each: Planted) -> None:
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT id FROM documents WHERE application_id = $1", each.id)
        ids = [found for (found,) in rows]
        told = Submitted(each.id, each.term_id, each.receipt, each.submitted_at, len(ids))
        await hf.emit("application.submitted", told, key=key_of(each.id), tx=tx)
        await hf.emit("document.uploaded", Uploaded(each.id, ids), key=key_of(each.id), tx=tx)


async def _under_way(planted: Sequence[Planted]) -> bool:
    async with hf.transaction() as tx:
        rows = [
            await tx.fetch("SELECT 1 FROM applications WHERE id = $1 AND state <> 'failed'", each.id)
            for each in planted
        ]
    return any(rows)
