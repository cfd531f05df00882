"""A real server on a free loopback port, in a folder of its own: started, frozen, killed and started again by tests."""

from __future__ import annotations

import ctypes
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path

_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_PATIENCE = 60.0  # seconds until it answers, beside much other work


class LocalServer(ABC):
    """It ends with the process that has started it, however that ends. A subclass says how it is started."""

    name: str

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"holdfast-{self.name}-"))
        self.port = free_port()
        self._popen: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def command(self) -> list[str]: ...

    def start(self) -> None:
        """Again, after `kill`: with what is in its folder."""
        self._popen = subprocess.Popen(
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_end_with_parent,  # noqa: PLW1509  one call of the system
        )
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + _PATIENCE
        while True:
            if self._popen is None or self._popen.poll() is not None:
                raise RuntimeError(f"{self.name} ended as soon as it was started: {' '.join(self.command())}")
            if self._answers():
                return
            if time.monotonic() > end:
                raise RuntimeError(f"{self.name} does not listen after {_PATIENCE:g} s.")
            time.sleep(0.01)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as found:
                # To a port that nobody listens to, the system may connect a socket with itself.
                return bool(found.getsockname() != found.getpeername())
        except OSError:
            return False

    def freeze(self) -> None:
        """When it returns, no thread of it runs any more: the last of them may still answer after the signal was sent."""
        self._signal(signal.SIGSTOP)
        end = time.monotonic() + _PATIENCE
        while self._popen is not None and not _stands_still(self._popen.pid) and time.monotonic() < end:
            time.sleep(0.001)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """As a crash would; nothing that it had in memory only is left."""
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


def free_port() -> int:
    """Below those that the system gives to outgoing connections: one of these might have it when the server starts again."""
    while True:
        port = random.randrange(20_000, 32_768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def _stands_still(pid: int) -> bool:
    if sys.platform != "linux":
        return True
    threads = Path(f"/proc/{pid}/task").iterdir()
    return all((each / "stat").read_text().rpartition(")")[2].split()[0] in "Tt" for each in threads)


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
