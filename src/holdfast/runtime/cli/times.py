"""Moments and durations as people read them: local time, and how long ago."""

from __future__ import annotations

from holdfast.kernel.clock import moment
from holdfast.runtime.cli.table import Moment

_UNITS = (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0))


def span(seconds: float) -> str:
    """`3 min`: the largest unit that fits twice, so that `90 s` is not told as `1 min`."""
    for name, size in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(0.0, seconds):.1f} s" if seconds > 0.05 else "0 s"


def ago(then: float, now: float) -> str:
    return f"{span(now - then)} ago" if then <= now else f"in {span(then - now)}"


def local(then: float) -> str:
    """ISO, with the offset of the local zone."""
    return moment(then).astimezone().isoformat(timespec="seconds")


def told(then: float | None, now: float) -> str | None:
    """Both: `2026-11-15T10:08:18+01:00 (3 min ago)`."""
    return None if then is None else f"{local(then)} ({ago(then, now)})"


def cell(then: float | None, now: float) -> Moment | None:
    """The same in a table; how long ago where there is little room."""
    return None if then is None else Moment(f"{local(then)} ({ago(then, now)})", ago(then, now))
