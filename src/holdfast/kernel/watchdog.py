"""A thread that sees when an event loop stands still. Time for which the whole process stood still does not count."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

_LOOKS = 4  # in the time that a loop may stand still


class Watchdog:
    """Calls `stuck` on a thread of its own, once, when the running loop has not turned for so many seconds."""

    def __init__(self, seconds: float, stuck: Callable[[], None]) -> None:
        self._pause, self._stuck = seconds / _LOOKS, stuck
        self._loop = asyncio.get_running_loop()
        self._turned, self._ended = threading.Event(), threading.Event()
        threading.Thread(target=self._watch, name="holdfast-watchdog", daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        """Looks are counted, not seconds: between two of them a process may have slept."""
        missed = 0
        while self._ask() and not self._ended.wait(self._pause):
            missed = 0 if self._turned.is_set() else missed + 1
            self._turned.clear()
            if missed >= _LOOKS:
                self._stuck()
                return

    def _ask(self) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._turned.set)
        except RuntimeError:  # it is closed
            return False
        return True
