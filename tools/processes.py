"""Processes that are started, frozen, killed and, whatever happened to them, ended by their id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tools.waiting import until

SOURCE = str(Path(__file__).parents[1] / "src")  # workers run what those who start them import
PATIENCE = 30.0  # seconds for a fact; what takes longer has failed


def worker_command(app: str, *options: str, lease: float) -> list[str]:
    """As an operator starts it."""
    return [sys.executable, "-m", "holdfast", "worker", app, "--lease", str(lease), *options]


class Process:
    """A worker, or a supervisor and its children, as an operator sees it: a pid and a log."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        log: Path,
        said: int | None = None,
    ) -> None:
        """What it says goes into the log, or to `said`, the descriptor of a pipe."""
        self._log = log
        with log.open("wb") as file:
            self._popen = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file if said is None else said,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    @property
    def code(self) -> int | None:
        """Its exit code; None while it lives."""
        return self._popen.poll()

    @property
    def children(self) -> list[int]:
        """Workers of a supervisor."""
        try:
            return [child.pid for child in psutil.Process(self.pid).children() if child.status() != "zombie"]
        except psutil.NoSuchProcess:
            return []

    def signal(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    async def says(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until the log has this text."""
        await self._until(lambda: text in self.log, f"the log never said {text!r}", seconds)

    async def ended(self, seconds: float = PATIENCE) -> int:
        """Wait for its end; returns the exit code."""
        await self._until(lambda: not self.alive, "it did not end", seconds)
        return int(self._popen.returncode)

    async def _until(self, check: Callable[[], Any], complaint: str, seconds: float) -> None:
        try:
            await until(check, seconds)
        except AssertionError:
            raise AssertionError(f"{complaint} in {seconds:g} s. The log:\n{self.log}") from None

    def destroy(self) -> None:
        """It and all below it, whatever state they are in."""
        try:
            family = [psutil.Process(self.pid), *psutil.Process(self.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            family = []
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._popen.wait(10)


def environment(folders: Sequence[str | Path], **settings: str) -> dict[str, str]:
    """Ours, with these settings, and these folders to import from before Holdfast itself."""
    path = os.pathsep.join(str(each) for each in (*folders, SOURCE) if str(each))
    return {**os.environ, **settings, "PYTHONPATH": path}
