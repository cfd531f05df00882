"""The seeded loop, processes and threads: virtual time, the same choices for the same seed, kill, pause, deadlock."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.kernel.clock import host_now, monotonic, now, sleep
from holdfast.kernel.spawn import Reply, deliver, mailbox, spawn, start_thread
from holdfast.kernel.world import Pause, Take
from holdfast.testing.simulation.loop import Deadlock, SeededLoop
from holdfast.testing.simulation.process import Killed, Node, Process
from holdfast.testing.simulation.world import Host, SimulatedWorld


class Machine:
    """A loop with one process on it."""

    def __init__(self, seed="1", **options):
        self.loop = SeededLoop(seed, **options)
        self.host = Host(self.loop, 1_000_000.0)
        self.processes = []

    def boot(self, skew=0.0):
        process = Process(self.loop, Node(f"n{len(self.processes)}", skew), len(self.processes) + 1)
        process.inhabit(SimulatedWorld(process, self.host, "1"))
        self.processes.append(process)
        return process

    def run(self, process, work):
        return self.loop.run_until_complete(process.start(work, "test"))

    def close(self):
        for process in self.processes:
            process.bury()
        self.loop.close()


@pytest.fixture
def machine():
    made = Machine()
    yield made
    made.close()


def test_time_jumps_to_the_next_timer(machine):
    async def work():
        await sleep(3600)
        return monotonic()

    assert machine.run(machine.boot(), work()) == 3600


def test_each_node_has_a_clock_of_its_own_and_the_database_has_another(machine):
    async def work():
        return now() - host_now()

    assert machine.run(machine.boot(skew=-120.0), work()) == -120.0
    assert machine.run(machine.boot(skew=7.5), work()) == 7.5


def _interleaving(seed, **options):
    machine = Machine(seed, **options)
    process, seen = machine.boot(), []

    async def one(name):
        for _ in range(5):
            seen.append(name)
            await asyncio.sleep(0)

    async def all_of_them():
        await asyncio.gather(*(spawn(one(name), name=name) for name in "abc"))

    machine.run(process, all_of_them())
    trace = machine.loop.trace_hash()
    machine.close()
    return "".join(seen), trace


def test_the_seed_chooses_the_order_and_the_same_seed_chooses_the_same():
    runs = [_interleaving(str(seed)) for seed in range(20)]
    assert runs == [_interleaving(str(seed)) for seed in range(20)]
    assert len({order for order, _ in runs}) > 10
    assert len({trace for _, trace in runs}) > 10


def test_fifo_takes_the_oldest_first_whatever_the_seed():
    orders = {_interleaving(str(seed), fifo_after=0)[0] for seed in range(10)}
    assert orders == {"abcabcabcabcabc"}


def test_waiting_for_what_never_comes_is_a_deadlock(machine):
    async def work():
        await machine.loop.create_future()

    with pytest.raises(Deadlock):
        machine.run(machine.boot(), work())


def test_a_killed_process_never_runs_again_not_even_its_finally(machine):
    process, seen, closed = machine.boot(), [], []

    async def victim():
        try:
            while True:
                seen.append(monotonic())
                await sleep(1.0)
        finally:
            seen.append("finally")

    process.owns(lambda: closed.append("connection"))
    process.start(victim(), "victim")
    machine.loop.call_later(2.5, process.kill)
    machine.loop.run_until_complete(asyncio.wait_for(_wait(10.0), None))
    assert seen == [0.0, 1.0, 2.0]
    assert closed == ["connection"]


async def _wait(seconds):
    await asyncio.sleep(seconds)


def test_what_ended_by_itself_is_not_closed_by_the_kill(machine):
    process, closed = machine.boot(), []
    disown = process.owns(lambda: closed.append("connection"))
    disown()
    process.kill()
    assert closed == []


def test_a_process_that_kills_itself_ends_there(machine):
    process, seen = machine.boot(), []

    async def victim():
        seen.append("before")
        process.kill()
        raise Killed

    process.start(victim(), "victim")
    machine.loop.run_until_complete(_wait(1.0))
    assert seen == ["before"]
    assert machine.loop.crashes == []


def test_a_paused_process_goes_on_where_it_was(machine):
    process, seen = machine.boot(), []

    async def worker():
        while len(seen) < 4:
            seen.append(monotonic())
            await sleep(1.0)

    task = process.start(worker(), "worker")
    machine.loop.call_later(1.5, process.pause)
    machine.loop.call_later(10.0, process.resume)
    machine.loop.run_until_complete(task)
    assert seen == [0.0, 1.0, 10.0, 11.0]


def test_a_thread_is_a_body_that_takes_pauses_and_answers(machine):
    async def work():
        box, seen = mailbox(), []

        def body():
            seen.append((monotonic(), (yield Take(box, 2.0))))
            yield Pause(1.0)
            for reply in (yield Take(box)):
                deliver([(reply, monotonic())])

        thread = start_thread("test", body())
        await sleep(5.0)
        reply = Reply()
        box.put(reply)
        answered = await reply
        await thread.ended()
        return seen, answered, thread.alive()

    seen, answered, alive = machine.run(machine.boot(), work())
    assert seen == [(0.0, [])] or seen == [(2.0, [])]
    assert answered == 5.0
    assert not alive


def test_a_thread_that_raises_is_found_out(machine):
    async def work():
        def body():
            yield Pause(1.0)
            raise ValueError("oops")

        start_thread("test", body())
        await sleep(2.0)

    machine.run(machine.boot(), work())
    assert "oops" in machine.loop.crashes[0]


def test_a_real_thread_is_refused(machine):
    async def work():
        await asyncio.to_thread(print)

    with pytest.raises(AssertionError, match="real thread"):
        machine.run(machine.boot(), work())
