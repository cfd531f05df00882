"""A process that is killed in the middle of a session leaves all of it, or nothing: the row, the job and the event."""

from __future__ import annotations

import subprocess
import sys

import pytest
import sqlalchemy as sa

from holdfast import Holdfast

PROGRAM = """
import asyncio, os, signal, sys
import sqlalchemy as sa
from holdfast import Holdfast
url, moment = sys.argv[1:]
hf = Holdfast(url)
hf.event("order.placed", dict, unheard=True)

@hf.task(name="greet")
async def greet(name: str) -> None: ...

def die(here):
    if moment == here:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with hf:
        async with hf.session() as session:
            await session.execute(sa.text("INSERT INTO things (id) VALUES (1)"))
            die("after the row")
            await greet.options(tx=session).enqueue("ada")
            die("after the job")
            await hf.emit("order.placed", {"id": 1}, tx=session)
            die("before the commit")
            if moment == "in the commit":
                asyncio.get_running_loop().call_soon(die, "in the commit")
            await session.commit()
            die("after the commit")

asyncio.run(main())
"""
MOMENTS = ["after the row", "after the job", "before the commit", "in the commit", "after the commit"]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_all_or_nothing_survives(url, moment, tmp_path):
    hf = Holdfast(url)
    async with hf, hf.transaction() as tx:
        await tx.execute("CREATE TABLE things (id INTEGER PRIMARY KEY)")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, url, moment], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -9, done.stderr
    async with hf, hf.session() as session:
        things = await session.scalar(sa.text("SELECT count(*) FROM things"))
        jobs = sum(count.number for count in await hf.queues.count())
        events = len(await hf.outbox.find())
        await session.rollback()
        await session.execute(sa.text("DROP TABLE things"))
        await session.commit()
    assert things == jobs == events
    if moment != "in the commit":
        assert things == (1 if moment == "after the commit" else 0)
