"""On what terms values are kept and loaded: checked when a function is declared."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_seconds
from holdfast.kernel.randomness import jittered

JITTER = 0.1  # of `fresh`: values that were loaded together do not become stale together
_REST = 5.0  # seconds at most between two refreshes of which the first has failed


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """All in seconds. `fresh` and `stale` are counted from the moment that the value was written."""

    fresh: float
    stale: float
    lease: float  # a loader that gives no sign of life for so long is taken for dead
    wait: float  # for a load of another process; then this one loads it itself
    timeout: float | None  # for one load

    def fresh_for(self) -> float:
        return min(jittered(self.fresh, JITTER), self.stale)

    def rest(self) -> float:
        """How long after a failed load nobody refreshes, while an old value is served."""
        return jittered(min(_REST, max(0.1, self.fresh / 10)))


def terms(*, fresh: Any, stale: Any, lease: Any, wait: Any, timeout: Any) -> Terms:
    made = Terms(
        fresh=check_seconds("fresh", fresh),
        stale=check_seconds("stale", stale, 0.001),
        lease=check_seconds("lease", lease, 0.1, 86_400),
        wait=check_seconds("wait", wait),
        timeout=None if timeout is None else check_seconds("timeout", timeout, 0.001),
    )
    if made.stale < made.fresh:
        raise UsageError(
            f"stale={stale!r} is less than fresh={fresh!r}. Both are counted from the moment that a value is written: "
            "it is served as it is for `fresh` seconds, and at all for `stale` seconds."
        )
    return made
