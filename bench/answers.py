"""From answers to figures: the median of all rounds of one measure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

from bench.schema.model import Figure
from bench.systems import System

Values = Callable[[str, Mapping[str, Any]], Iterable[tuple[str, float, str]]]  # measure, figure, unit
_DIGITS = {"ms": 2, "MB": 1, "KB": 2, "s": 2}  # others have none
_Key = tuple[str, str, str, str]


class Answers:
    """`values` says what an answer means, `told` what of it is kept beside the figure, `store` who has carried it."""

    def __init__(
        self,
        values: Values,
        told: Iterable[str],
        store: Callable[[System], str] = lambda system: system.store,
    ) -> None:
        self._meant, self._kept, self._store = values, tuple(told), store
        self._values: dict[_Key, list[float]] = defaultdict(list)
        self._told: dict[_Key, dict[str, Any]] = {}
        self._packages: dict[_Key, str | None] = {}

    def add(self, system: System, measure: str, answer: Mapping[str, Any]) -> list[Figure]:
        """What this answer says by itself."""
        store, new = self._store(system), []
        for name, value, unit in self._meant(measure, answer):
            key = (system.name, store, name, unit)
            self._values[key].append(value)
            self._packages[key] = system.package
            told = {what: answer[what] for what in self._kept if what in answer}
            self._told[key] = {"how": system.config, **told}
            new.append(Figure(system.name, store, name, _rounded(value, unit), unit))
        return new

    def figures(self, versions: Mapping[str, str], load: float) -> list[Figure]:
        found = []
        for key, values in self._values.items():
            system, store, name, unit = key
            config: dict[str, object] = {"load": load, **self._told[key]}
            if version := versions.get(self._packages[key] or ""):
                config |= {"package": self._packages[key], "version": version}
            config["values"] = [_rounded(value, unit) for value in values]
            found.append(Figure(system, store, name, _rounded(median(values), unit), unit, config=config))
        return found


def _rounded(value: float, unit: str) -> float:
    return round(value, _DIGITS.get(unit))
