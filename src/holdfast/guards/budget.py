"""The budget for retries: many calls that fail together must not become many times as many."""

from __future__ import annotations

from holdfast.guards.checks import check_ratio
from holdfast.guards.settings import Kept
from holdfast.kernel.loops import new_lock
from holdfast.kernel.names import check_int


class Budget(metaclass=Kept):
    """At most `retries` + `ratio` · calls retries, whatever fails: each call earns a part of a retry, up to `retries` in store.

    A retry after a timeout costs two: such calls hold the other side up the longest. Share one budget between all guards
    of one dependency.
    """

    __slots__ = ("_lock", "_ratio", "_retries", "_tokens", "settings")

    def __init__(self, *, retries: int = 100, ratio: float = 0.1) -> None:
        self._retries = check_int("retries", retries, 0, 1_000_000)
        self._ratio = check_ratio("ratio", ratio, low=0.0)
        self._tokens = float(self._retries)
        self._lock = new_lock()

    @property
    def tokens(self) -> float:
        """How many retries are in store."""
        return self._tokens

    def reset(self) -> None:
        """As at the beginning."""
        with self._lock:
            self._tokens = float(self._retries)

    def earn(self) -> None:
        """A first attempt begins."""
        if self._tokens < self._retries:
            with self._lock:
                self._tokens = min(self._retries, self._tokens + self._ratio)

    def spend(self, retries: int = 1) -> bool:
        """Whether there may be another attempt; then it is paid for."""
        with self._lock:
            if self._tokens < retries:
                return False
            self._tokens -= retries
            return True
