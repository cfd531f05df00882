"""Crash points armed from outside: CHAOS_CRASH=effect.called:3 kills this process when it comes there for the third time.

Only the programs of this harness read it. A worker of yours has nothing that could be armed.
"""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack

from holdfast.kernel.crashpoints import armed

VARIABLE = "CHAOS_CRASH"
_kept = ExitStack()  # who lets go of it disarms


def arm() -> None:
    if given := os.environ.get(VARIABLE):
        name, _, number = given.rpartition(":")
        _kept.enter_context(armed(name, _Countdown(int(number))))


class _Countdown:
    def __init__(self, left: int) -> None:
        self._left = left

    def __call__(self, _name: str) -> None:
        self._left -= 1
        if self._left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
