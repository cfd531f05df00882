"""What the answers about sagas mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.answers import Answers

_TOLD = ("jobs", "seconds", "cut", "batch", "cpu_us_per_job", "sagas", "before", "asleep", "peak")


def answers() -> Answers:
    return Answers(_values, _TOLD)


def _values(measure: str, answer: Mapping[str, Any]) -> Iterator[tuple[str, float, str]]:
    if measure != "sleeping":
        yield measure, answer["rate"], "sagas/s"
        return
    yield "sleeping_each", answer["each"], "KB"
    yield "sleeping_begin", answer["bedtime"], "sagas/s"
    if "woken" in answer:
        yield "sleeping_memory", answer["gained"], "MB"
        yield "sleeping_wake", answer["woken"], "s"
