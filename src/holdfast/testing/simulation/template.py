"""A migrated SQLite file in memory-backed storage, copied for each seed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import apsw

from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.simulation.loop import SeededLoop
from holdfast.testing.simulation.process import Node, Process
from holdfast.testing.simulation.triggers import install
from holdfast.testing.simulation.world import Host, SimulatedWorld

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  files of one simulation, in a folder of our own
_numbers = count()


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for the files of simulations, in memory where the machine has such a place."""
    usable = _SHARED_MEMORY.is_dir() and os.access(_SHARED_MEMORY, os.W_OK)
    return tempfile.TemporaryDirectory(prefix="holdfast-sim-", dir=_SHARED_MEMORY if usable else None)


class Template:
    """One for each process that simulates. `write` puts a fresh copy in place of the last one."""

    def __init__(self, folder: str, schema: str = "") -> None:
        self.path = str(Path(folder) / f"{os.getpid()}-{next(_numbers)}.db")
        _migrate(self.path)
        _change(self.path, schema)
        install(self.path)
        self._content = Path(self.path).read_bytes()

    def write(self) -> str:
        for ending in ("-wal", "-shm"):
            Path(self.path + ending).unlink(missing_ok=True)
        Path(self.path).write_bytes(self._content)
        return self.path


@contextmanager
def template(schema: str = "") -> Generator[Template, None, None]:
    with scratch() as folder:
        yield Template(folder, schema)


def _change(path: str, schema: str) -> None:
    """What a mutant does to the tables."""
    connection = apsw.Connection(path)
    connection.execute(schema)
    connection.close()


def _migrate(path: str) -> None:
    """In a world of its own, so that no real thread is started."""
    loop = SeededLoop("template")
    process = Process(loop, Node("template", 0.0), 1)
    process.inhabit(SimulatedWorld(process, Host(loop, 1_800_000_000.0), "template"))
    loop.run_until_complete(process.start(_open_and_close(path), "migrate"))
    process.bury()
    loop.close()


async def _open_and_close(path: str) -> None:
    store = SqliteStore(path, synchronous="OFF")
    await store.open()
    await store.migrate()
    await store.close()
