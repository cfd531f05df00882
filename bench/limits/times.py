"""The middle and the worst of many times."""

from __future__ import annotations

from collections.abc import Sequence


def middle_and_worst(times: Sequence[float]) -> dict[str, float]:
    """The median, and the time that one of a hundred exceeds."""
    ordered = sorted(times)
    return {
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
    }
