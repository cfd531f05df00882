"""Options of guards, checked when they are built."""

from __future__ import annotations

import math
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show


def check_number(kind: str, value: Any, low: float, high: float = 1e9) -> float:
    """A finite number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{kind} must be a number, not {show(value)} ({type(value).__name__}).")
    if not low <= value <= high or not math.isfinite(value):
        raise UsageError(f"{kind} must be from {low:g} to {high:g}, not {show(value)}.")
    return float(value)


def check_ratio(kind: str, value: Any, low: float = 1e-6) -> float:
    """A share of the whole: 0.5 for half of it."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 < value <= 100:
        raise UsageError(
            f"{kind} is a share from 0 to 1, not {show(value)}. For {value:g} % write {value / 100:g}."
        )
    return check_number(kind, value, low, 1.0)


def check_callable(kind: str, value: Any) -> None:
    if not callable(value):
        raise UsageError(f"{kind} is a function, not {show(value)} ({type(value).__name__}).")


def check_part(option: str, value: Any, kind: type, example: str) -> None:
    """A part that was given is one of its kind."""
    if value is not None and not isinstance(value, kind):
        raise UsageError(
            f"{option} is a {kind.__name__}, such as {example}; not {show(value)} ({type(value).__name__})."
        )
