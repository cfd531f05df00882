"""A progress bar on stderr, only where a person watches."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from holdfast.kernel.clock import monotonic
from holdfast.runtime.cli.times import span

_WIDTH = 30
_PAUSE = 0.1  # seconds between two drawings


class Progress:
    """`with Progress("replayed", total) as bar: bar.at(12)`."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._shown = sys.stderr.isatty() and total > 0
        self._began, self._drawn = monotonic(), 0.0

    def at(self, done: int) -> None:
        now = monotonic()
        if self._shown and (done >= self._total or now - self._drawn >= _PAUSE):
            self._drawn = now
            self._write(f"\r{self.line(done, now - self._began)}\x1b[K")

    def line(self, done: int, seconds: float) -> str:
        full = _WIDTH * done // self._total
        left = f", {span(seconds * (self._total - done) / done)} left" if 0 < done < self._total else ""
        return f"[{'#' * full}{' ' * (_WIDTH - full)}] {done:,} of {self._total:,} {self._what}{left}"

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def __enter__(self) -> Self:
        self.at(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The bar stays where it is, and what is said next begins a line."""
        if self._shown:
            self._write("\n")
