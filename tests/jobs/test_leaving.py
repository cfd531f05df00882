"""A worker that leaves: its share is done for every queue, and nothing is lost, charged or held up on the way out."""

from __future__ import annotations

import asyncio

import pytest


@pytest.fixture
def greet(hf):
    @hf.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    return greet


async def test_a_small_share_is_no_reason_to_leave_a_queue_alone(hf, greet):
    left = asyncio.Event()
    service = hf.worker({"first": 3, "second": 3}, poll=0.01)
    await service.start()
    service.worker.leave_after(1, left.set)
    handle = await greet.options(queue="second").enqueue("ada")
    assert await handle.result(10) == "hello ada"
    await left.wait()
    await service.stop()
