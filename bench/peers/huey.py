"""huey on Redis, or on a SQLite file with or without fsync."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from huey import RedisHuey, SqliteHuey

from bench import body
from bench.place import url

_ON_REDIS, _FSYNC = url().startswith("redis"), bool(os.environ.get("FSYNC"))
if _ON_REDIS:
    app = RedisHuey("bench", url=url(), results=False)
else:
    app = SqliteHuey("bench", filename=url().removeprefix("sqlite:///"), results=False, fsync=_FSYNC)


@app.task()
def noop(job: dict[str, Any]) -> None:
    body.run(job)


class Producer:
    def open(self) -> None: ...

    def close(self) -> None:
        app.storage.close()

    def one(self, job: dict[str, Any]) -> None:
        noop(job)


def prepare() -> None: ...


EXECUTING = 4 if _ON_REDIS else 1 if _FSYNC else 2


def workers(processes: int) -> list[list[str]]:
    """More processes where they make it faster; one thread is fastest where each commit waits for the disk."""
    kind = (
        ["-w", str(EXECUTING), "-k", "process"]
        if processes > 1 or EXECUTING == 2
        else ["-w", "1", "-k", "thread"]
    )
    program = str(Path(sys.executable).parent / "huey_consumer")
    return [[program, "bench.peers.huey.app", *kind, "-q"]]
