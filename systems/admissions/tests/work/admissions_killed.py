"""Work that is killed: each in a process of its own, on a copy of one database, after another number of its statements."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
import traceback
from contextlib import closing
from pathlib import Path

from admissions.program import hf

AT_ONCE = 6  # processes
DONE = {
    "open": "SELECT 1 FROM applications WHERE state = 'awaiting_payment'",
    "complete": "SELECT 1 FROM applications WHERE state = 'completed'",
    "withdraw": "SELECT 1 FROM letters WHERE kind = 'withdrawn' AND state = 'sent'",
    "release": "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM decisions WHERE stage = 'checked') "
    "AND NOT EXISTS (SELECT 1 FROM letters WHERE state = 'stored')",
}
QUEUES = {"verify_document": 1, "create_payment": 1, "send_email": 1, "default": 1}


async def count_statements(number: int) -> None:
    """From here on this process lives for so many more statements of the portal; a commit is one, too."""
    left, ours = [number], asyncio.current_task()

    def count():
        if asyncio.current_task() is not ours:  # who only looks whether it is done
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    async with hf.transaction() as tx:
        kind = type(tx)
    run, leave = kind._run, kind.__aexit__

    async def counting(self, call, sql):
        count()
        return await run(self, call, sql)

    async def left_by(self, *error):
        count()
        await leave(self, *error)
        count()

    kind._run, kind.__aexit__ = counting, left_by


async def work(what: str, url: str, number: int | None) -> None:
    hf._point_at(url)
    async with hf:
        if number is not None:
            await count_statements(number)
        async with hf.worker(queues=QUEUES, poll=0.05, lease=60):
            while not await done(what):
                await asyncio.sleep(0.05)


async def done(what: str) -> bool:
    async with hf.transaction() as tx:
        return bool(await tx.fetch(DONE[what]))


def forked(what: str, path: Path, number: int | None) -> int:
    """The id of a process that does it; None: it is not killed."""
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(work(what, f"sqlite:///{path}", number))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid


def ended(pids: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def all_of(what: str, paths: list[Path], killed: bool) -> list[int]:
    codes: list[int] = []
    for begin in range(0, len(paths), AT_ONCE):
        part = paths[begin : begin + AT_ONCE]
        codes += ended([forked(what, path, int(path.stem) if killed else None) for path in part])
    return codes


def let_go(path: Path) -> None:
    """As time would: what the dead held is free."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE holdfast_running SET lease_until = 0")
        connection.execute("UPDATE holdfast_lease SET until = 0")


if __name__ == "__main__":
    found = [Path(each) for each in sys.argv[2:]]
    first = all_of(sys.argv[1], found, True)
    for each in found:
        let_go(each)
    second = all_of(sys.argv[1], found, False)
    sys.stdout.write(" ".join(map(str, [*first, *second])))
