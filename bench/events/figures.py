"""What the answers about events mean, told by the transport that carried the events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.answers import Answers
from bench.events.systems import TRANSPORT

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


def answers() -> Answers:
    return Answers(_values, _TOLD, lambda system: TRANSPORT.get(system.broker, system.store))


def _values(measure: str, answer: Mapping[str, Any]) -> Iterator[tuple[str, float, str]]:
    match measure:
        case "event_latency":
            yield "event_latency_p50", answer["p50"], "ms"
            yield "event_latency_p99", answer["p99"], "ms"
        case "relay_memory":
            yield measure, answer["growth"], "MB"
        case _:
            yield measure, answer["rate"], "events/s"
