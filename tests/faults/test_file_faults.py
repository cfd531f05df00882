"""The SQLite file: locked by others, read while it is written, with a reader that stays. Rows 31 to 33 and 35."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from faultkit import on_sqlite

from holdfast.kernel.errors import StoreBusy
from holdfast.kernel.outcomes import Done
from holdfast.store.records import Finish
from holdfast.store.states import State

WORK = """
@hf.task(name="count", retry=QUICK)
async def count(job: Job) -> None:
    mark("began", job=job.id)
    async with job.commit() as tx:
        [(number,)] = await tx.fetch("SELECT count(*) FROM effects")
        await asyncio.sleep(0.005)
        await tx.execute("INSERT INTO effects (job, token, kind) VALUES ($1, $2, $3)", job.id, job.token, str(number))

@hf.task(name="wait", retry=QUICK)
async def wait(job: Job) -> None:
    mark("began", job=job.id)
    try:
        await gate("go")
    except asyncio.CancelledError:
        mark("stopped", job=job.id)
        raise
    async with job.commit() as tx:
        await effect(tx, job)

@hf.task(name="large")
async def large(text: str) -> int:
    return len(text)
"""

HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(sys.argv[2])
connection.execute("SELECT count(*) FROM effects").fetchall()
print("held", flush=True)
sys.stdin.read()
"""


class Holder:
    """Another program that has begun a transaction on the file, and stays in it."""

    def __init__(self, fleet, begin):
        path = fleet.url.removeprefix("sqlite:///")
        self._popen = subprocess.Popen(
            [sys.executable, "-c", HOLDER, path, begin],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._popen.stdout.readline() == "held\n"

    def end(self):
        self._popen.communicate("")


@on_sqlite
async def test_another_program_holds_the_lock(fleet):
    """Row 31: who asks waits, then hears that the file is busy; a worker stops its job in time; then all goes on."""
    fleet.program(WORK)
    worker = await fleet.started(lease=3)
    job = await fleet.put("wait")
    await fleet.marked("began")
    holder = await asyncio.to_thread(Holder, fleet, "BEGIN IMMEDIATE")
    held = await fleet.record(job)
    try:
        with pytest.raises(StoreBusy):
            await fleet.put("count")
        [stopped] = fleet.marks("stopped")
        assert stopped["at"] < held.lease_until
        assert "leases were not renewed" in worker.log
    finally:
        await asyncio.to_thread(holder.end)
    fleet.open("go")
    await fleet.becomes(job)
    await fleet.becomes(await fleet.put("count"))
    assert len(await fleet.effects()) == 2


@on_sqlite
async def test_reading_and_then_writing_is_never_refused(fleet):
    """Row 32: transactions take the write lock when they begin, so none finds its snapshot outdated; none reads stale."""
    fleet.program(WORK)
    for queue in ("one", "other"):  # a queue for each process, so that both have work
        await fleet.started("-q", f"{queue}:2")
    jobs = [await fleet.put("count", options={"queue": queue}) for queue in ("one", "other") * 30]
    for record in await fleet.all_become(jobs):
        assert record.attempt == 1
    assert len({each["pid"] for each in fleet.marks("began")}) == 2
    async with fleet.hf.transaction() as tx:
        numbers = await tx.fetch("SELECT CAST(kind AS INTEGER) FROM effects ORDER BY 1")
    assert numbers == [(number,) for number in range(60)]


@on_sqlite
async def test_a_reader_that_stays(fleet):
    """Row 33: work goes on while another program keeps a snapshot; when it leaves, the log is used from its start again."""
    fleet.program(WORK)
    await fleet.started()
    log = Path(fleet.url.removeprefix("sqlite:///") + "-wal")
    holder = await asyncio.to_thread(Holder, fleet, "BEGIN")
    try:
        await fleet.all_become([await fleet.put("large", text="x" * 100_000) for _ in range(40)])
        assert log.stat().st_size > 40 * 100_000  # nothing could be moved into the file
    finally:
        await asyncio.to_thread(holder.end)
    await fleet.all_become([await fleet.put("large", text="x" * 100_000) for _ in range(3)])
    grown = log.stat().st_size
    await fleet.all_become([await fleet.put("large", text="x" * 100_000) for _ in range(40)])
    assert log.stat().st_size <= grown + 1_000_000


@on_sqlite
async def test_a_number_is_not_given_twice(fleet):
    """Row 35: a holder that comes back after its job was pruned cannot end a later job that has taken its place."""
    store = fleet.hf.store
    await fleet.put("old")
    [late] = await store.claims.claim({"default": 1}, lease=60, worker="late")
    assert await store.claims.finish([Finish(late, Done())]) == [True]
    assert (await store.history.prune(keep=0)).jobs == 1
    new = await fleet.put("new")
    [claim] = await store.claims.claim({"default": 1}, lease=60, worker="other")
    assert claim.row != late.row
    assert await store.claims.finish([Finish(late, Done())]) == [False]
    assert (await fleet.record(new)).state is State.RUNNING
