"""When a breaker opens: a share of failures or slow calls in a window, so many failures in a row, or so many within seconds."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from holdfast.guards.checks import check_ratio
from holdfast.guards.windows import CountWindow, TimeWindow, Totals, Window
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_seconds
from holdfast.kernel.show import show


class Trip(Protocol):
    """Counts results and says when it is enough. Not safe for threads: the breaker has a lock."""

    def add(self, now: float, failed: bool, slow: bool, /) -> bool:
        """Count one result while closed; whether the breaker opens."""

    def condemns(self, failures: int, slow: int, probes: int, /) -> bool:
        """Whether so many failed and slow ones, of `probes` when half-open, are enough to open it again."""

    def totals(self, now: float, /) -> Totals: ...
    def clear(self) -> None: ...


class InRow:
    """So many failures, one after the other. A slow call is a failure."""

    __slots__ = ("_failures", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._failures = 0

    def clear(self) -> None:
        self._failures = 0

    def add(self, now: float, failed: bool, slow: bool, /) -> bool:  # noqa: ARG002  a row has no time
        self._failures = self._failures + 1 if failed or slow else 0
        return self._failures >= self._limit

    def condemns(self, failures: int, slow: int, probes: int, /) -> bool:  # noqa: ARG002  one is enough
        return failures + slow > 0

    def totals(self, now: float, /) -> Totals:  # noqa: ARG002  as above
        return Totals(self._failures, self._failures, 0)


class Within:
    """So many failures within so many seconds, whatever succeeds between. A slow call is a failure."""

    __slots__ = ("_failures", "_limit", "_seconds")

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit, self._seconds = limit, seconds
        self._failures: deque[float] = deque(maxlen=limit)  # when the last so many were

    def clear(self) -> None:
        self._failures.clear()

    def add(self, now: float, failed: bool, slow: bool, /) -> bool:
        if not (failed or slow):
            return False
        self._failures.append(now)
        return len(self._failures) == self._limit and now - self._failures[0] < self._seconds

    def condemns(self, failures: int, slow: int, probes: int, /) -> bool:  # noqa: ARG002  one is enough
        return failures + slow > 0

    def totals(self, now: float, /) -> Totals:
        failures = sum(now - each < self._seconds for each in self._failures)
        return Totals(failures, failures, 0)


class Rates:
    """The share of failures or of slow calls in a window, once it has `minimum` calls."""

    __slots__ = ("_minimum", "_ratio", "_slow_ratio", "_window")

    def __init__(self, window: Window, minimum: int, failure_ratio: float, slow_ratio: float) -> None:
        self._window, self._minimum = window, minimum
        self._ratio, self._slow_ratio = failure_ratio, slow_ratio

    def clear(self) -> None:
        self._window.clear()

    def add(self, now: float, failed: bool, slow: bool, /) -> bool:
        self._window.add(now, failed, slow)
        calls, failures, slow_calls = self._window.totals(now)
        return calls >= self._minimum and self.condemns(failures, slow_calls, calls)

    def condemns(self, failures: int, slow: int, probes: int, /) -> bool:
        return failures / probes >= self._ratio or slow / probes >= self._slow_ratio

    def totals(self, now: float, /) -> Totals:
        return self._window.totals(now)


def trip_of(
    *,
    failures: int | None,
    failure_ratio: float | None,
    minimum: int | None,
    window: float | None,
    calls: int | None,
    slow_ratio: float | None,
) -> Trip:
    """As the options of a breaker say; None is what was not given."""
    if failures is None:
        return _rates(failure_ratio, minimum, window, calls, slow_ratio)
    check_int("failures", failures, 1, 1_000_000)
    others = {"failure_ratio": failure_ratio, "minimum": minimum, "calls": calls, "slow_ratio": slow_ratio}
    for name, value in others.items():
        if value is not None:
            raise UsageError(
                f"failures={failures} counts failures, in a row or within window= seconds; {name}={show(value)} belongs to "
                "the form with a share of the calls. Give one of the two."
            )
    return (
        InRow(failures) if window is None else Within(failures, check_seconds("window", window, 0.01, 86_400))
    )


def _rates(
    failure_ratio: float | None,
    minimum: int | None,
    window: float | None,
    calls: int | None,
    slow_ratio: float | None,
) -> Trip:
    if calls is not None and window is not None:
        raise UsageError(
            f"calls={show(calls)} and window={show(window)} are two kinds of window, of calls and of seconds. Give one."
        )
    least = check_int("minimum", 20 if minimum is None else minimum, 1, 1_000_000)
    if calls is not None and check_int("calls", calls, 1, 1_000_000) < least:
        raise UsageError(
            f"minimum={least} is never reached with calls={calls}. Lower minimum, or raise calls."
        )
    seconds = check_seconds("window", 60.0 if window is None else window, 0.01, 86_400)
    return Rates(
        TimeWindow(seconds) if calls is None else CountWindow(calls),
        least,
        check_ratio("failure_ratio", 0.5 if failure_ratio is None else failure_ratio),
        check_ratio("slow_ratio", 0.5 if slow_ratio is None else slow_ratio),
    )
