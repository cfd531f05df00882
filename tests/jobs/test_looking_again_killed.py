"""A worker process is killed with SIGKILL in the middle of a look: nothing is decided twice, and nothing is left undecided."""

import signal
import subprocess
import sys

import pytest
from waiting import until

from holdfast import Holdfast
from holdfast.store.states import State

PROGRAM = """
import asyncio, os, signal, sys

from holdfast import Backoff, CannotTell, Found, Holdfast, Job
from holdfast.jobs import lookups
from holdfast.kernel.crashpoints import armed

lookups.LEASE = 0.5
hf = Holdfast(sys.argv[1])
looked = set()


async def call() -> str:
    with open(sys.argv[2], "a") as ledger:
        ledger.write("call\\n")
    raise TimeoutError("no answer")


async def find():
    if not looked and len(sys.argv) > 3 and sys.argv[3] == "first":
        looked.add(1)
        return CannotTell
    return Found("7")


@hf.task(name="publish", retry=Backoff(attempts=2, first=0, ceiling=0))
async def publish(job: Job) -> str:
    return await job.effect(
        "publish", call, policy="at_most_once", reconcile=find, look_again=Backoff(attempts=9, first=0.1, ceiling=0.1)
    )


async def main():
    async with hf:
        if sys.argv[3] == "first":
            await publish.enqueue()
        async with hf.worker({"default": 1}):
            await asyncio.sleep(60)


with armed(sys.argv[4], lambda _: os.kill(os.getpid(), signal.SIGKILL)) if len(sys.argv) > 4 else open(os.devnull):
    asyncio.run(main())
"""


@pytest.mark.parametrize("place", ["look.taken", "look.answered", "look.decided"])
async def test_a_killed_look_is_looked_at_again_and_decided_once(url, tmp_path, place):
    (tmp_path / "program.py").write_text(PROGRAM)
    ledger = tmp_path / "ledger"
    command = [sys.executable, "program.py", url, str(ledger)]
    async with Holdfast(url) as hf:
        killed = subprocess.Popen([*command, "first", place], cwd=tmp_path)
        try:
            await until(lambda: killed.poll() is not None, 60)
        finally:
            killed.kill()
        assert killed.returncode == -signal.SIGKILL
        second = subprocess.Popen([*command, "second"], cwd=tmp_path)
        try:
            await until(lambda: all_over(hf), 60)
        finally:
            second.kill()
            second.wait()
        [job] = await hf.store.jobs.find()
        assert (job.state, job.result) == (State.SUCCEEDED, '"7"')
        audit = await hf.store.audit.find(subject=job.id)
        assert [(each.actor, each.action) for each in audit] == [("look-up", "unknown.resolve")]
    assert ledger.read_text() == "call\n"


async def all_over(hf):
    return all(job.state is State.SUCCEEDED for job in await hf.store.jobs.find())
