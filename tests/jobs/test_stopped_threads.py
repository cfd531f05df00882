"""A thread that is asked to stop while the engine does something for it: nothing stays open, and nobody is told a lie."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

import holdfast
from holdfast import Backoff, Job
from holdfast.jobs.blocking import Portal
from holdfast.kernel import errands
from holdfast.kernel.errands import BackCalls
from holdfast.kernel.errors import CommitUnknown, TransactionEnded
from holdfast.kernel.threads import Stopped, ThreadCall, Threads
from holdfast.store.states import State
from holdfast.testing import drain

ONCE = Backoff(attempts=1)
OURS = tuple(
    str(Path(holdfast.__file__).parent / name)
    for name in (
        "jobs/blocking.py",
        "kernel/threads.py",
        "kernel/errands.py",
        "kernel/loans.py",
        "kernel/loops.py",
    )
)


class Block:
    """Stands for a transaction."""

    def __init__(self, at_exit=lambda: None):
        self.entered, self.ends, self.at_exit = 0, [], at_exit

    async def __aenter__(self):
        await asyncio.sleep(0)
        self.entered += 1
        return self

    async def __aexit__(self, kind, error, trace):
        await asyncio.sleep(0)
        self.ends.append("rolled back" if kind else "committed")
        if kind is None:
            self.at_exit()


class Stopper:
    """Asks a thread to stop before its n-th instruction in our code; from another thread, as the worker does."""

    def __init__(self, call, instruction, others):
        self._call, self._left, self._others = call, instruction, others

    def run(self, body):
        sys.settrace(self._trace)
        try:
            body()
        finally:
            sys.settrace(None)

    @property
    def has_stopped(self):
        return self._left <= 0

    def _trace(self, frame, event, _):
        if not frame.f_code.co_filename.startswith((*OURS, __file__)):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self._left -= 1
            if self._left == 0:
                self._others.put(self._call.stop)
                time.sleep(0.002)  # unless this thread holds the lock that it needs, it has come by now
        return self._trace


@pytest.fixture
def others():
    """A thread that does what it is given. It is there before: who is stopped while it starts a thread may wait for that for ever."""
    given = queue.SimpleQueue()
    thread = threading.Thread(target=lambda: [each() for each in iter(given.get, None)])
    thread.start()
    yield given
    given.put(None)
    thread.join()


@pytest.fixture
async def portal():
    made = Portal(None)
    made.home = asyncio.get_running_loop()
    return made


async def in_thread(call, body):
    threads = Threads(1)
    try:
        return await threads.run(call, body)
    finally:
        threads.close()


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("fails", [False, True])
async def test_wherever_a_thread_is_stopped_its_block_is_left_once(portal, others, fails):
    async def stopped_at(instruction):
        block, call, said = Block(), ThreadCall(), []

        def body():
            with portal.entered(block):
                said.append("inside")
                if fails:
                    raise ValueError
            said.append("after")

        stopper = Stopper(call, instruction, others)
        try:
            await in_thread(call, partial(stopper.run, body))
        except (Stopped, ValueError):
            said.append("raised")
        await until(lambda: len(block.ends) == block.entered)
        await asyncio.sleep(0)
        where = f"stopped before instruction {instruction}: {said}, {block.ends}"
        assert block.entered <= 1, where
        if "after" in said:
            assert block.ends == ["committed"], where
        if fails or "inside" not in said:
            assert block.ends in ([], ["rolled back"]), where
        return stopper.has_stopped

    instruction = 1
    while await stopped_at(instruction):
        instruction += 1
    assert instruction > 100


async def test_a_stop_during_the_commit_comes_after_it(portal):
    call = ThreadCall()
    block, said = Block(at_exit=call.stop), []

    def body():
        try:
            with portal.entered(block):
                pass
        except Stopped:
            said.append("stopped")
            raise

    with pytest.raises(Stopped):
        await in_thread(call, body)
    assert (block.ends, said) == (["committed"], ["stopped"])


async def test_a_commit_that_nobody_knows_of_is_told_before_the_stop(portal):
    call = ThreadCall()

    def fail():
        call.stop()
        raise CommitUnknown("the answer was lost")

    def body():
        with portal.entered(Block(at_exit=fail)):
            pass

    with pytest.raises(CommitUnknown):
        await in_thread(call, body)


async def test_a_block_that_is_dropped_in_a_foreign_thread_is_left(portal):
    block = Block()

    def forgetful():
        portal.entered(block).__enter__()

    await asyncio.to_thread(forgetful)
    await until(lambda: block.ends == ["rolled back"])


@pytest.mark.parametrize("is_served", [False, True])
def test_a_loop_that_is_closed_with_all_that_ran_on_it_keeps_no_thread(is_served, monkeypatch):
    monkeypatch.setattr(errands, "_LOOKS", 0.05)
    loop, portal, begun, told = asyncio.new_event_loop(), Portal(None), threading.Event(), []
    portal.home = loop

    async def lasts():
        begun.set()
        await asyncio.sleep(600)

    def waits():
        try:
            portal.run(lasts, BackCalls() if is_served else None)
        except CommitUnknown as error:
            told.append(error)

    async def main():
        thread = threading.Thread(target=waits, daemon=True)
        thread.start()
        await until(begun.is_set)
        return thread

    thread = loop.run_until_complete(main())
    loop.close()  # and not `asyncio.run`, which ends the tasks
    thread.join(5)
    assert told


def test_a_block_on_a_loop_that_is_closed_is_not_left_well(monkeypatch):
    monkeypatch.setattr(errands, "_LOOKS", 0.05)
    loop, portal, block, closed, told = asyncio.new_event_loop(), Portal(None), Block(), threading.Event(), []
    portal.home = loop

    def leaves():
        try:
            with portal.entered(block):
                closed.wait(5)
        except TransactionEnded as error:
            told.append(error)

    async def main():
        thread = threading.Thread(target=leaves, daemon=True)
        thread.start()
        await until(lambda: block.entered)
        return thread

    thread = loop.run_until_complete(main())
    loop.close()
    closed.set()
    thread.join(5)
    assert told
    assert block.ends == []


async def test_a_task_that_is_stopped_while_it_waits_for_a_transaction_holds_none(hf):
    at_once = 1 if hf._inside.location.kind == "sqlite" else hf.store.database.target.pool_size - 1
    begun = []

    @hf.task(timeout=0.8, retry=ONCE)
    def ship(job: Job) -> None:
        begun.append(job.id)
        time.sleep(0.4)
        with job.blocking.commit() as tx:
            tx.fetch("SELECT 1")

    async def hold_all(seconds):
        """Every transaction that there may be at once."""
        all_held = asyncio.Barrier(at_once)

        async def hold():
            async with hf.transaction():
                await all_held.wait()
                await asyncio.sleep(seconds)

        await asyncio.gather(*(hold() for _ in range(at_once)))

    for _ in range(3):
        await ship.enqueue()
    async with hf.worker(queues={"default": 3}):
        await until(lambda: len(begun) == 3)
        await hold_all(1.2)  # longer than the tasks may wait
        started = time.monotonic()
        await hold_all(0)
        assert time.monotonic() - started < 3
    jobs = await hf.store.jobs.find(limit=5)
    assert [job.state for job in jobs] == [State.DEAD] * 3


async def test_a_task_that_waits_for_a_result_is_stopped(hf):
    @hf.task
    async def greet() -> None: ...

    handle = await greet.options(delay=3600).enqueue()

    @hf.task(timeout=0.2, retry=ONCE)
    def wait() -> None:
        hf.blocking.result(handle)

    await wait.enqueue()
    async with asyncio.timeout(5):
        [ran] = await drain(hf)
    assert ran.state is State.DEAD
    assert "timeout" in ran.error


async def test_an_effect_that_is_stopped_before_its_call_is_not_done(hf, monkeypatch):
    calls, write = [], hf.store.steps.write

    async def slow(*args):
        written = await write(*args)
        if not calls:
            await asyncio.sleep(0.5)
        return written

    monkeypatch.setattr(hf.store.steps, "write", slow)

    @hf.task(timeout=0.2, retry=Backoff(attempts=2, first=0, ceiling=0))
    def ship(job: Job) -> None:
        if job.attempt == 2:
            calls.append("again")
        job.blocking.effect("send", lambda: calls.append("sent"), policy="at_most_once")

    await ship.enqueue()
    async with asyncio.timeout(10):
        ran = await drain(hf)
    assert [each.state for each in ran] == [State.QUEUED, State.SUCCEEDED]
    assert calls == ["again", "sent"]
