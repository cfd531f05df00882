"""How many jobs of a queue to hold: its slots, and beyond them only what will start within a moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name
from holdfast.kernel.show import show

_SOON = 0.1  # seconds within which a job that was taken ahead should start
_MOST = 500  # jobs taken ahead of their slots, at most
_WEIGHT = 0.05  # of the newest run in the average


class Pace:
    """A queue of quick jobs is worth a large batch; a slow one must leave its jobs to workers with free slots."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._average: float | None = None  # seconds of one run

    def took(self, seconds: float) -> None:
        if self._average is None:
            self._average = seconds
        else:
            self._average += _WEIGHT * (seconds - self._average)

    def slow_down(self, seconds: float) -> None:
        """A run takes at least this long, although none of them has ended yet."""
        self._average = max(self._average or 0.0, seconds)

    @property
    def ahead(self) -> int:
        """How many may wait here for a slot."""
        if self._average is None:
            return 0  # nothing is known yet
        return min(_MOST, int(self._slots * _SOON / max(self._average, 1e-6)))

    def wants(self, held: int) -> int:
        return min(_MOST, self._slots + self.ahead - held)


def check_slots(queues: Any) -> dict[str, int]:
    """Slots for each queue, at least one."""
    if not isinstance(queues, Mapping):
        raise UsageError(
            f'queues is a dict of slots by queue, such as {{"default": 10}}; not {show(queues)}.'
        )
    if not queues:
        raise UsageError('A worker serves at least one queue, such as {"default": 10}.')
    return {
        check_name("queue", queue): check_int(f"slots of {queue!r}", slots, 1, 100_000)
        for queue, slots in queues.items()
    }
