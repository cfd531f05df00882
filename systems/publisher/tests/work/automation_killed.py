"""Executions that are killed: each in a process of its own, on a copy of one database, after another number of its statements."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from pathlib import Path

from publisher.program import hf
from publisher.work import automating


def counted(number: int) -> None:
    """From the first statement of an execution on, this process lives for so many more; its commit is one, too."""
    left, locked, counted_class = [None], automating._locked, []

    def count():
        if left[0] is not None:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    async def begun(tx, automation_id):
        if not counted_class:
            counted_class.append(count_statements(type(tx), count))
        left[0] = number
        return await locked(tx, automation_id)

    automating._locked = begun


def count_statements(kind, count) -> type:
    """Each statement of this kind of transaction counts, and its commit before and after it is done."""
    run, leave = kind._run, kind.__aexit__

    async def counting(self, call, sql):
        count()
        return await run(self, call, sql)

    async def left_by(self, *error):
        count()
        await leave(self, *error)
        count()

    kind._run, kind.__aexit__ = counting, left_by
    return kind


async def work(url: str) -> None:
    hf._point_at(url)
    async with hf, hf.worker(queues={"default": 1}, poll=0.05, lease=1):
        [job] = await hf.jobs.find(unique="automation:daily")
        while (await hf.jobs.get(job.id)).state != "succeeded":
            await asyncio.sleep(0.02)


def forked(path: Path, number: int | None) -> int:
    """The id of a process that runs it; None: it is not killed."""
    pid = os.fork()
    if pid == 0:
        try:
            if number is not None:
                counted(number)
            asyncio.run(work(f"sqlite:///{path}"))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid


def ended(pids: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


if __name__ == "__main__":
    paths = [Path(each) for each in sys.argv[2:]]
    killed = sys.argv[1] == "kill"
    codes = ended([forked(path, int(path.stem) if killed else None) for path in paths])
    sys.stdout.write(" ".join(map(str, codes)))
