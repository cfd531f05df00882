"""Faults where they hurt sagas most: around the calls of steps and undos, decisions and rests, and the commits between."""

from __future__ import annotations

import random
from typing import Any

from holdfast.kernel.crashpoints import CRASHPOINTS
from holdfast.testing.simulation.faults import Fault

POINTS = tuple(name for name in CRASHPOINTS if name.startswith(("saga.", "undo.", "effect.", "step.")))
_COMMITS = ("store.before_commit", "store.after_commit")


def saga_faults(rng: random.Random, nodes: int, first: int) -> tuple[Fault, ...]:
    """Crashes and pauses past the lease at these places, on whichever node comes there first."""
    made: list[Fault] = []
    for _ in range(rng.choice((0, 1, 2, 2, 3))):
        how = rng.choice((_crash, _crash, _stall, _commit))(rng)
        at = round(rng.uniform(0, 18), 3)
        for node in range(nodes) if rng.random() < 0.7 else (rng.randrange(nodes),):
            made.append(Fault(number=first + len(made), at=at, node=node, **how))
    return tuple(made)


def _crash(rng: random.Random) -> dict[str, Any]:
    return {
        "kind": "crash",
        "point": rng.choice(POINTS),
        "skip": rng.choice((0, 0, 1, 2)),
        "seconds": round(rng.uniform(0.5, 6), 3),
    }


def _stall(rng: random.Random) -> dict[str, Any]:
    return {"kind": "stall", "point": rng.choice(POINTS), "seconds": round(rng.uniform(8, 15), 3)}


def _commit(rng: random.Random) -> dict[str, Any]:
    """Any commit, among which those of sagas are: steps, decisions, rests, waits, signals."""
    return {
        "kind": "crash",
        "point": rng.choice(_COMMITS),
        "skip": rng.randrange(30),
        "seconds": round(rng.uniform(0.5, 6), 3),
    }
