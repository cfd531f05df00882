"""What a seed decides for the kind `alerts`: the nodes, what holds and for how long, and what goes wrong."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

from holdfast.runtime.alerting import QUEUE
from holdfast.testing.simulation.alerts.spec import NEVER
from holdfast.testing.simulation.faults import Fault, around_enqueues, make_faults
from holdfast.testing.simulation.plan import CHAOS, QUEUES, Op, Plan

_EPOCH = 1_790_000_000.0
# Of these the nemesis takes more than chance would: a leader dies or stands still between its look and its commit.
POINTS = ("alerts.looked", "alerts.before_commit")


def make_plan(seed: int) -> Plan:
    rng = random.Random(f"alerts plan:{seed}")
    nodes = rng.choice((2, 2, 3))
    ops = _ops(rng, nodes)
    return Plan(
        seed=seed,
        kind="alerts",
        epoch=_EPOCH + rng.randrange(86_400),
        skews=tuple(round(rng.uniform(-3600, 3600), 3) for _ in range(nodes)),
        ops=ops,
        queues=(*QUEUES[:1], QUEUE),
        faults=_faults(rng, nodes, ops),
        schedules=(),
        window=3,
        slots=2,
        grace=rng.choice((0.0, 2.0)),
        max_tasks=(None,) * nodes,
        supervised=(False,) * nodes,
    )


def _ops(rng: random.Random, nodes: int) -> tuple[Op, ...]:
    """Each cause holds for a while, once or several times; some for good."""
    numbers, made = count(), list[Op]()

    def add(kind: str, at: float, name: str, seconds: float = 0.0) -> None:
        made.append(
            Op(number=next(numbers), at=round(at, 3), node=rng.randrange(nodes), kind=kind, name=name, seconds=seconds)
        )  # fmt: skip

    for place in range(rng.randint(2, 6)):
        name, at = f"c{place}", rng.uniform(0.5, CHAOS * 0.7)
        for _ in range(rng.choice((1, 1, 2, 3))):
            add(rng.choice(("raise alert", "raise alert in transaction")), at, name, rng.choice((0.0, 0.3)))
            if rng.random() < 0.3:
                add("raise alert", at + rng.uniform(0, 1), name)
            if rng.random() < 0.2:
                break
            at += rng.choice((0.3, 1.0, 1.0, 2.0, 6.0, 12.0)) * rng.uniform(0.5, 1.2)
            add("end alert", at, name)
            at += rng.choice((0.3, 1.0, 3.0, 9.0)) * rng.uniform(0.5, 1.2)
    for place in range(rng.choice((0, 1, 2))):
        add("roll back alert", rng.uniform(0.5, CHAOS), f"{NEVER}{place}", rng.choice((0.0, 0.3)))
    if rng.random() < 0.3:
        add("drain", rng.uniform(2, CHAOS - 4), "")
    return tuple(made)


def _faults(rng: random.Random, nodes: int, ops: tuple[Op, ...]) -> tuple[Fault, ...]:
    faults = make_faults(rng, nodes, CHAOS - 4, scheduled=False)
    raised = [(op.at, op.node) for op in ops if op.kind == "raise alert"]
    faults = (*faults, *around_enqueues(rng, raised, len(faults)))
    made: list[Fault] = []
    for _ in range(rng.choice((0, 1, 2, 2, 3))):
        stall = {"kind": "stall", "point": POINTS[0], "seconds": round(rng.uniform(8, 28), 3)}
        crash = {"kind": "crash", "point": rng.choice(POINTS), "seconds": round(rng.uniform(0.5, 6), 3)}
        how: dict[str, Any] = rng.choice((stall, stall, crash))
        at, skip = round(rng.uniform(0, CHAOS - 6), 3), rng.choice((0, 0, 1, 3))
        for node in range(nodes):  # whichever of them leads
            made.append(Fault(number=len(faults) + len(made), at=at, node=node, skip=skip, **how))
    return (*faults, *made)
