"""persist-queue's SQLiteAckQueue. It has no worker: the loop is ours."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from persistqueue import SQLiteAckQueue
from persistqueue.exceptions import Empty

from bench import body
from bench.place import url


def _queue() -> SQLiteAckQueue:
    return SQLiteAckQueue(str(Path(url().removeprefix("sqlite:///")).parent / "queue"), multithreading=True)


class Producer:
    def open(self) -> None:
        self._queue = _queue()

    def close(self) -> None:
        self._queue.close()

    def one(self, job: dict[str, Any]) -> None:
        self._queue.put(job)


def prepare() -> None:
    _queue().close()


def workers(processes: int) -> list[list[str]]:
    return [[sys.executable, "-m", "bench.peers.persist_queue"]] * processes


def serve() -> None:
    queue = _queue()
    while True:
        try:
            job = queue.get(block=False)
        except Empty:
            time.sleep(0.005)
            continue
        body.run(job)
        queue.ack(job)


if __name__ == "__main__":
    serve()
