"""A process that runs out of memory, or of file descriptors. Rows 16 and 17."""

from __future__ import annotations

import os
import resource
import signal

from faultkit import on_postgres
from waiting import until

from holdfast.store.states import State

GREEDY = """
import ctypes
import resource

resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

@hf.task(name="greedy")
async def greedy(job: Job) -> None:
    mark("greedy", interruptions=job.interruptions)
    libc.memset(libc.malloc(1 << 32), 0, 1 << 32)  # C code that does not look whether it got the memory

@hf.task(name="list", retry=Backoff(attempts=2, first=0.05, ceiling=0.1))
async def list_(job: Job) -> None:
    bytearray(1 << 32)

@hf.task(name="fine", retry=QUICK)
async def fine(job: Job) -> None:
    await asyncio.sleep(0.2)
    async with job.commit() as tx:
        await effect(tx, job)
"""


async def test_a_body_that_takes_all_memory(fleet):
    """Row 16: deaths are counted as interruptions; alone from then on, and dead at the third while it was alone."""
    fleet.program(GREEDY)
    supervisor = fleet.start("-p", "1", "-c", "5", lease=30)
    await until(lambda: "takes jobs" in supervisor.log, 20)
    fine = await fleet.put_many("fine", 8)
    greedy = await fleet.put("greedy")
    dead = await fleet.becomes(greedy, State.DEAD, seconds=40)
    assert (dead.interruptions, dead.strikes) in ((3, 3), (4, 3))  # the first may have been in company
    assert [each["interruptions"] for each in fleet.marks("greedy")] == list(range(dead.interruptions))
    assert "its worker died under it 3 times while it ran alone" in dead.reason
    assert "died (SIGSEGV)" in supervisor.log
    await fleet.all_become(fine)
    assert len(await fleet.effects()) == 8
    os.kill(supervisor.pid, signal.SIGTERM)


async def test_a_body_that_is_refused_memory(fleet):
    """Row 16: a MemoryError is an error like others: charged, tried again, dead; its process lives on."""
    fleet.program(GREEDY)
    await fleet.started()
    dead = await fleet.becomes(await fleet.put("list"), State.DEAD)
    assert (dead.attempt, dead.interruptions) == (2, 0)
    assert "MemoryError" in dead.reason
    await fleet.becomes(await fleet.put("fine"))


@on_postgres
async def test_no_descriptors_left(fleet):
    """Row 17: it cannot connect any more, claims nothing and says so; with descriptors again, it goes on by itself."""
    fleet.program(GREEDY)
    worker = await fleet.started(url=f"{fleet.url}?patience=0.5")
    await fleet.becomes(await fleet.put("fine"))
    before = resource.prlimit(worker.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    async with fleet.hf.transaction() as tx:
        await tx.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    await worker.says("Too many open files")
    job, told = await fleet.put("fine"), worker.log.count("Too many open files")
    await until(lambda: worker.log.count("Too many open files") > told + 1, 20)
    assert (await fleet.record(job)).state is State.QUEUED
    resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, before)
    done = await fleet.becomes(job)
    assert (done.attempt, done.interruptions) == (1, 0)
