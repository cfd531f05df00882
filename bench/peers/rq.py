"""RQ on Redis. Its ordinary worker forks for each job; the simple one, which does not, is much faster."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from redis import Redis
from rq import Queue

from bench import body
from bench.place import url

_NAME = "bench.peers.rq.noop"


def noop(job: dict[str, Any]) -> None:
    body.run(job)


class Producer:
    def open(self) -> None:
        self._queue = Queue(connection=Redis.from_url(url()))

    def close(self) -> None: ...

    def one(self, job: dict[str, Any]) -> None:
        self._queue.enqueue(_NAME, job, result_ttl=0)

    def many(self, jobs: Sequence[dict[str, Any]]) -> None:
        self._queue.enqueue_many([Queue.prepare_data(_NAME, args=(job,), result_ttl=0) for job in jobs])


def prepare() -> None: ...


def workers(processes: int) -> list[list[str]]:
    program = str(Path(sys.executable).parent / "rq")
    start = [program, "worker", "-q", "-u", url(), "-P", "."]
    if os.environ.get("BENCH_DEFAULTS"):
        return [start] * processes
    return [[*start, "-w", "rq.worker.SimpleWorker"]] * processes
