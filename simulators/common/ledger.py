"""What was accepted, in its order, and how many calls there were: what a proof counts against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any


class Ledger:
    """Entries are only ever added."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: list[dict[str, Any]] = []
        self._open: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.most_open: Counter[str] = Counter()

    def add(self, kind: str, **facts: Any) -> dict[str, Any]:
        with self._lock:
            entry = {"number": len(self._entries) + 1, "kind": kind, **facts}
            self._entries.append(entry)
            return entry

    def find(self, kind: str | None = None, **facts: Any) -> list[dict[str, Any]]:
        with self._lock:
            wanted = facts if kind is None else {"kind": kind, **facts}
            return [dict(entry) for entry in self._entries if wanted.items() <= entry.items()]

    @contextmanager
    def call(self, endpoint: str) -> Iterator[None]:
        """A call that is open as long as the block lasts."""
        with self._lock:
            self.calls[endpoint] += 1
            self._open[endpoint] += 1
            self.most_open[endpoint] = max(self.most_open[endpoint], self._open[endpoint])
        try:
            yield
        finally:
            with self._lock:
                self._open[endpoint] -= 1
