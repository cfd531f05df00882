"""litequeue on a SQLite file. It has no worker: the loop is ours. It does not wait for the disk."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from litequeue import LiteQueue

from bench import body
from bench.place import url

ONE_THREAD = True


def _queue() -> LiteQueue:
    return LiteQueue(url().removeprefix("sqlite:///"))


class Producer:
    def open(self) -> None:
        self._queue = _queue()

    def close(self) -> None:
        self._queue.conn.close()

    def one(self, job: dict[str, Any]) -> None:
        self._queue.put(json.dumps(job))

    def many(self, jobs: Sequence[dict[str, Any]]) -> None:
        with self._queue.transaction():
            for job in jobs:
                self._queue.put(json.dumps(job))


def prepare() -> None:
    _queue().conn.close()


def workers(processes: int) -> list[list[str]]:
    return [[sys.executable, "-m", "bench.peers.litequeue"]] * processes


def serve() -> None:
    queue = _queue()
    while True:
        message = queue.pop()
        if message is None:
            time.sleep(0.005)
            continue
        body.run(json.loads(message.data))
        queue.done(message.message_id)


if __name__ == "__main__":
    serve()
