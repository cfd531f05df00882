"""The program that the workers of this harness run, in two versions: `holdfast worker chaos.program:hf`.

Each task is of another class of effect. All tell the second database when a run begins and ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from chaos import announcing, arming, settings
from chaos.elsewhere import Elsewhere
from chaos.publishing import Client, Refused
from holdfast import Backoff, Found, Holdfast, Job, NotFound, Snooze
from holdfast.jobs.control import EffectUnknown
from holdfast.kernel.processes import die_with_parent

if os.getppid() == (_parent := int(os.environ[settings.PARENT])):
    die_with_parent(_parent, signal.SIGKILL)
arming.arm()

VERSION = int(os.environ.get(settings.VERSION, "2"))
# What a store does wrong for a minute must not use up a job's attempts.
AGAIN = Backoff(attempts=500, first=0.1, ceiling=1.0)
PARCEL = "INSERT INTO parcels (item, job, token) VALUES ($1, $2, $3)"

hf = Holdfast()
there = Elsewhere(settings.second_database(settings.folder()))
provider = Client(settings.folder())
announcing.declare(hf, there, AGAIN)


@asynccontextmanager
async def told(job: Job, item: str) -> AsyncIterator[None]:
    """A row for this run, by job and token, from before its first act."""
    run, how = there.began(job.id, job.token, job.task, item, os.getpid()), "failed"
    try:
        yield
        how = "done"
    except asyncio.CancelledError:
        how = "stopped"
        raise
    except (Snooze, EffectUnknown):
        how = "put off"  # on purpose: nothing was interrupted
        raise
    finally:
        there.ended(run, how)


# --- transactional: rows of the store's database that commit with the job's success ---


@hf.task(name="ship", retry=AGAIN)
async def ship(job: Job, item: str, seconds: float) -> None:
    async with told(job, item):
        await asyncio.sleep(seconds)
        async with job.commit() as tx:
            await tx.execute(PARCEL, item, job.id, job.token)


@hf.task(name="deliver", retry=AGAIN)
async def deliver(job: Job, item: str, seconds: float) -> None:
    """The same with `job.complete`, and with the waiting inside the transaction."""
    async with told(job, item), hf.transaction() as tx:
        await tx.execute(PARCEL, item, job.id, job.token)
        await asyncio.sleep(seconds / 5)
        await job.complete(tx=tx)


@hf.task(name="carry", retry=AGAIN)
def carry(job: Job, item: str, seconds: float) -> None:
    """The same as a plain function in a thread."""
    run = there.began(job.id, job.token, job.task, item, os.getpid())
    time.sleep(seconds / 2)
    with job.blocking.commit() as tx:
        tx.execute(PARCEL, item, job.id, job.token)
    there.ended(run, "done")


@hf.task(name="hold", retry=AGAIN)
async def hold(job: Job, item: str, seconds: float) -> None:
    """A transaction that stays open for longer than the lease."""
    async with told(job, item), job.commit() as tx:
        await tx.execute(PARCEL, item, job.id, job.token)
        await asyncio.sleep(settings.LEASE + 0.5)


@hf.every(1, name="tick", queue="ticks", retry=AGAIN)
async def tick(job: Job, nominal: datetime) -> None:
    async with job.commit() as tx:
        sql = "INSERT INTO ticks (nominal, job, token) VALUES ($1, $2, $3)"
        await tx.execute(sql, nominal.isoformat(), job.id, job.token)


# --- elsewhere: bare and keyed ---


async def _weigh(item: str) -> int:
    return len(item)


async def _find_tally(item: str) -> object:
    found = there.is_tallied(item)
    there.looked_up(item, found=found)
    return Found(None) if found else NotFound


async def _tally(job: Job, item: str, seconds: float, *, looks: bool) -> None:
    async def count(item: str) -> None:
        there.tally(job.id, job.token, item)

    async with told(job, item):
        await job.step("weigh", _weigh, item)
        await asyncio.sleep(seconds)
        reconcile = _find_tally if looks else None
        await job.effect(
            "tally", count, item, policy="at_most_once", reconcile=reconcile, settle=settings.SETTLE
        )
        if VERSION > 1:
            await job.step("label", _weigh, item)


@hf.task(name="tally", retry=AGAIN)
async def tally(job: Job, item: str, seconds: float) -> None:
    await _tally(job, item, seconds, looks=True)


@hf.task(name="tally_blindly", retry=AGAIN)
async def tally_blindly(job: Job, item: str, seconds: float) -> None:
    """Without a lookup: who dies around the effect leaves it to a person."""
    await _tally(job, item, seconds, looks=False)


@hf.task(name="charge", retry=AGAIN)
async def charge(job: Job, item: str, seconds: float) -> None:
    async with told(job, item):
        await asyncio.sleep(seconds)
        await job.effect("charge", there.charge, job.key_for("charge"), item, policy="keyed")


# --- publications ---


async def _find_publication(item: str) -> object:
    answer = await provider.find(item)
    there.looked_up(item, found=isinstance(answer, Found))
    return answer


async def _publish(job: Job, item: str, seconds: float, *, looks: bool) -> None:
    async with told(job, item):
        await asyncio.sleep(seconds / 4)
        await job.effect(
            "publish", provider.publish, item,
            policy="at_most_once", reconcile=_find_publication if looks else None,
            not_done=(Refused,), settle=settings.SETTLE, timeout=settings.CALL_LIMIT,
        )  # fmt: skip


@hf.task(name="publish", retry=AGAIN)
async def publish(job: Job, item: str, seconds: float) -> None:
    await _publish(job, item, seconds, looks=True)


@hf.task(name="publish_blindly", retry=AGAIN)
async def publish_blindly(job: Job, item: str, seconds: float) -> None:
    await _publish(job, item, seconds, looks=False)


# --- what only the newer version knows ---

if VERSION > 1:

    @hf.task(name="novelty", retry=AGAIN)
    async def novelty(job: Job, item: str, seconds: float) -> None:
        await ship.function(job, item, seconds)
