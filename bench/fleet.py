"""Worker processes of one system: started together, ended for certain. Runs beside the peers."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import psutil

from bench.place import folder

Command = Sequence[str]


class Fleet:
    def __init__(self, commands: Sequence[Command], settings: Mapping[str, str] | None = None) -> None:
        self._commands, self._settings = commands, settings or {}
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        with (folder() / "workers.log").open("ab") as log:
            self._started = [
                subprocess.Popen(
                    command,
                    env=os.environ | self._settings,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
                for command in self._commands
            ]

    @property
    def alive(self) -> bool:
        return all(each.poll() is None for each in self._started)

    def tree(self) -> list[psutil.Process]:
        found: list[psutil.Process] = []
        for each in self._started:
            with suppress(psutil.Error):
                process = psutil.Process(each.pid)
                found += [process, *process.children(recursive=True)]
        return found

    def memory(self) -> tuple[float, float]:
        """MB of the largest process, and of all."""
        sizes = []
        for process in self.tree():
            with suppress(psutil.Error):
                sizes.append(process.memory_info().rss / 1e6)
        return max(sizes, default=0.0), sum(sizes)

    def cpu(self) -> float:
        """Seconds used so far, by all."""
        used = 0.0
        for process in self.tree():
            with suppress(psutil.Error):
                times = process.cpu_times()
                used += times.user + times.system
        return used

    def kill(self) -> None:
        """As a loss of power would: nobody can say goodbye."""
        self._end(signal.SIGKILL, self.tree())

    def stop(self) -> None:
        tree = self.tree()
        self._end(signal.SIGTERM, tree)
        until = time.monotonic() + 3
        while time.monotonic() < until and any(each.poll() is None for each in self._started):
            time.sleep(0.02)
        self._end(signal.SIGKILL, tree)

    def _end(self, how: signal.Signals, tree: Sequence[psutil.Process]) -> None:
        for process in tree:
            with suppress(psutil.Error):  # psutil looks whether the number has a new owner
                process.send_signal(how)
        if how is signal.SIGKILL:
            for each in self._started:
                each.wait()
