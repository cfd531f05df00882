"""arq on Redis. By itself it looks every half second; here every 10 ms."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, ClassVar

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import func, run_worker

from bench import body
from bench.place import url

_TUNED = {"max_jobs": 100, "poll_delay": 0.01, "keep_result": 0}
_SETTINGS = RedisSettings.from_dsn(url())


async def noop(_: dict[str, Any], job: dict[str, Any]) -> None:
    await body.run_async(job)


class WorkerSettings:
    functions: ClassVar[list[Any]] = [func(noop, name="noop")]
    redis_settings = _SETTINGS


class Producer:
    async def open(self) -> None:
        self._pool = await create_pool(_SETTINGS)

    async def close(self) -> None:
        await self._pool.aclose()

    async def one(self, job: dict[str, Any]) -> None:
        await self._pool.enqueue_job("noop", job)


def prepare() -> None: ...


def workers(processes: int) -> list[list[str]]:
    return [[sys.executable, "-m", "bench.peers.arq"]] * processes


if __name__ == "__main__":
    logging.getLogger("arq").setLevel(logging.WARNING)  # its command writes a line for each job
    run_worker(WorkerSettings, **({} if os.environ.get("BENCH_DEFAULTS") else _TUNED))
