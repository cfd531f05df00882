"""From answers to figures: what was measured several times becomes its median."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

from bench.schema.model import Figure
from bench.systems import System

Named = tuple[str, str, float, str]  # key of the answer, measure, factor, unit
_RATE = {"enqueue_one", "enqueue_concurrent", "enqueue_bulk", "drain"}
_TOLD = (
    "jobs",
    "steps",
    "seconds",
    "size",
    "batch",
    "callers",
    "samples",
    "memory_all",
    "cpu_us_per_job",
    "cut",
)


class Figures:
    """Collects answers, and knows each system's versions."""

    def __init__(self) -> None:
        self._values: dict[tuple[System, str, str], list[float]] = defaultdict(list)
        self._details: dict[tuple[System, str, str], dict[str, Any]] = {}

    def add(self, system: System, measure: str, answer: dict[str, Any]) -> list[Figure]:
        """What this answer says by itself."""
        told = {name: answer[name] for name in _TOLD if name in answer and answer[name] is not False}
        new = []
        for name, value, unit in _values(system, measure, answer):
            key = (system, name, unit)
            self._values[key].append(value)
            self._details[key] = told
            new.append(Figure(system.name, system.store, name, _rounded(value, unit), unit))
        return new

    def all(self, versions: dict[str, str]) -> list[Figure]:
        return [
            Figure(
                system.name, system.store, measure, _rounded(median(values), unit), unit,
                config=_config(system, measure, versions) | self._details[system, measure, unit]
                | ({"values": [_rounded(value, unit) for value in values]} if len(values) > 1 else {}),
            )
            for (system, measure, unit), values in self._values.items()
        ]  # fmt: skip


def _values(system: System, measure: str, answer: dict[str, Any]) -> Iterator[tuple[str, float, str]]:
    if measure in _RATE:
        yield measure, answer["rate"], "jobs/s"
    if measure == "steps":
        yield measure, answer["rate"], "steps/s"
    if measure == "enqueue_one" and system.name == "limit":
        yield "commit_p50", answer["p50"], "ms"
        yield "commit_p99", answer["p99"], "ms"
    if measure == "latency":
        yield "latency_p50", answer["p50"], "ms"
        yield "latency_p99", answer["p99"], "ms"
        yield "memory_idle", answer["memory"], "MB"
    if measure == "recovery":
        yield "recovery", answer["seconds"], "s"


def _config(system: System, measure: str, versions: dict[str, str]) -> dict[str, Any]:
    config: dict[str, Any] = {"durable": system.durable}
    if measure == "drain":
        config["workers"] = system.config
    if version := versions.get(system.package or ""):
        config["version"] = version
    return config


def _rounded(value: float, unit: str) -> float:
    return round(value) if unit == "jobs/s" else round(value, 2 if unit == "ms" else 1)
