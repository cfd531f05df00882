"""Counters, gauges and histograms that are right over all processes of a worker, or of an API that shares a folder."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.observe.metrics.ledger import ledger

_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_MOST = 1_000  # series of one metric in one process; what comes then has the labels OTHER
OTHER = "(other)"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)

DECLARED: dict[str, Metric] = {}


class Metric:
    """A name, a sentence, and the names of its labels. Declare it once, where the module is loaded."""

    kind = ""

    def __init__(self, name: str, about: str, labels: Sequence[str] = ()) -> None:
        if not _NAME.fullmatch(str(name)):
            raise UsageError(f"A metric is named such as 'shop_orders_total', not {show(name)}.")
        self.name, self.about, self.labels = name, about, _labels(labels)
        self._turn, self._places = -1, dict[tuple[str, ...], int]()
        if name in DECLARED and type(DECLARED[name]) is not type(self):
            raise UsageError(f"The metric {name} is declared twice, and as another kind.")
        DECLARED[name] = self

    def place(self, values: tuple[str, ...], kind: str, *more: str) -> int:
        """Where the number of these labels is."""
        if self._turn != ledger.turn:
            self._turn, self._places = ledger.turn, {}
        key = (kind, *more, *values)
        found = self._places.get(key)
        if found is None:
            if len(values) != len(self.labels):
                raise UsageError(f"{self.name} has the labels {self.labels}, and was given {values}.")
            if len(self._places) >= _MOST and values != (others := (OTHER,) * len(values)):
                return self.place(others, kind, *more)
            found = self._places[key] = ledger.cells.place((kind, self.name, *more, *map(str, values)))
        return found


class Counter(Metric):
    """`ORDERS = Counter("shop_orders_total", "Orders that were placed.", ("country",))`, and then `ORDERS.add("ch")`."""

    kind = "counter"

    def __init__(self, name: str, about: str, labels: Sequence[str] = ()) -> None:
        if not str(name).endswith("_total"):
            raise UsageError(f"The name of a counter ends with _total; {show(name)} does not.")
        super().__init__(name, about, labels)

    def add(self, *values: str, by: float = 1) -> None:
        if not by >= 0:
            raise UsageError(f"A counter never falls: {self.name} was given by={show(by)}.")
        ledger.cells.add(self.place(values, "c"), by)


class Gauge(Metric):
    """What is so now: of several processes the sum, and of one that is gone nothing is left."""

    kind = "gauge"

    def set(self, *values: str, to: float) -> None:
        ledger.cells.set(self.place(values, "g"), to)


class Histogram(Metric):
    """How long things took, or how large they are: `TOOK.observe("card", value=0.2)`."""

    kind = "histogram"

    def __init__(
        self, name: str, about: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = SECONDS
    ) -> None:
        super().__init__(name, about, labels)
        self.buckets = tuple(sorted({float(each) for each in buckets}))
        self.ends = (*(f"{each:g}" for each in self.buckets), "+Inf")

    def observe(self, *values: str, value: float) -> None:
        cells = ledger.cells
        for place, number in self.added(values, value):
            cells.add(place, number)

    def added(self, values: tuple[str, ...], value: float) -> tuple[tuple[int, float], tuple[int, float]]:
        """What is to be added where."""
        end = self.ends[bisect_left(self.buckets, value)]
        return (self.place(values, "b", end), 1), (self.place(values, "s"), max(value, 0.0))


def _labels(labels: Sequence[str]) -> tuple[str, ...]:
    found = tuple(labels)
    for label in found:
        if isinstance(labels, str) or not _NAME.fullmatch(str(label)) or label == "le":
            raise UsageError(f"Labels are a list of names, and none is 'le'; not {show(labels)}.")
    return found
