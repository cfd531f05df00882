"""From times of calls to figures: what a guard adds to the bare call that was timed beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

from bench.guards.systems import MEMORY
from bench.schema.model import Figure
from bench.systems import System

_BARE = ("bare", "bare_waiting")


class Answers:
    """Of all rounds. The figure is their median."""

    def __init__(self) -> None:
        self._added: dict[tuple[System, str], list[float]] = defaultdict(list)
        self._bare: dict[str, list[float]] = defaultdict(list)

    def add(self, system: System, answer: dict[str, Any]) -> None:
        for kind, found in answer.items():
            bare = answer["bare_waiting" if kind.endswith("_waiting") else "bare"]
            for part in ("p50", "p99"):
                if kind in _BARE:
                    self._bare[f"guard_{kind}_{part}"].append(found[part])
                else:
                    # The p99 too is told against the usual bare call: it is what a caller may have to wait for.
                    self._added[system, f"guard_{kind}_{part}"].append(found[part] - bare["p50"])

    def figures(self, versions: dict[str | None, str], load: float) -> list[Figure]:
        return [*self._of_bare_calls(load), *self._of_guards(versions, load)]

    def _of_bare_calls(self, load: float) -> Iterator[Figure]:
        for measure, values in self._bare.items():
            yield Figure("limit", MEMORY, measure, round(median(values), 2), "µs", config={"load": load})

    def _of_guards(self, versions: dict[str | None, str], load: float) -> Iterator[Figure]:
        for (system, measure), values in self._added.items():
            config: dict[str, object] = {"parts": system.config, "load": load}
            if version := versions.get(system.package):
                config["version"] = version
            config["values"] = [round(value, 2) for value in values]
            yield Figure(system.name, MEMORY, measure, round(median(values), 2), "µs", config=config)
