"""Faults where they hurt events most: between a publication and its mark, between a delivery and its acknowledgement."""

from __future__ import annotations

import random
from typing import Any

from holdfast.kernel.crashpoints import CRASHPOINTS
from holdfast.testing.simulation.events.spec import Stream
from holdfast.testing.simulation.faults import Fault

POINTS = tuple(name for name in CRASHPOINTS if name.startswith(("relay.", "consumer.", "view.")))

_SELDOM = ("relay.after_publish", "consumer.fetched", "consumer.after_deliver")  # only over a broker


def event_faults(rng: random.Random, nodes: int, first: int, stream: Stream) -> tuple[Fault, ...]:
    """Crashes and pauses past the lease at these places: on one node, or on whichever comes there."""
    made: list[Fault] = []
    points = [point for point in POINTS if _is_passed(point, stream)]
    points += [point for point in points if point in _SELDOM]
    for _ in range(rng.choice((0, 1, 1, 2))):
        point = rng.choice(points)
        how: dict[str, Any] = {
            "point": point,
            "skip": rng.randrange(2 if point in _SELDOM else 4),
        }
        how |= rng.choice(({"kind": "crash", "seconds": 3.0}, {"kind": "stall", "seconds": 14.0}))
        at = round(rng.uniform(0, 18), 3)
        for node in range(nodes) if rng.random() < 0.5 else (rng.randrange(nodes),):
            made.append(Fault(number=first + len(made), at=at, node=node, **how))
    return tuple(made)


def _is_passed(point: str, stream: Stream) -> bool:
    if point.startswith("view."):
        return bool(stream.views)
    return stream.transport == "broker" or point == "relay.before_publish"
