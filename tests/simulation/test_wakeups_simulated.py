"""Wake-ups in the simulation: virtual time decides when a process sees what another stored, the same for each seed."""

from __future__ import annotations

import pytest

from holdfast.kernel.clock import monotonic, sleep
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.simulation.loop import SeededLoop
from holdfast.testing.simulation.process import Node, Process
from holdfast.testing.simulation.world import Host, SimulatedWorld


async def listener(path, heard):
    store = SqliteStore(path, synchronous="OFF")
    await store.open()
    while len(heard) < 6:
        heard.append((await store.wakeups.wait(["default"], 0.7), round(monotonic(), 4)))
    await store.close()


async def enqueuer(path, stored):
    store = SqliteStore(path, synchronous="OFF")
    await store.open()
    for _ in range(3):
        await sleep(1.0)
        await store.jobs.enqueue([NewJob(id=new_id(), task="t")])
        stored.append(round(monotonic(), 4))
    await store.close()


def run(seed, path):
    loop = SeededLoop(seed)
    host = Host(loop, 1_000_000.0)
    processes = []
    for number in (1, 2):
        process = Process(loop, Node(f"n{number}", 0.0), number)
        process.inhabit(SimulatedWorld(process, host, seed))
        processes.append(process)
    heard, stored = [], []
    try:
        tasks = [
            processes[0].start(listener(path, heard), "listener"),
            processes[1].start(enqueuer(path, stored), "enqueuer"),
        ]
        for task in tasks:
            loop.run_until_complete(task)
        return heard, stored, loop.trace_hash()
    finally:
        for process in processes:
            process.bury()
        loop.close()


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_another_process_is_seen_within_milliseconds_and_the_same_each_time(seed, tmp_path):
    first, second = run(seed, str(tmp_path / "a.db")), run(seed, str(tmp_path / "b.db"))
    assert first == second
    heard, stored, _ = first
    times = [moment for is_new, moment in heard if is_new]
    assert heard[0][0], "the first wait begins to listen"
    assert any(not is_new for is_new, _ in heard)
    for moment in stored[:2]:
        assert any(moment <= seen <= moment + 0.02 for seen in times), (moment, times)
