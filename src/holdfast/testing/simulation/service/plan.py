"""What a seed decides for a fleet of real workers: their settings, what callers enqueue, and the schedules."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from holdfast.jobs.cron import fires
from holdfast.testing.simulation.faults import Fault
from holdfast.testing.simulation.plan import (
    CHAOS,
    CRONS,
    JUMPS,
    QUEUES,
    ZONES,
    Beat,
    JobSpec,
    Op,
    Plan,
    ScheduleSpec,
    with_faults,
    with_pauses,
)
from holdfast.testing.simulation.service.acting import with_acts, with_looks

MISSED = ("latest", "all", "skip")
_BEFORE = 15.0  # seconds before what is to be seen: the jump of a clock, or a nominal time


def make_plan(seed: int) -> Plan:
    rng = random.Random(f"worker plan:{seed}")
    nodes = rng.choice((2, 3, 3))
    jump = rng.randrange(len(JUMPS))
    schedules = _schedules(rng, ZONES[jump // 2])
    queues = QUEUES if rng.random() < 0.3 else QUEUES[:1]
    ops = with_pauses(seed, _with_stubborn(seed, _ops(rng, nodes, queues), nodes), nodes)
    slots = rng.choice((1, 2, 3))
    plan = Plan(
        seed=seed,
        kind="worker",
        epoch=JUMPS[jump] + rng.choice((-_BEFORE, 1800.0, 4000.0)),
        skews=tuple(round(rng.uniform(-3600, 3600), 3) for _ in range(nodes)),
        ops=ops,
        queues=queues,
        faults=(
            *with_faults(rng, nodes, ops, scheduled=False),
            *_at_ticks(seed, nodes, schedules),
            *_at_commits(seed, ops),
        ),
        schedules=schedules,
        window=slots,
        slots=slots,
        grace=rng.choice((0.0, 1.0, 4.0)),
        max_tasks=tuple(rng.choice((None, None, None, None, 3, 6)) for _ in range(nodes)),
        supervised=tuple(rng.random() < 0.5 for _ in range(nodes)),
        downtime=rng.choice((0.0, 3600.0, 3 * 3600.0)),
    )
    return with_looks(with_acts(_with_ticks(plan)))


def _with_ticks(plan: Plan) -> Plan:
    """Schedules that have missed nothing are worth a look only when a time of theirs comes: soon after the beginning."""
    if not plan.schedules or plan.downtime:
        return plan
    first, drawn = plan.schedules[0], datetime.fromtimestamp(plan.epoch, UTC)
    coming = next(iter(fires(first.expression, first.zone, drawn, drawn + timedelta(days=2))))
    return msgspec.structs.replace(plan, epoch=coming.timestamp() - _BEFORE)


def _at_ticks(seed: int, nodes: int, schedules: tuple[ScheduleSpec, ...]) -> tuple[Fault, ...]:
    """Sometimes the first process that is about to enqueue for a nominal time dies there."""
    rng = random.Random(f"worker ticks:{seed}")
    if not schedules or rng.random() < 0.5:
        return ()
    node, seconds = rng.randrange(nodes), rng.uniform(0.5, 4)
    return (Fault(number=99, at=0.0, node=node, kind="crash", point="schedule.before_tick", seconds=seconds),)


def _at_commits(seed: int, ops: tuple[Op, ...]) -> tuple[Fault, ...]:
    """Sometimes the commit of a caller gets no answer: it happened, or it did not."""
    rng = random.Random(f"worker commits:{seed}")
    commits = [op for op in ops if op.kind == "commit"]
    if not commits or rng.random() < 0.8:
        return ()
    op = rng.choice(commits)
    kind, point = rng.choice(
        (("lost request", "transaction.before_commit"), ("lost reply", "transaction.after_commit"))
    )
    return (Fault(number=98, at=op.at - 1e-6, node=op.node, kind=kind, point=point),)


def _ops(rng: random.Random, nodes: int, queues: tuple[str, ...]) -> tuple[Op, ...]:
    flavours = rng.sample(list(_FLAVOURS), rng.randint(2, 4))  # a few at a time: swarms find more than soups
    total = rng.randint(10, 18)
    made = [_op(rng, number, total, nodes, flavours, queues) for number in range(total)]
    made = [_NEAR[op.kind](rng, op, made) if op.kind in _NEAR else op for op in made]
    if rng.random() < 0.25:
        made.append(_poison(rng, total, nodes))
    return tuple(made)


_OPS = {"enqueue": 40, "commit": 10, "rollback": 4, "cancel": 10, "pause": 3, "steal": 3, "drain": 7}


def _op(
    rng: random.Random, number: int, total: int, nodes: int, flavours: list[str], queues: tuple[str, ...]
) -> Op:
    at, node = round(rng.uniform(0.5, CHAOS - 4), 3), rng.randrange(nodes)
    kind = rng.choices(list(_OPS), list(_OPS.values()))[0]
    jobs: tuple[JobSpec, ...] = ()
    target = 0
    if kind in ("enqueue", "commit", "rollback"):
        most = 5 if kind == "enqueue" else 2
        jobs = tuple(_job(rng, rng.choice(flavours), queues) for _ in range(rng.randint(1, most)))
    elif kind == "cancel":
        target, at = rng.randrange(total), round(at / 2 + CHAOS / 2, 3)
    lengths = (0.0, 0.0, 0.1, 0.2, 0.4) if kind in ("commit", "rollback") else (0.3, 1.0, 3.0)
    seconds = round(rng.choice(lengths) * rng.uniform(0.5, 1), 3)
    name = rng.choice(("l1", "l2")) if kind == "steal" else rng.choice(queues)
    return Op(
        number=number, at=at, node=node, kind=kind, jobs=jobs, name=name, target=target, seconds=seconds
    )


def _drain_beside(rng: random.Random, op: Op, ops: list[Op]) -> Op:
    """Sometimes a worker is asked to leave in the very moment in which there is work for it."""
    enqueues = [other for other in ops if other.kind == "enqueue"]
    if not enqueues or rng.random() < 0.5:
        return op
    other = rng.choice(enqueues)
    return msgspec.structs.replace(op, at=other.at, node=other.node, turns=rng.randrange(12))


def _cancel_soon(rng: random.Random, op: Op, ops: list[Op]) -> Op:
    """Mostly jobs are cancelled while some of them run and others wait for a slot."""
    enqueues = [other for other in ops if len(other.jobs) > 2]
    if not enqueues or rng.random() < 0.3:
        return op
    other = rng.choice(enqueues)
    at = round(min(other.at + rng.uniform(0.2, 5), CHAOS - 2), 3)
    return msgspec.structs.replace(op, at=at, target=other.number)


_NEAR: dict[str, Callable[[random.Random, Op, list[Op]], Op]] = {
    "drain": _drain_beside,
    "cancel": _cancel_soon,
}


def _poison(rng: random.Random, number: int, nodes: int) -> Op:
    """A job that kills whoever runs it, and some innocents beside it."""
    jobs = (
        JobSpec(task="plain", script=(Beat(0.5, "poison"),)),
        JobSpec(task="plain", script=(Beat(3.0, "done"),)),
        JobSpec(task="plain", script=(Beat(0.3, "done"),)),
    )
    return Op(number=number, at=rng.uniform(1, 10), node=rng.randrange(nodes), kind="enqueue", jobs=jobs)


def _with_stubborn(seed: int, ops: tuple[Op, ...], nodes: int) -> tuple[Op, ...]:
    """Sometimes a job that neither ends within its time nor lets itself be stopped, until its process is ended."""
    rng = random.Random(f"worker stubborn:{seed}")
    if rng.random() < 0.92:
        return ops
    script = Beat(rng.uniform(12, 20), "deaf done"), Beat(0.3, "done")
    jobs = (JobSpec(task="timed", script=script),)
    at, node = rng.uniform(0.5, CHAOS - 10), rng.randrange(nodes)
    return (*ops, Op(number=len(ops), at=at, node=node, kind="enqueue", jobs=jobs))


def _job(rng: random.Random, flavour: str, queues: tuple[str, ...]) -> JobSpec:
    options = _FLAVOURS[flavour](rng)
    script = [
        Beat(_length(rng), rng.choice(_FIRST), rng.choice((0.0, 0.5, 2.0)))
        for _ in range(rng.choice((0, 0, 0, 1, 2)))
    ]
    script.append(Beat(_length(rng), rng.choices(list(_LAST), list(_LAST.values()))[0]))
    return JobSpec(
        script=tuple(script), queue=rng.choice(queues), priority=rng.choice((0, 0, 0, 5, -5)), **options
    )


_FIRST = ("fail", "fail", "retry", "snooze", "complete, then roll back")
_LAST = {
    "done": 40,
    "effect": 16,
    "effect, then fail": 4,
    "complete": 6,
    "fail": 6,
    "dead": 4,
    "cancel": 3,
    "deaf done": 4,
    "deaf effect": 4,
}


def _length(rng: random.Random) -> float:
    return round(rng.choice((0.02, 0.02, 0.3, 1.0, 3.0, 8.0)) * rng.uniform(0.5, 1.2), 3)


_FLAVOURS: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "plain": lambda _: {"task": "plain"},
    "timed": lambda _: {"task": "timed"},
    "locked": lambda rng: {"task": "locked", "lock": rng.choice(("l1", "l1", "l2"))},
    "few": lambda rng: rng.choice(
        ({"task": "few1", "concurrency": "c1"}, {"task": "few2", "concurrency": "c2"})
    ),
    "doomed": lambda _: {"task": "doomed"},
    "newer": lambda _: {"task": "newer"},
    "bounded": lambda _: {"task": "bounded", "max_waiting": 4},
    "late": lambda rng: {"task": "plain", rng.choice(("delay", "at")): round(rng.uniform(0.1, 12), 3)},
    "expiring": lambda rng: {"task": "timed", "expires": round(rng.uniform(0.5, 12), 3)},
    "unique": lambda rng: {"task": "plain", "unique": rng.choice(("u1", "u2"))},
    "ordered": lambda rng: {"task": "timed", "ordered": rng.choice(("o1", "o2"))},
    "tenant": lambda rng: {"task": "plain", "tenant": rng.choice(("t1", "t2"))},
    "all": lambda rng: {
        "task": "locked",
        "lock": "l1",
        "ordered": rng.choice((None, "o1", "o2")),
        "tenant": rng.choice((None, "t1")),
        "unique": rng.choice((None, None, "u1")),
        "delay": rng.choice((None, None, 2.0)),
    },
}


def _schedules(rng: random.Random, jumping: str) -> tuple[ScheduleSpec, ...]:
    if rng.random() < 0.6:
        return ()
    zones = (jumping, jumping, *ZONES)
    return tuple(
        ScheduleSpec(
            name=f"s{place}",
            expression=rng.choice(CRONS),
            zone=rng.choice(zones),
            missed=rng.choice(MISSED),
        )
        for place in range(rng.randint(1, 3))
    )
