"""Keeps floods out of the log: of one kind only so many lines in a while, and then one that tells how many there were."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from holdfast.kernel.clock import later, monotonic

LINES = 10
SECONDS = 10.0
_MOST = 1_000  # kinds that are known at a time

Fields: TypeAlias = Mapping[str, Any]
Kind: TypeAlias = tuple[str, str | None]  # a note, and the task that it speaks of


class _Window:
    """What was said of one kind, and what was left out, since it began."""

    __slots__ = ("began", "last", "left_out", "lines")

    def __init__(self, began: float) -> None:
        self.began = began
        self.lines, self.left_out = 1, 0
        self.last: Fields = {}


class Floods:
    """`tell` writes the line that tells of what was left out. Without locks: a race lets one line more through."""

    def __init__(self, tell: Callable[[Kind, int, float, Fields], None]) -> None:
        self._tell = tell
        self._windows: dict[Kind, _Window] = {}
        self._flooded: dict[Kind, _Window] = {}  # those that have left something out

    def admits(self, kind: Kind, fields: Fields) -> bool:
        """Whether this one is said."""
        now = monotonic()
        if self._flooded:
            self._end_old(now)
        window = self._windows.get(kind)
        if window is None or not 0 <= now - window.began < SECONDS:
            self._begin(kind, now)
            return True
        if window.lines < LINES:
            window.lines += 1
            return True
        window.left_out += 1
        window.last = fields
        if window.left_out == 1:
            self._flooded[kind] = window
            self._look_later(kind, window, window.began + SECONDS - now)
        return False

    def flush(self) -> None:
        """Tell now of all that was left out: the log ends here."""
        for kind, window in tuple(self._flooded.items()):
            self._end(kind, window)

    def _begin(self, kind: Kind, now: float) -> None:
        if len(self._windows) >= _MOST:
            self.flush()
            self._windows.clear()
        self._windows[kind] = _Window(now)

    def _look_later(self, kind: Kind, window: _Window, seconds: float) -> None:
        try:
            later(seconds, self._end, kind, window)
        except RuntimeError:  # no loop runs in this thread: the next note tells of it, whatever it is
            return

    def _end_old(self, now: float) -> None:
        for kind, window in tuple(self._flooded.items()):
            if not 0 <= now - window.began < SECONDS:
                self._end(kind, window)

    def _end(self, kind: Kind, window: _Window) -> None:
        if self._flooded.get(kind) is not window:
            return  # it was told
        del self._flooded[kind]
        self._windows.pop(kind, None)
        seconds = max(0.0, monotonic() - window.began)
        self._tell(kind, window.left_out, seconds, window.last)
