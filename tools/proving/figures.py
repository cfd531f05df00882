"""Figures of a proof: percentiles, a table, a last line, and whether all that must be so is so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Findings:
    """`rows` are what, ours, and what it stands beside. Each of `wrong` makes the exit code 1."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    line: dict[str, object] = field(default_factory=dict)

    def add(self, what: str, ours: object, beside: str = "") -> None:
        self.rows.append((what, str(ours), beside))

    def must(self, what: str, wrong: Sequence[object], beside: str = "0") -> None:
        """None of these may be there."""
        self.add(what, len(wrong), beside)
        self.wrong += [f"{what}: {each}" for each in wrong]

    def shown(self) -> str:
        wide = [max(len(row[column]) for row in self.rows) for column in range(3)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip()
            for row in self.rows
        ]
        return "\n".join(lines)

    def last_line(self) -> str:
        verdict = "KEPT" if not self.wrong else "BROKEN"
        return f"{verdict}: " + ", ".join(f"{name} {value}" for name, value in self.line.items())


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest rank; of none it is 0."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def of_buckets(buckets: dict[float, float], share: float) -> float:
    """A percentile of a histogram whose buckets are cumulative, as Prometheus has them; within a bucket by its share."""
    total = max(buckets.values(), default=0.0)
    below, lower = 0.0, 0.0
    for end in sorted(buckets):
        if buckets[end] >= share * total and buckets[end] > below:
            if end == float("inf"):
                return lower
            return lower + (end - lower) * (share * total - below) / (buckets[end] - below)
        below, lower = buckets[end], end if end != float("inf") else lower
    return lower


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def span(values: Sequence[float]) -> str:
    """The median and the longest."""
    return f"{percentile(values, 0.5):.1f} s, {max(values):.1f} s of {len(values)}" if values else "none"
