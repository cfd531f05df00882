"""Measure events beside FastStream and the raw clients: python -m bench.events [--tiny] [--measure M] [--results FOLDER]."""

from __future__ import annotations

import sys
from typing import Any

from bench import chapter
from bench.events.figures import answers
from bench.events.systems import CALLERS, MEASURES
from bench.musts import event_musts
from bench.systems import System

_WHOLE = {"callers": CALLERS, "events": 2.5, "emit": 1.5, "samples": 300, "backlog": 1_000_000}
_TINY = {"callers": CALLERS, "events": 0.1, "emit": 0.2, "samples": 10, "backlog": 5_000}


def _options(what: str, system: System, tiny: bool) -> dict[str, Any]:
    size = _TINY if tiny else _WHOLE
    seconds = size["events" if what.startswith("events") else "emit"]
    processes = 1 if system.store == "sqlite" else 2
    return {**size, "seconds": seconds, "processes": processes}


EVENTS = chapter.Chapter(
    name="events",
    measures=MEASURES,
    once=frozenset({"event_latency", "relay_memory"}),
    limit=600.0,
    options=_options,
    answers=answers,
    musts=event_musts,
)

if __name__ == "__main__":
    sys.exit(chapter.main(EVENTS))
