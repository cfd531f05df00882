"""The pace of a limiter: how far apart its calls are, at first, at most and at least, how many may come at once, and how it adapts."""

from __future__ import annotations

from typing import Any

from holdfast.guards.backoff import Backoff
from holdfast.guards.checks import check_number, check_part
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show

_FASTEST, _SLOWEST = 1e6, 1e-5  # calls a second
INCREASE, DECREASE = (
    0.1,
    0.5,
)  # shares by which an answer shortens the interval, and being throttled lowers the rate
PAUSE_JITTER = 0.2  # a share of the pause
LONGEST = 86_400.0  # seconds of a pause


class Pace:
    """The intervals that all keys of one limiter share: where they begin, and how far they may move."""

    __slots__ = ("burst", "fastest", "jitter", "longer", "pause", "shorter", "slowest", "start")

    def __init__(
        self,
        rate: float,
        *,
        burst: float | None,
        floor: float | None,
        ceiling: float | None,
        increase: float | None,
        decrease: float | None,
        pause_jitter: float,
        pause: Backoff | None = None,
    ) -> None:
        """From calls a second, and shares."""
        if floor is None and ceiling is None:
            _refuse_unused(increase=increase, decrease=decrease)
        self.start = 1 / rate
        self.fastest = 1 / _check_bound("ceiling", ceiling, rate, low=rate, high=_FASTEST)
        self.slowest = 1 / _check_bound("floor", floor, rate, low=_SLOWEST, high=rate)
        self.burst = check_number("burst", max(1.0, rate) if burst is None else burst, 1.0, 1e9)
        # What an answer, and being throttled, do to the interval.
        self.shorter = 1 - _share("increase", INCREASE if increase is None else increase, 0.001, 0.9)
        self.longer = 1 / (1 - _share("decrease", DECREASE if decrease is None else decrease, 0.01, 0.99))
        self.jitter = _share("pause_jitter", pause_jitter, 0.0, 1.0)
        self.pause = _check_pause(pause)  # after being throttled by who does not say for how long


def _check_pause(pause: Any) -> Backoff | None:
    check_part("pause", pause, Backoff, "Backoff(first=300, ceiling=2400)")
    if pause is None:
        return None
    check_number("The first of pause", pause.first, 0.001, LONGEST)
    check_number("The ceiling of pause", pause.ceiling, 0.001, LONGEST)
    return Backoff(first=pause.first, ceiling=pause.ceiling)


def check_rate(rate: float) -> float:
    return check_number("rate", rate, _SLOWEST, _FASTEST)


def _refuse_unused(**given: float | None) -> None:
    for option, value in given.items():
        if value is not None:
            raise UsageError(
                f"{option}={show(value)} has no meaning for a rate that never changes. Give the limiter floor= or ceiling=."
            )


def _share(option: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 < value <= 100:
        raise UsageError(
            f"{option} is a share of the whole, not {show(value)}. For {value:g} % write {value / 100:g}."
        )
    return check_number(option, value, low, high)


def _check_bound(kind: str, value: float | None, rate: float, *, low: float, high: float) -> float:
    if value is None:
        return rate
    checked = check_number(kind, value, _SLOWEST, _FASTEST)
    if not low <= checked <= high:
        side = "at least" if kind == "ceiling" else "at most"
        raise UsageError(f"{kind}={value:g} must be {side} rate={rate:g}, where the limiter begins.")
    return checked
