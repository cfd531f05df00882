"""Measure one thing of one system, in that system's own virtual environment: python -m bench.drive MODULE MEASURE OPTIONS.

The answer, as JSON, goes into the file `answer` of the folder that it is given; libraries print what they like.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from typing import Any

from bench import drain, enqueue, latency, recovery
from bench.events import flow
from bench.place import folder
from bench.sagas import sleeping as sleep

MEASURES = {
    "enqueue_one": enqueue.one,
    "enqueue_concurrent": enqueue.concurrent,
    "enqueue_bulk": enqueue.bulk,
    "drain": drain.drain,
    "steps": drain.drain_steps,
    "latency": latency.latency,
    "recovery": recovery.recovery,
    "sagas": drain.drain,
    "sagas_plain": drain.drain,
    "sagas_started": drain.drain,
    "sleeping": sleep.sleeping,
    "events": flow.events,
    "events_plain": flow.events,
    "emit_one": flow.emit_one,
    "emit_concurrent": flow.emit_concurrent,
    "event_latency": flow.event_latency,
}


def main(module: str, measure: str, options: str) -> int:
    try:
        answer = _measure(module, measure, json.loads(options))
    except Exception as error:
        traceback.print_exc()
        answer = {"error": f"{type(error).__name__}: {error}"}
    (folder() / "answer").write_text(json.dumps(answer))
    return "error" in answer


def _measure(module: str, measure: str, options: dict[str, Any]) -> dict[str, Any]:
    peer = importlib.import_module(module)
    if hasattr(peer, "measure"):  # it knows how to measure itself: a limit
        found: dict[str, Any] = peer.measure(measure, **options)
        return found
    peer.prepare()
    return MEASURES[measure](peer, **options)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
