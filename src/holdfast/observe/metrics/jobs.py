"""Counts ends of runs: the number of each outcome with the journal, so that a killed process loses none and counts none twice."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from holdfast.jobs.counting import Timed
from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze, Unknown
from holdfast.kernel.telemetry import note
from holdfast.observe.metrics.catalog import JOB_RUN, JOB_RUNS, JOB_WAIT
from holdfast.observe.metrics.journal import ROOM, Block
from holdfast.observe.metrics.kinds import SECONDS, Histogram
from holdfast.observe.metrics.ledger import ledger
from holdfast.store.records import Finish

OUTCOMES: dict[type[Outcome], str] = {
    Done: "succeeded",
    Retry: "failed",
    Snooze: "snoozed",
    Cancel: "cancelled",
    Dead: "dead",
    Unknown: "unknown",
}
_BUCKET = partial(bisect_left, SECONDS)  # which a time falls into
_LONGEST_LINE = 128  # bytes
_LINES = ROOM // _LONGEST_LINE


class JobCounts:
    """What workers tell of each end, as `jobs.counting` has it."""

    def __init__(self) -> None:
        self._turn = -1
        self._series: dict[tuple[str, str], Series] = {}

    def flight(self) -> CountedFlight:
        return CountedFlight(self)

    def of(self, queue: str, task: str) -> Series:
        """The numbers of one task in one queue."""
        if self._turn != ledger.turn:
            self._turn, self._series = ledger.turn, {}
        found = self._series.get((queue, task))
        if found is None:
            found = self._series[queue, task] = Series(queue, task)
        return found


class Series:
    """`ends` has, of each kind of outcome, the place of its number, and how it is written down in the journal."""

    __slots__ = ("_labels", "ends", "run", "wait")

    def __init__(self, queue: str, task: str) -> None:
        self._labels = (queue, task)
        self.ends = {kind: self._end(name) for kind, name in OUTCOMES.items()}
        self.wait, self.run = Times(JOB_WAIT, self._labels), Times(JOB_RUN, self._labels)

    def _end(self, outcome: str) -> tuple[int, str]:
        place = JOB_RUNS.place((*self._labels, outcome), "c")
        return place, f"{outcome} {place}"


class Times:
    """One histogram of one series: a list of places instead of a look-up for each run."""

    __slots__ = ("_histogram", "_labels", "places", "sum")

    def __init__(self, histogram: Histogram, labels: tuple[str, ...]) -> None:
        self._histogram, self._labels = histogram, labels
        self.places = [-1] * (len(SECONDS) + 1)
        self.sum = histogram.place(labels, "s")

    def add(self, numbers: memoryview[float], times: Sequence[float]) -> None:
        """All of a batch at once: each number is written once."""
        for bucket, count in Counter(map(_BUCKET, times)).items():
            numbers[self.places[bucket] if self.places[bucket] >= 0 else self.new(bucket)] += count
        numbers[self.sum] += sum(times)

    def new(self, bucket: int) -> int:
        """The place of a bucket that nothing has fallen into yet."""
        place = self.places[bucket] = self._histogram.place(self._labels, "b", self._histogram.ends[bucket])
        return place


class CountedFlight:
    """Ends that are on their way together."""

    __slots__ = ("_blocks", "_counts", "_turn")

    def __init__(self, counts: JobCounts) -> None:
        self._counts, self._turn = counts, ledger.turn
        self._blocks: list[Block] = []

    def sent(self, finishes: Sequence[Finish]) -> None:
        try:
            self._sent(finishes)
        except Exception as error:  # noqa: BLE001  who counts must not stand in the way of the work
            note("metrics.failed", error=repr(error))

    def ended(
        self,
        finishes: Sequence[Finish],
        accepted: Sequence[bool | None],
        runs: Mapping[tuple[str, int], Timed],
    ) -> None:
        try:
            self._ended(finishes, accepted, runs)
        except Exception as error:  # noqa: BLE001  who counts must not stand in the way of the work
            note("metrics.failed", error=repr(error))

    def _sent(self, finishes: Sequence[Finish]) -> None:
        self._land()
        self._turn, of = ledger.turn, self._counts.of
        if ledger.folder is None:
            return  # the numbers die with this process: nobody would read what it has written down
        task = queue = ""  # most of a batch have the same
        for first in range(0, len(finishes), _LINES):
            if (block := ledger.journal.take()) is None:
                return
            lines = []
            for finish in finishes[first : first + _LINES]:
                claim = finish.claim
                if claim.task != task or claim.queue != queue:
                    task, queue = claim.task, claim.queue
                    ends = of(queue, task).ends
                end = ends[type(finish.outcome)][1]
                lines.append(f"{claim.job_id} {claim.token} {claim.interruptions} {end}")
            self._blocks.append(block)
            block.sent("\n".join(lines).encode())

    def _ended(
        self,
        finishes: Sequence[Finish],
        accepted: Sequence[bool | None],
        runs: Mapping[tuple[str, int], Timed],
    ) -> None:
        cells, blocks = ledger.cells, self._blocks if self._turn == ledger.turn else []
        with_block = len(blocks) * _LINES
        for first in range(0, len(finishes), _LINES):
            part = slice(first, first + _LINES)
            counted = self._counted(finishes[part], accepted[part], runs)
            with cells.lock:
                if first < with_block:
                    blocks[first // _LINES].count([*counted.items()])
                else:
                    for place, number in counted.items():
                        cells.numbers[place] += number
        self._land()

    def _counted(
        self,
        finishes: Sequence[Finish],
        accepted: Sequence[bool | None],
        runs: Mapping[tuple[str, int], Timed],
    ) -> dict[int, float]:
        """How many of each outcome; their times are added at once."""
        counted: dict[int, float] = {}
        times: dict[Series, tuple[list[float], list[float]]] = {}
        of, task, queue = self._counts.of, "", ""
        for finish, ok in zip(finishes, accepted, strict=True):
            if not ok:
                continue
            claim = finish.claim
            if claim.task != task or claim.queue != queue:
                task, queue = claim.task, claim.queue
                series = of(queue, task)
                ends, (ran, waited) = series.ends, times.setdefault(series, ([], []))
            place = ends[type(finish.outcome)][0]
            counted[place] = counted.get(place, 0.0) + 1.0
            timed = runs.get((claim.job_id, claim.token))
            if timed is not None and (took := timed.took) is not None:
                ran.append(took)
                waited.append(timed.waited)
        numbers = ledger.cells.numbers
        for series, (ran, waited) in times.items():
            series.run.add(numbers, ran)
            series.wait.add(numbers, waited)
        return counted

    def _land(self) -> None:
        if self._blocks:
            blocks, self._blocks = self._blocks, []
            if self._turn == ledger.turn:
                for block in blocks:
                    ledger.journal.give_back(block)
