"""One PostgreSQL for all processes of a test run: the first starts it, a locked file counts who uses it."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the watch runs this file by itself

from tools.postgres import PostgresServer


@contextmanager
def shared_postgres(register: Path, binaries: Path) -> Generator[tuple[PostgresServer, bool], None, None]:
    """The server of this test run, and whether we are the one who started it."""
    server, first = _enter(register, binaries)
    try:
        yield server, first
    finally:
        _leave(register, server)


def _enter(register: Path, binaries: Path) -> tuple[PostgresServer, bool]:
    with _locked(register) as entry:
        first = not entry.get("users")
        if first:
            server = PostgresServer.start(binaries)
            entry |= {"folder": str(server.folder), "port": server.port}
        else:
            server = PostgresServer(binaries, Path(entry["folder"]), entry["port"])
        entry["users"] = [*entry.get("users", ()), os.getpid()]
    if first:
        _start_watch(register, server)
    return server, first


def _leave(register: Path, server: PostgresServer) -> None:
    with _locked(register) as entry:
        entry["users"].remove(os.getpid())
        if not entry["users"]:
            server.stop()


def _start_watch(register: Path, server: PostgresServer) -> None:
    """A test process that is killed cannot stop its server: another process looks after that."""
    command = [sys.executable, __file__, register, server.binaries, server.folder, str(server.port)]
    # The shell ends at once and leaves the watch without a parent here, so that nobody has to wait for it.
    subprocess.run(
        ["sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh", *command], start_new_session=True, check=True
    )


def _watch(register: Path, server: PostgresServer) -> None:
    while server.folder.exists():
        time.sleep(2)
        if not register.exists():
            server.stop()
            return
        with _locked(register) as entry:
            entry["users"] = [user for user in entry["users"] if Path(f"/proc/{user}").exists()]
            if not entry["users"] and server.folder.exists():
                server.stop()


@contextmanager
def _locked(register: Path) -> Generator[dict, None, None]:
    with register.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        entry = json.loads(text) if text else {}
        yield entry
        file.seek(0)
        file.truncate()
        file.write(json.dumps(entry))


if __name__ == "__main__":
    _watch(Path(sys.argv[1]), PostgresServer(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])))
