"""What a limiter says of being asked for less: a note of each, for metrics, and now and then one for people."""

from __future__ import annotations

from holdfast.guards.ports import LimiterRecord
from holdfast.kernel.clock import monotonic
from holdfast.kernel.telemetry import note

_EVERY = 10.0  # seconds: one line in them, whatever the number of keys
THROTTLED = "the other side says that these are too many calls"
SPENT = "the other side says that nothing is left of its quota"


class News:
    """Of one limiter in one process. Without a lock: a race lets one line more through."""

    __slots__ = ("_said_at", "_unsaid")

    def __init__(self) -> None:
        self._said_at = -_EVERY
        self._unsaid = 0

    def slowed(self, limiter: str, key: str, record: LimiterRecord, *, before: float, full: float) -> None:
        """`before` and `full`: calls a second, until now and at most."""
        note(
            "limiter.slowed",
            limiter=limiter,
            key=key,
            rate=record.rate,
            full=full,
            paused_for=record.paused_for,
        )
        self._say(limiter, key, THROTTLED, record, full, is_slower=record.rate < before)

    def rested(self, limiter: str, key: str, record: LimiterRecord, *, full: float) -> None:
        note("limiter.rested", limiter=limiter, key=key, paused_for=record.paused_for)
        self._say(limiter, key, SPENT, record, full, is_slower=False)

    def _say(
        self, limiter: str, key: str, why: str, record: LimiterRecord, full: float, *, is_slower: bool
    ) -> None:
        now = monotonic()
        if 0 <= now - self._said_at < _EVERY:
            self._unsaid += 1
            return
        self._said_at, more, self._unsaid = now, self._unsaid, 0
        note(
            "limiter.held_up",
            limiter=limiter,
            key=key,
            why=why,
            paused_for=_rounded(record.paused_for),
            slowed_to=_rounded(record.rate) if is_slower else None,
            full=_rounded(full) if is_slower else None,
            more=more,
        )


def _rounded(number: float) -> float:
    """Nobody reads more digits of it."""
    return float(f"{number:.3g}")
