"""Clocks that are wrong, and schedulers that race. Rows 36, 37 and 39."""

from __future__ import annotations

import sys
from pathlib import Path

from faultkit import on_postgres
from waiting import until

sys.path.append(str(Path(__file__).parents[1] / "store" / "postgres"))
from clocks import advance

SHIFTED = """
import os, time
from pathlib import Path

_true = time.time

def _shifted():
    try:
        return _true() + float(Path(os.environ["CLOCK_FILE"]).read_text() or 0)
    except OSError:
        return _true()

time.time = _shifted
time.time_ns = lambda: int(_shifted() * 1e9)
"""

WORK = """
@hf.task(name="work", retry=QUICK)
async def work(job: Job, seconds: float = 0.0) -> None:
    mark("began", job=job.id)
    await asyncio.sleep(seconds)
    async with job.commit() as tx:
        await effect(tx, job)

@hf.task(name="wait", retry=QUICK)
async def wait(job: Job) -> None:
    mark("began", job=job.id, token=job.token)
    await gate("go")
    async with job.commit() as tx:
        await effect(tx, job)
"""


@on_postgres
async def test_workers_with_wrong_clocks(fleet):
    """Row 36: an hour ahead, an hour behind, or jumping: nothing is stolen, nothing starts early, nothing expires."""
    fleet.program(WORK)
    (fleet.folder / "sitecustomize.py").write_text(SHIFTED)
    for name, offset in (("ahead", 3600), ("behind", -3600), ("jumping", 0)):
        (fleet.folder / name).write_text(str(offset))
        await fleet.started("-c", "4", PYTHONPATH=str(fleet.folder), CLOCK_FILE=str(fleet.folder / name))
    jobs = [await fleet.put("work", seconds=3.5, options={"expires": 600.0}) for _ in range(9)]
    later = await fleet.put("work", options={"delay": 1.5})
    await fleet.marked("began", 9)
    for offset in (3600, -3600, 86400):
        (fleet.folder / "jumping").write_text(str(offset))
    for record in await fleet.all_become(jobs):
        assert (record.attempt, record.interruptions) == (1, 0)
    done = await fleet.becomes(later)
    assert done.enqueued_at + 1.5 <= done.started_at < done.enqueued_at + 10
    assert len(fleet.marks("began")) == 10
    assert len(await fleet.effects()) == 10


@on_postgres
async def test_the_databases_clock_jumps(fleet):
    """Row 37: an hour ahead ends every lease at once; the job may run twice, but is done once. Back again, it goes on."""
    fleet.program(WORK)
    await fleet.started("-c", "2")
    job = await fleet.put("wait")
    await fleet.marked("began")
    await advance(fleet.hf.store, 3600)
    await fleet.marked("began", 2)
    fleet.open("go")
    done = await fleet.becomes(job)
    await advance(fleet.hf.store, -3600)
    assert await fleet.effects() == [(job, done.token)]
    assert done.token == max(each["token"] for each in fleet.marks("began"))
    again = await fleet.put("work")
    await fleet.becomes(again)


SCHEDULE = """
from contextlib import ExitStack
from holdfast.kernel.crashpoints import armed

def meet(point: str) -> None:
    # Both processes stand before the same tick, and go on together.
    mark("due")
    (folder / f"here-{os.getpid()}").touch()
    end = time.monotonic() + 10
    while len(list(folder.glob("here-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.001)

from inside import FOLDER as folder
kept = ExitStack()
kept.enter_context(armed("schedule.before_tick", meet))

@hf.every(1, name="tick")
async def tick(nominal: datetime.datetime) -> None:
    mark("tick", nominal=nominal.isoformat())
"""


async def test_two_schedulers_at_the_same_tick(fleet):
    """Row 39: two processes meet before each tick; one job for each nominal time."""
    fleet.program(f"import datetime\n{SCHEDULE}")
    await fleet.started()
    await fleet.started()
    await until(lambda: len(fleet.marks("tick")) >= 3, 20)
    fleet.end_all()
    nominal = [each["nominal"] for each in fleet.marks("tick")]
    assert len(nominal) == len(set(nominal))
    assert len({each["pid"] for each in fleet.marks("due")}) == 2
