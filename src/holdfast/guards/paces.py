"""The pace of a limiter: how far apart its calls are, at first, at most and at least, and how many may come at once."""

from __future__ import annotations

from holdfast.guards.checks import check_number
from holdfast.kernel.errors import UsageError

_FASTEST, _SLOWEST = 1e6, 1e-5  # calls a second


class Pace:
    """The intervals that all keys of one limiter share: where they begin, and how far they may move."""

    __slots__ = ("burst", "fastest", "slowest", "start")

    def __init__(self, *, start: float, fastest: float, slowest: float, burst: float) -> None:
        self.start, self.fastest, self.slowest, self.burst = start, fastest, slowest, burst

    @classmethod
    def of(cls, rate: float, *, burst: float | None, floor: float | None, ceiling: float | None) -> Pace:
        """From calls a second."""
        return cls(
            start=1 / rate,
            fastest=1 / _check_bound("ceiling", ceiling, rate, low=rate, high=_FASTEST),
            slowest=1 / _check_bound("floor", floor, rate, low=_SLOWEST, high=rate),
            burst=check_number("burst", max(1.0, rate) if burst is None else burst, 1.0, 1e9),
        )


def check_rate(rate: float) -> float:
    return check_number("rate", rate, _SLOWEST, _FASTEST)


def _check_bound(kind: str, value: float | None, rate: float, *, low: float, high: float) -> float:
    if value is None:
        return rate
    checked = check_number(kind, value, _SLOWEST, _FASTEST)
    if not low <= checked <= high:
        side = "at least" if kind == "ceiling" else "at most"
        raise UsageError(f"{kind}={value:g} must be {side} rate={rate:g}, where the limiter begins.")
    return checked
