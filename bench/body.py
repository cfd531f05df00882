"""What every job does: nothing, and counts it. Only the standard library: it also runs beside the peers.

Each process counts in a small file of its own that the bench reads as memory, which costs less than a microsecond. Only
when latency is measured does a job write a line.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
import threading
import time
from collections.abc import Mapping
from typing import Any

from bench.place import folder

_NUMBER = struct.Struct("<q")
_LINE = struct.Struct("<qqqq")  # number, sent, started, process


class _Counter:
    def __init__(self) -> None:
        place = folder() / "counts" / str(os.getpid())
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(bytes(_NUMBER.size))
        with place.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _NUMBER.size)
        self._jobs, self._lock, self._write = 0, threading.Lock(), _NUMBER.pack_into

    def add(self) -> None:
        with self._lock:
            self._jobs += 1
            self._write(self._memory, 0, self._jobs)


_counter: _Counter | None = None
_making = threading.Lock()


def ready() -> None:
    """This process will count."""
    global _counter  # noqa: PLW0603  one for the process
    with _making:  # two threads may run their first job at once
        if _counter is None:
            _counter = _Counter()


def _forked() -> None:
    global _counter, _making
    _counter, _making = None, threading.Lock()


os.register_at_fork(after_in_child=_forked)


def begin(sent: int, number: int) -> None:
    if _counter is None:
        ready()
    if sent:
        line = _LINE.pack(number, sent, time.monotonic_ns(), os.getpid())
        log = os.open(folder() / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, line)
        os.close(log)


def count() -> None:
    """One more has run; after `begin`."""
    _counter.add()  # type: ignore[union-attr]


def run(job: Mapping[str, Any]) -> None:
    begin(job["sent"], job["number"])
    if job["nap"]:
        time.sleep(job["nap"])
    count()


async def run_async(job: Mapping[str, Any]) -> None:
    begin(job["sent"], job["number"])
    if job["nap"]:
        await asyncio.sleep(job["nap"])
    count()


# --- for who measures ---


def counts() -> list[int]:
    """Of each process that has reported."""
    found = []
    for place in (folder() / "counts").glob("*"):
        data = place.read_bytes()
        found.append(_NUMBER.unpack(data)[0] if len(data) == _NUMBER.size else 0)
    return found


def starts() -> list[tuple[int, int, int, int]]:
    """(number, sent, started, process) of each job that started while latency was measured."""
    place = folder() / "log"
    data = place.read_bytes() if place.exists() else b""
    return list(_LINE.iter_unpack(data[: len(data) // _LINE.size * _LINE.size]))
