"""What a seed decides for jobs with steps and effects. Drawn apart from the rest, which stays as it was without them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.testing.simulation.faults import BODY_POINTS, Fault
from holdfast.testing.simulation.plan import CHAOS, Beat, JobSpec, Op, Plan
from holdfast.testing.simulation.service.acts import LOOKED_UP_AGAIN, NAMES
from holdfast.testing.simulation.service.provider import DIALLING, SLOWEST

TASKS = ("acting", "acting", "hasty")
_FIRST_FAULT = 80  # their numbers begin here
_STALL = 0.6  # seconds for which a slow disk may stop everyone once more


def with_acts(plan: Plan) -> Plan:
    """In half of the seeds: more ops, more faults, and how long an effect takes to settle there."""
    rng = random.Random(f"acts:{plan.seed}")
    if rng.random() < 0.5:
        return plan
    nodes = len(plan.skews)
    names = rng.sample(NAMES, rng.randint(2, 4))  # a few at a time: swarms find more than soups
    more = [_op(rng, len(plan.ops) + place, nodes, names, plan.queues) for place in range(rng.randint(2, 5))]
    faults = (*plan.faults, *_faults(rng, nodes))
    return msgspec.structs.replace(plan, ops=(*plan.ops, *more), faults=faults, settle=settle(faults))


def with_looks(plan: Plan) -> Plan:
    """In some of the seeds: effects that are looked up again on a schedule."""
    rng = random.Random(f"looks:{plan.seed}")
    if rng.random() < 0.6:
        return plan
    nodes = len(plan.skews)
    acts = ((LOOKED_UP_AGAIN,), (LOOKED_UP_AGAIN, LOOKED_UP_AGAIN), ("sequence", LOOKED_UP_AGAIN))
    more = [
        _op(rng, len(plan.ops) + place, nodes, (LOOKED_UP_AGAIN,), plan.queues)
        for place in range(rng.randint(1, 3))
    ]
    more = [
        msgspec.structs.replace(
            op, jobs=tuple(msgspec.structs.replace(job, acts=rng.choice(acts)) for job in op.jobs)
        )
        for op in more
    ]
    return msgspec.structs.replace(plan, ops=(*plan.ops, *more), settle=settle(plan.faults))


def settle(faults: Sequence[Fault]) -> float:
    """Longer than a call can be on its way, by the database's clock, counted from its intent.

    A caller may stand still between the intent and the call, and while it dials: for all pauses of the plan, one after
    the other, but no longer than the chaos lasts, after which everyone goes on. A slow disk stops everyone for as long as
    it is slow, and once more. Then it dials (2 s), and the request is on its way for up to 5 s. Meanwhile the database's
    clock may jump ahead by all steps of the plan.
    """
    still = sum(fault.seconds for fault in faults if fault.kind in ("pause", "stall"))
    slow = sum(fault.seconds + _STALL for fault in faults if fault.kind == "slow")
    ahead = sum(max(fault.seconds, 0.0) for fault in faults if fault.kind == "host clock")
    return round(min(still, CHAOS) + slow + DIALLING + SLOWEST + ahead + 1.0, 3)


def _op(rng: random.Random, number: int, nodes: int, names: Sequence[str], queues: Sequence[str]) -> Op:
    return Op(
        number=number,
        at=round(rng.uniform(0.5, CHAOS - 6), 3),
        node=rng.randrange(nodes),
        kind="enqueue",
        jobs=tuple(_job(rng, names, queues) for _ in range(rng.randint(1, 3))),
    )


def _job(rng: random.Random, names: Sequence[str], queues: Sequence[str]) -> JobSpec:
    ends = [
        Beat(0.0, rng.choice(_FIRST), rng.choice((0.0, 0.5, 2.0))) for _ in range(rng.choice((0, 0, 1, 2)))
    ]
    ends.append(Beat(rng.choice((0.0, 0.0, 1.0)), rng.choices(list(_LAST), list(_LAST.values()))[0]))
    return JobSpec(
        task=rng.choice(TASKS),
        script=tuple(ends),
        acts=tuple(rng.choice(names) for _ in range(rng.randint(1, 3))),
        queue=rng.choice(queues),
        ordered=rng.choice((None, None, None, "o1")),
        tenant=rng.choice((None, None, None, "t1")),
    )


# After its acts.
_FIRST = ("fail", "fail", "retry", "snooze", "complete, then roll back")
_LAST = {"done": 30, "effect": 20, "complete": 5, "effect, then fail": 5, "fail": 5, "dead": 2, "cancel": 2}


def _faults(rng: random.Random, nodes: int) -> tuple[Fault, ...]:
    """Where it hurts most: around the calls and their records."""
    return tuple(_fault(rng, _FIRST_FAULT + place, nodes) for place in range(rng.choice((0, 2, 3, 4))))


def _fault(rng: random.Random, number: int, nodes: int) -> Fault:
    until, how = rng.choice((_crash, _stall))(rng)
    at, node = round(rng.uniform(0.5, until), 3), rng.randrange(nodes)
    return Fault(number=number, at=at, node=node, **how)


_How = tuple[float, dict[str, Any]]  # until when it may strike, and what it does


def _crash(rng: random.Random) -> _How:
    return CHAOS - 6, {
        "kind": "crash",
        "point": rng.choice(BODY_POINTS),
        "skip": rng.choice((0, 0, 1, 2)),
        "seconds": round(rng.uniform(0.5, 9), 3),
    }


def _stall(rng: random.Random) -> _How:
    """So early that the lease is over, and the job someone else's, before everyone is made well again."""
    return CHAOS - 14, {
        "kind": "stall",
        "point": rng.choice(_ZOMBIES),
        "seconds": round(rng.uniform(9, 18), 3),
    }


# Where to stand still: a call that is made when the job is lost, and results that come too late.
_ZOMBIES = ("effect.begun", "effect.begun", "effect.begun", "effect.called", "step.called")
