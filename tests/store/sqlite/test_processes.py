"""Real processes on one SQLite file: what was acknowledged survives `kill -9`, and nobody takes the same job."""

import asyncio
import os
import signal
import subprocess
import sys

import apsw

from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.sqlite.store import SqliteStore

ENQUEUER = """
import asyncio, sys
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.sqlite.store import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    async def caller():
        while True:
            job = NewJob(id=new_id(), task="t")
            print("asked", job.id, flush=True)
            await store.jobs.enqueue([job])
            print("acked", job.id, flush=True)
    await asyncio.gather(*(caller() for _ in range(8)))
asyncio.run(main())
"""

CLAIMER = """
import asyncio, sys
from holdfast.kernel.outcomes import Done
from holdfast.store.records import Finish
from holdfast.store.sqlite.store import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    held = []
    while True:
        ok, claims = await store.claims.finish_and_claim(
            [Finish(claim, Done()) for claim in held], {"default": 7}, lease=30, worker=sys.argv[2])
        assert all(ok)
        for claim in claims:
            print(claim.job_id, flush=True)
        if not claims:
            break
        held = claims
    await store.close()
asyncio.run(main())
"""


def run(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


def test_what_was_acknowledged_survives_kill_minus_nine(tmp_path):
    path = tmp_path / "jobs.db"
    acked = set()
    for _ in range(4):
        process = run(ENQUEUER, path)
        seen = 0
        for line in process.stdout:
            if line.startswith("acked"):
                acked.add(line.split()[1])
                seen += 1
                if seen == 40:
                    os.kill(process.pid, signal.SIGKILL)
                    break
        acked |= {line.split()[1] for line in process.stdout if line.startswith("acked") and len(line) == 43}
        process.communicate()
    connection = apsw.Connection(str(path))
    stored = {row[0] for row in connection.execute("SELECT id FROM holdfast_job")}
    assert len(acked) >= 160
    assert acked <= stored
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_processes_never_take_the_same_job(tmp_path):
    path, jobs = tmp_path / "jobs.db", 400

    async def fill():
        store = SqliteStore(path)
        await store.open()
        await store.jobs.enqueue([NewJob(id=new_id(), task="t") for _ in range(jobs)])
        await store.close()

    asyncio.run(fill())
    workers = [run(CLAIMER, path, f"w{place}") for place in range(3)]
    taken = [line.strip() for worker in workers for line in worker.stdout]
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0
    assert len(taken) == len(set(taken)) == jobs
