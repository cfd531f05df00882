"""See how busy other programs keep the machine, and wait a limited time for quiet."""

from __future__ import annotations

import os
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


class Patience:
    """Waits before a run until others use less than `share` of a core; gives up when its seconds are spent."""

    def __init__(self, seconds: float, share: float = 0.25) -> None:
        self._left, self._share = seconds, share

    def wait(self) -> None:
        while self._left > 0 and (busy := busy_cores(1.0)) > self._share:
            self._left -= 1.0
            if busy > 2 * self._share:
                time.sleep(min(2.0, max(0.0, self._left)))
                self._left -= 2.0


def load() -> float:
    return round(os.getloadavg()[0], 1)


def process_cpu(pid: int) -> float:
    """Seconds of CPU a process has used; 0 where /proc does not exist."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


def busy_cores(seconds: float) -> float:
    before = _busy_ticks()
    time.sleep(seconds)
    return (_busy_ticks() - before) / TICK / seconds


def _busy_ticks() -> int:
    try:
        user, nice, system, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    except OSError:
        return 0
    return user + nice + system
