"""Holdfast itself, on the store that the URL names. Its worker: python -m bench.peers.holdfast."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

from bench import body
from bench.place import url
from holdfast import Holdfast, Job

SLOTS = 100

hf = Holdfast(url())


STEPS = int(os.environ.get("BENCH_STEPS", "0"))


async def noop(number: int, sent: int, nap: float, pad: str, tail: str) -> None:  # noqa: ARG001
    await body.run_async({"number": number, "sent": sent, "nap": nap})


async def stepped(job: Job, number: int, sent: int, nap: float, pad: str, tail: str) -> None:
    for place in range(STEPS):
        await job.step(f"step:{place}", step, place)
    await noop(number, sent, nap, pad, tail)


async def step(place: int) -> int:
    return place


task: Any = hf.task(name="noop")(stepped if STEPS else noop)


class Producer:
    async def open(self) -> None:
        await hf.__aenter__()

    async def close(self) -> None:
        await hf.__aexit__(None, None, None)

    async def one(self, job: dict[str, Any]) -> None:
        await task.enqueue(**job)

    async def many(self, jobs: Sequence[dict[str, Any]]) -> None:
        await task.enqueue_many(jobs)


def prepare() -> None:
    asyncio.run(hf.migrate())


def hold() -> None:
    asyncio.run(_with_store("pause"))


def go() -> None:
    asyncio.run(_with_store("resume"))


async def _with_store(verb: str) -> None:
    async with Holdfast(url()) as other:
        await getattr(other.queues, verb)("default")


def left() -> int:
    return asyncio.run(_left())


async def _left() -> int:
    async with Holdfast(url()) as other:
        return sum(count.number for count in await other.queues.count())


def workers(processes: int) -> list[list[str]]:
    return [[sys.executable, "-m", "bench.peers.holdfast"]] * processes


async def serve() -> None:
    queues = None if os.environ.get("BENCH_DEFAULTS") else {"default": SLOTS}
    async with hf, hf.worker(queues=queues):
        body.ready()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
