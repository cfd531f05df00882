"""Faults where they hurt events most: between a publication and its mark, between a delivery and its acknowledgement."""

from __future__ import annotations

import random
from typing import Any

from holdfast.kernel.crashpoints import CRASHPOINTS
from holdfast.testing.simulation.faults import Fault

POINTS = tuple(name for name in CRASHPOINTS if name.startswith(("relay.", "consumer.", "view.")))


def event_faults(rng: random.Random, nodes: int, first: int) -> tuple[Fault, ...]:
    """Crashes and pauses past the lease at these places: on one node, or on whichever comes there."""
    made: list[Fault] = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        how: dict[str, Any] = {"point": rng.choice(POINTS), "skip": rng.randrange(4)}
        how |= rng.choice(({"kind": "crash", "seconds": 3.0}, {"kind": "stall", "seconds": 14.0}))
        at = round(rng.uniform(0, 18), 3)
        for node in range(nodes) if rng.random() < 0.5 else (rng.randrange(nodes),):
            made.append(Fault(number=first + len(made), at=at, node=node, **how))
    return tuple(made)
