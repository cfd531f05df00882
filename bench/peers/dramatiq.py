"""Dramatiq on Redis, with the middleware it has by itself, and no results."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("dramatiq_queue_prefetch", "64")

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench import body
from bench.place import url

dramatiq.set_broker(RedisBroker(url=url()))


@dramatiq.actor
def noop(job: dict[str, Any]) -> None:
    body.run(job)


class Producer:
    def open(self) -> None: ...

    def close(self) -> None: ...

    def one(self, job: dict[str, Any]) -> None:
        noop.send(job)


def prepare() -> None: ...


def workers(processes: int) -> list[list[str]]:
    program = str(Path(sys.executable).parent / "dramatiq")
    return [[program, "bench.peers.dramatiq", "-p", str(processes), "-t", "8"]]
