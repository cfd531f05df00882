"""Taskiq on Redis streams, the broker of its family that acknowledges."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from taskiq_redis import RedisStreamBroker

from bench import body
from bench.place import url

broker = RedisStreamBroker(url=url())


@broker.task(task_name="noop")
async def noop(job: dict[str, Any]) -> None:
    await body.run_async(job)


class Producer:
    async def open(self) -> None:
        await broker.startup()

    async def close(self) -> None:
        await broker.shutdown()

    async def one(self, job: dict[str, Any]) -> None:
        await noop.kiq(job)


def prepare() -> None: ...


def workers(processes: int) -> list[list[str]]:
    program = str(Path(sys.executable).parent / "taskiq")
    start = [program, "worker", "bench.peers.taskiq:broker", "--log-level", "WARNING"]
    return [[*start, "-w", str(processes)]]
