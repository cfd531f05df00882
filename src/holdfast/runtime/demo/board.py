"""The scoreboard: one line that lives on a terminal, and a line a second elsewhere."""

from __future__ import annotations

import sys

from holdfast.kernel.clock import monotonic
from holdfast.runtime.demo.audit import Audit

_WIDTH = 28


class Board:
    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._began = monotonic()
        self._shown = -1

    def show(self, audit: Audit, running: int, workers: int) -> None:
        seconds = int(monotonic() - self._began)
        if not self._live and seconds == self._shown:
            return
        self._shown = seconds
        full = int(_WIDTH * audit.parcels / max(1, audit.orders))
        bar = "█" * min(full, _WIDTH) + "░" * (_WIDTH - full)
        text = f"  {seconds:3d} s  {bar}  {audit.parcels:4d} of {audit.orders:4d} shipped, {running:2d} running, {workers} workers"
        self._print(text, stays=not self._live)

    def say(self, text: str) -> None:
        self._print(f"  {int(monotonic() - self._began):3d} s  {text}", stays=True)

    def _print(self, text: str, *, stays: bool) -> None:
        begin, end = ("\r\x1b[2K", "\n" if stays else "") if self._live else ("", "\n")
        print(f"{begin}{text}", end=end, flush=True)  # noqa: T201
