"""Whether a place may be asked: after a failure not for a while, and then by one alone, who finds out for all."""

from __future__ import annotations

from holdfast.kernel.clock import monotonic
from holdfast.kernel.randomness import jittered

PATIENCE = 2.0  # seconds for one question
REST = 1.0  # seconds for which a place that has failed is not asked


class Rest:
    """Of one event loop: a place that does not answer there may well do so on another."""

    def __init__(self) -> None:
        self._until = 0.0
        self._is_doubted = False

    def is_over(self) -> bool:
        """Whether to ask now. When nobody knows yet whether there will be an answer, the others do not wait for it."""
        now = monotonic()
        if now < self._until:
            return False
        if self._is_doubted:
            self._until = now + PATIENCE
        return True

    def begin(self) -> None:
        """There was no answer."""
        self._until, self._is_doubted = monotonic() + jittered(REST), True

    def end(self) -> None:
        """There was one."""
        self._until, self._is_doubted = 0.0, False
