"""Where claims begin to look. While a forgotten transaction holds a snapshot, the rows of jobs that are over stay in the
index before the first ready one, and every claim would wade through all of them.

So when there are many dead rows, a claim begins at the mark that the last one left: a priority, and the lowest rank that
was taken there. A mark may hide jobs: of other priorities, released to their old place, or committed late. Therefore
every now and then one claim looks from the top, as often as keeps that to a tenth of the time; and at once when a mark
gave less than was wanted, although the last look from the top gave all that it was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from holdfast.kernel.clock import monotonic
from holdfast.store.records import Claim
from holdfast.store.statements import Procedure, Statement

MANY = 20_000  # dead rows from which on marks are used
_EVERY = 2.0  # seconds between two looks at how many there are
_SHARE = 10  # a claim from the top that took 0.1 s is not repeated for 1 s
_LONGEST = 5.0  # seconds of rest at most


class Marks(msgspec.Struct, frozen=True):
    """What is wanted and where to begin, as columns. Not `used`: from the top, whatever the marks say."""

    queues: list[str]
    numbers: list[int]
    priorities: list[int]
    lows: list[int]
    used: bool


class LowWater:
    """The marks of one process."""

    def __init__(self) -> None:
        self._marks: dict[str, tuple[int, int]] = {}  # by queue
        # By queue: whether the last look from the top gave all that was wanted.
        self._had_all: dict[str, bool] = {}
        self._many_dead = False
        self._looked = float("-inf")  # on the monotonic clock
        self._rested: dict[str, float] = {}  # by queue: from then on one is claimed from the top again

    def wants_to_know(self) -> bool:
        """Whether it is time to count dead rows again."""
        if monotonic() < self._looked + _EVERY:
            return False
        self._looked = monotonic()
        return True

    def tell(self, dead: int) -> None:
        self._many_dead = dead >= MANY

    def marks(self, wants: Mapping[str, int]) -> Marks:
        if not self._many_dead or self._is_rested(wants):
            return from_the_top(wants)
        known = [(queue, number) for queue, number in wants.items() if number > 0 and queue in self._marks]
        places = [self._marks[queue] for queue, _ in known]
        return Marks(
            [queue for queue, _ in known],
            [number for _, number in known],
            [priority for priority, _ in places],
            [low for _, low in places],
            used=True,
        )

    def learn(self, rows: Sequence[Sequence[Any]], marks: Marks) -> None:
        """Of each queue: the lowest priority that was taken, and its lowest rank; and whether there may be more."""
        if not self._many_dead:
            return
        lowest: dict[str, tuple[int, int]] = {}
        for row in rows:
            queue, priority, rank = row[4], row[-2], row[-1]
            lowest[queue] = min(lowest.get(queue, (priority, rank)), (priority, rank))
        self._marks |= lowest
        if not marks.used:
            taken = Counter(row[4] for row in rows)
            self._had_all |= {
                queue: taken[queue] >= number
                for queue, number in zip(marks.queues, marks.numbers, strict=True)
            }

    def hidden(self, wants: Mapping[str, int], claims: Sequence[Claim]) -> dict[str, int]:
        """How many a mark may have hidden, of each queue. After a look from the top: none."""
        if not self._many_dead:
            return {}
        taken = Counter(claim.queue for claim in claims)
        short = {queue: number - taken[queue] for queue, number in wants.items() if number > taken[queue]}
        return {queue: number for queue, number in short.items() if self._had_all.get(queue, False)}

    def _is_rested(self, wants: Mapping[str, int]) -> bool:
        now = monotonic()
        return any(now >= self._rested.get(queue, now) for queue, number in wants.items() if number > 0)

    @contextmanager
    def timed(self, wants: Mapping[str, int], *, top: bool = False) -> Generator[None, None, None]:
        """Around one claim. One from the top is a reason to rest for a while, also when it failed."""
        began, from_top = monotonic(), top or self._is_rested(wants)
        try:
            yield
        finally:
            if self._many_dead and from_top:
                now = monotonic()
                rest = min(_SHARE * (now - began), _LONGEST)
                self._rested |= {queue: now + rest for queue, number in wants.items() if number > 0}


def from_the_top(wants: Mapping[str, int]) -> Marks:
    wanted = {queue: number for queue, number in wants.items() if number > 0}
    none = [0] * len(wanted)
    return Marks(list(wanted), list(wanted.values()), none, none, used=False)


def count_dead() -> Procedure[int]:
    """What the server's statistics say; exact enough, and free."""
    sql = "SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = 'holdfast.job'::regclass"
    rows = yield Statement(sql)
    return int(rows[0][0]) if rows else 0
