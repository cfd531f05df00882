"""From answers to figures: the median of all rounds, told by the transport that carried the events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

from bench.events.systems import TRANSPORT
from bench.schema.model import Figure
from bench.systems import System

_TOLD = (
    "events",
    "seconds",
    "emitted",
    "callers",
    "samples",
    "before",
    "peak",
    "relayed",
    "cpu_us_per_event",
)
_DIGITS = {"events/s": 0, "ms": 2, "MB": 1}


class Answers:
    def __init__(self) -> None:
        self._values: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
        self._told: dict[tuple[str, str, str, str], dict[str, Any]] = {}
        self._packages: dict[tuple[str, str, str, str], str | None] = {}

    def add(self, system: System, measure: str, answer: dict[str, Any]) -> list[Figure]:
        """What this answer says by itself."""
        store, new = TRANSPORT.get(system.broker, system.store), []
        for name, value, unit in _values(measure, answer):
            key = (system.name, store, name, unit)
            self._values[key].append(value)
            self._packages[key] = system.package
            self._told[key] = {
                "how": system.config,
                **{what: answer[what] for what in _TOLD if what in answer},
            }
            new.append(Figure(system.name, store, name, _rounded(value, unit), unit))
        return new

    def figures(self, versions: dict[str, str], load: float) -> list[Figure]:
        found = []
        for key, values in self._values.items():
            system, store, name, unit = key
            config: dict[str, object] = {"load": load, **self._told[key]}
            if version := versions.get(self._packages[key] or ""):
                config |= {"package": self._packages[key], "version": version}
            config["values"] = [_rounded(value, unit) for value in values]
            found.append(Figure(system, store, name, _rounded(median(values), unit), unit, config=config))
        return found


def _values(measure: str, answer: dict[str, Any]) -> Iterator[tuple[str, float, str]]:
    match measure:
        case "event_latency":
            yield "event_latency_p50", answer["p50"], "ms"
            yield "event_latency_p99", answer["p99"], "ms"
        case "relay_memory":
            yield measure, answer["growth"], "MB"
        case _:
            yield measure, answer["rate"], "events/s"


def _rounded(value: float, unit: str) -> float:
    return round(value, _DIGITS[unit] or None)
