"""Celery on Redis: JSON, no results, two solo workers, which is its fastest way on two cores."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from celery import Celery, group

from bench import body
from bench.place import url

app = Celery("bench", broker=url())
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)
if not os.environ.get("BENCH_DEFAULTS"):
    app.conf.update(worker_prefetch_multiplier=64)


@app.task(name="noop")
def noop(job: dict[str, Any]) -> None:
    body.run(job)


class Producer:
    def open(self) -> None: ...

    def close(self) -> None:
        app.close()

    def one(self, job: dict[str, Any]) -> None:
        noop.delay(job)

    def many(self, jobs: Sequence[dict[str, Any]]) -> None:
        """One call, and one message after the other inside it."""
        group(noop.s(job) for job in jobs).apply_async()


def prepare() -> None: ...


def workers(processes: int) -> list[list[str]]:
    program = str(Path(sys.executable).parent / "celery")
    start = [program, "-A", "bench.peers.celery", "worker", "-l", "WARNING"]
    if os.environ.get("BENCH_DEFAULTS"):
        return [start]
    return [[*start, "-P", "solo", "-n", f"{number}@bench"] for number in range(processes)]
