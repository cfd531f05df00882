"""What somebody must do for all: one duty that has much to do leaves the others their turn."""

from __future__ import annotations

import asyncio

import pytest
from waiting import until


@pytest.mark.parametrize("subject", ["views", "sagas", "cache"])
async def test_jobs_are_promoted_while_there_is_much_to_prune(hf, monkeypatch, subject):
    """An old generation of a view has a million rows: whoever prunes them rescues and promotes as before."""
    asked = 0

    async def prune(*, limit, **_keep):
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.001)
        return limit

    @hf.task
    async def later() -> str:
        return "ran"

    monkeypatch.setattr(getattr(hf.store, subject), "prune", prune)
    async with hf.worker():
        await until(lambda: asked > 0)
        job = await later.options(delay=0.1).enqueue()
        assert await job.result(20) == "ran"
        seen = asked
        await until(lambda: asked > seen)  # and it is gone on with
