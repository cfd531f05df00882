"""The program that the demo's workers run: it ships orders, slowly, and does not like to be stopped."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from holdfast.jobs.job import Job
from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import LeaseLost
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import spawn
from holdfast.runtime.app import Holdfast

hf = Holdfast()
SHIPPING = 0.25  # seconds, about


@hf.task(name="ship", queue="orders")
async def ship(job: Job, order: int) -> None:
    """A stubborn task: it goes on when it is told to stop, so that only its token stands in its way."""
    delivery = spawn(_deliver(job, order), name="delivery")
    with suppress(asyncio.CancelledError):
        await asyncio.shield(delivery)
    await delivery


async def _deliver(job: Job, order: int) -> None:
    """The parcel is a row that commits with the job's success: once, or not at all."""
    await sleep(jittered(SHIPPING))
    try:
        async with job.commit() as tx:
            sql = "INSERT INTO parcels (order_id, token) VALUES ($1, $2)"
            await tx.execute(sql, order, job.token)
    except LeaseLost:
        with Path(os.environ["HOLDFAST_DEMO_REFUSED"]).open("a") as file:  # noqa: ASYNC230
            file.write(f"order {order}, token {job.token}\n")
        raise
