"""Faults by switch: what goes wrong, at which endpoint, how often, for whom. Chance comes from a seed."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any


@dataclass
class Fault:
    """One switch. `times` is how often it still happens; None: until it is taken away."""

    endpoint: str  # `*` is every one
    kind: str
    share: float = 1.0  # of the calls, from 0 to 1
    times: int | None = None
    seconds: float = 1.0  # for kinds that last
    who: str | None = None  # only for this user

    def fits(self, endpoint: str, who: str | None) -> bool:
        return self.endpoint in ("*", endpoint) and self.who in (None, who) and self.times != 0


class Faults:
    """The switches of one simulator. The first that fits a call, and that chance lets happen, happens."""

    def __init__(self, kinds: Collection[str], seed: int = 0) -> None:
        self.kinds = sorted(kinds)
        self._chance = random.Random(seed)
        self._lock = Lock()
        self._faults: list[Fault] = []
        self.happened: dict[str, int] = {}

    def put(
        self,
        endpoint: str,
        kind: str,
        *,
        share: float = 1.0,
        times: int | None = None,
        seconds: float = 1.0,
        who: str | None = None,
    ) -> None:
        if kind not in self.kinds:
            raise ValueError(f"no fault is called {kind!r}; there are: {', '.join(self.kinds)}")
        if not 0 <= share <= 1:
            raise ValueError(f"share is from 0 to 1, not {share}")
        with self._lock:
            self._faults.append(Fault(endpoint, kind, share, times, seconds, who))

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()

    def next(self, endpoint: str, who: str | None = None) -> Fault | None:
        """What goes wrong with this call."""
        with self._lock:
            for fault in self._faults:
                if fault.fits(endpoint, who) and self._chance.random() < fault.share:
                    if fault.times is not None:
                        fault.times -= 1
                    self.happened[fault.kind] = self.happened.get(fault.kind, 0) + 1
                    return fault
        return None

    def shown(self) -> list[dict[str, Any]]:
        """Without those that have happened as often as they should."""
        with self._lock:
            return [asdict(fault) for fault in self._faults if fault.times != 0]
