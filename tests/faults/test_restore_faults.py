"""A fail-over that loses the last commits: an older copy of the database takes its place. Row 25."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import apsw
import pytest
from faultkit import Fleet

from holdfast import Holdfast
from holdfast.store.states import State
from tools.postgres import PostgresServer, system_binaries, wheel_binaries

WAIT = """
@hf.task(name="ship", retry=QUICK)
async def ship(job: Job) -> None:
    async with job.commit() as tx:
        await effect(tx, job)

@hf.task(name="wait", retry=QUICK)
async def wait(job: Job) -> None:
    mark("began", job=job.id, token=job.token)
    await gate("go")
    async with job.commit() as tx:
        await effect(tx, job)
"""


async def test_a_restore_of_an_older_file(tmp_path):
    """Row 25 on SQLite: the file is replaced by an older copy."""
    file, copy = tmp_path / "jobs.db", tmp_path / "copy.db"
    url = f"sqlite:///{file}"

    def restore():
        for each in tmp_path.glob("jobs.db*"):
            each.unlink()
        copy.rename(file)

    await _lose_the_last_commits(url, tmp_path, lambda: _copy(file, copy), restore)


def _copy(file: Path, copy: Path) -> None:
    source = apsw.Connection(str(file))
    source.execute("VACUUM INTO ?", (str(copy),))
    source.close()


async def test_a_restore_of_an_older_data_folder(tmp_path):
    """Row 25 on PostgreSQL: the data folder is replaced by an older copy."""
    server = PostgresServer.start(wheel_binaries() or system_binaries()[-1])
    try:
        url = server.url(server.create_database())
        await Holdfast(url).migrate()
        copies = []
        await _lose_the_last_commits(
            url, tmp_path, lambda: copies.append(server.copy()), lambda: server.restore(copies[0])
        )
    finally:
        server.stop()


async def _lose_the_last_commits(url, folder, copy, restore):
    """What was there at the copy runs, once; what came later is gone; tokens are not given twice; late writes are refused."""
    before, lost, holder = await _until_the_fail_over(url, folder, copy)
    await asyncio.to_thread(restore)
    async with Holdfast(url) as hf:
        await hf.store.raise_epoch()
        fleet = Fleet(hf, url, folder)
        fleet.processes = holder.processes
        try:
            await _after_the_fail_over(fleet, before, lost)
        finally:
            fleet.end_all()


async def _until_the_fail_over(url, folder, copy):
    async with Holdfast(url) as hf:
        fleet = Fleet(hf, url, folder)
        await fleet.prepare()
        fleet.program(WAIT)
        before = await fleet.put("wait")
        await asyncio.to_thread(copy)
        worker = await fleet.started()
        lost = [await fleet.put("wait"), await fleet.put("ship")]
        await fleet.becomes(lost[1])
        await fleet.marked("began", job=before)
        worker.signal(signal.SIGSTOP)
    return before, lost, fleet


async def _after_the_fail_over(fleet, before, lost):
    assert [await fleet.hf.jobs.get(job) for job in lost] == [
        None,
        None,
    ]  # the loss window: all since the copy
    assert (await fleet.record(before)).state is State.QUEUED
    known = max(each["token"] for each in fleet.marks("began"))
    await fleet.started()
    _, again = await fleet.marked("began", 2, job=before)
    assert (
        again["token"] >> 40 > known >> 40
    )  # of a later epoch: what was given in the lost time is not given again
    fleet.processes[0].signal(signal.SIGCONT)
    fleet.open("go")
    done = await fleet.becomes(before)
    assert await fleet.effects() == [(before, done.token)]
    assert done.token == again["token"]


pytestmark = pytest.mark.timeout(120)
