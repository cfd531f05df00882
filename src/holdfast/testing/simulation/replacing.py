"""What a seed decides for callers that give a job another time and other arguments, by its unique key. Drawn apart from the rest."""

from __future__ import annotations

import random

from holdfast.testing.simulation.plan import CHAOS, Beat, JobSpec, Op

_KEYS = ("r1", "r2")


def with_replacing(seed: int, ops: tuple[Op, ...], nodes: int, queue: str) -> tuple[Op, ...]:
    """In some of the seeds: about the time at which the job is due that stands there."""
    rng = random.Random(f"replacing:{seed}")
    if rng.random() < 0.6:
        return ops
    first = len(ops)
    return (*ops, *(_op(rng, first + place, nodes, queue) for place in range(rng.randint(4, 10))))


def _op(rng: random.Random, number: int, nodes: int, queue: str) -> Op:
    script = (Beat(round(rng.choice((0.02, 0.5, 2.0)) * rng.uniform(0.5, 1), 3), "done"),)
    job = JobSpec(
        script=script,
        queue=queue,
        unique=rng.choice(_KEYS),
        replace=True,
        delay=round(rng.choice((0.0, 0.5, 2.0, 5.0)) * rng.uniform(0.5, 1), 3) or None,
    )
    return Op(
        number=number,
        at=round(rng.uniform(0.5, CHAOS - 4), 3),
        node=rng.randrange(nodes),
        kind=rng.choice(("enqueue", "enqueue", "commit", "rollback")),
        jobs=(job,),
        seconds=round(rng.choice((0.0, 0.1, 0.5)) * rng.uniform(0.5, 1), 3),
    )
