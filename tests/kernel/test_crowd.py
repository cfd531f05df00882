"""Threads for functions that wait for each other."""

from __future__ import annotations

import asyncio
import threading

from holdfast.kernel.loops import call_from_thread
from holdfast.kernel.threads import Crowd


async def test_no_more_than_the_limit_while_they_end():
    crowd, running, most = Crowd(4), [], []

    def work():
        running.append(1)
        most.append(len(running))
        threading.Event().wait(0.01)
        running.pop()

    await asyncio.gather(*(crowd.call(work) for _ in range(40)))
    assert max(most) <= 4
    crowd.close()


async def test_what_one_of_them_calls_has_a_thread_at_once():
    crowd, loop = Crowd(2), asyncio.get_running_loop()

    def deep(depth):
        return depth if depth == 5 else call_from_thread(loop, crowd.call(lambda: deep(depth + 1)))

    async with asyncio.timeout(5):
        assert await asyncio.gather(*(crowd.call(lambda: deep(0)) for _ in range(20))) == [5] * 20
    crowd.close()


async def test_those_who_wait_for_one_without_a_thread_come_to_an_end():
    """It was called by nobody who has one, so nothing tells that they wait for it."""
    crowd, loop = Crowd(2), asyncio.get_running_loop()
    last = asyncio.Event()
    first = [asyncio.create_task(crowd.call(lambda: call_from_thread(loop, last.wait()))) for _ in range(4)]
    await asyncio.sleep(0.02)
    opener = asyncio.create_task(crowd.call(lambda: loop.call_soon_threadsafe(last.set)))
    async with asyncio.timeout(5):
        assert await asyncio.gather(*first) == [True] * 4
        await opener
    crowd.close()


async def test_who_gives_up_gives_back_his_place():
    crowd, go = Crowd(1), threading.Event()
    held = asyncio.create_task(crowd.call(go.wait))
    await asyncio.sleep(0.02)
    waiting = asyncio.create_task(crowd.call(lambda: 1))
    await asyncio.sleep(0.02)
    waiting.cancel()
    await asyncio.wait([waiting])
    go.set()
    assert await held
    assert [await crowd.call(lambda: 2) for _ in range(3)] == [2] * 3
    assert not crowd._free.locked()
    crowd.close()
