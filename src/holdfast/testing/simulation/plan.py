"""Everything a seed decides beforehand: the fleet, and what its callers do."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.testing.simulation.events.spec import EventSpec, Stream
from holdfast.testing.simulation.faults import Fault, around_enqueues, make_faults
from holdfast.testing.simulation.guards.spec import Traffic
from holdfast.testing.simulation.sagas.spec import Story

LEASE = 6.0  # seconds; a worker renews at a third of it
POLL = 2.5  # seconds between two looks of a worker for jobs
SCAN = 5.0  # seconds between two rounds of upkeep in one process
SUPERVISOR = 1.0  # seconds after which a process that killed itself is started again
KEEP = 30.0  # seconds for which jobs that are over are kept
CHAOS = 26.0  # seconds during which faults strike
QUEUES = ("mail", "bulk")
GUARDS = ("g1", "g2")

# Local clocks jump here: Zurich, New York and Lord Howe (by half an hour), forward and back.
ZONES = ("Europe/Zurich", "America/New_York", "Australia/Lord_Howe")
JUMPS = (1774746000.0, 1792890000.0, 1772953200.0, 1793512800.0, 1775314800.0, 1791041400.0)
CRONS = ("30 2 * * *", "15 1 * * *", "*/20 * * * *", "45 1,2 * * *", "5 * * * *")


class Beat(msgspec.Struct, frozen=True, array_like=True):
    """One run of a body: how long, how it ends, and that outcome's number of seconds."""

    seconds: float
    outcome: str
    after: float = 0.0


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    script: tuple[Beat, ...]
    queue: str = "mail"
    priority: int = 0
    delay: float | None = None
    at: float | None = None  # seconds after the plan's epoch
    expires: float | None = None
    unique: str | None = None
    replace: bool = False  # the one that stands under that key
    ordered: str | None = None
    concurrency: str | None = None
    tenant: str | None = None
    guard: str | None = None
    max_waiting: int | None = None
    task: str = "sim"
    lock: str | None = None
    acts: tuple[str, ...] = ()  # what it does in steps and effects
    user: str = ""  # for whom it calls through a guard


class Op(msgspec.Struct, frozen=True, kw_only=True):
    """What one caller does, once."""

    number: int
    at: float
    node: int
    kind: str
    jobs: tuple[JobSpec, ...] = ()
    name: str = ""
    target: int = 0  # the number of another op
    seconds: float = 0.0
    turns: int = 0  # of the loop that it waits before it begins
    events: tuple[EventSpec, ...] = ()  # that it emits


class ScheduleSpec(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    expression: str
    zone: str
    missed: str = "all"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    kind: str = "store"
    epoch: float
    skews: tuple[float, ...]  # one for each node
    ops: tuple[Op, ...]
    faults: tuple[Fault, ...]
    schedules: tuple[ScheduleSpec, ...]
    window: int  # ready jobs of a tenant in a queue
    queues: tuple[str, ...]
    stepping: bool = False  # bodies write of steps
    deaf: bool = False  # bodies cannot be stopped: they go on after their claim was lost, and write
    # Of real workers only.
    slots: int = 0  # of each queue in each process
    grace: float = 0.0  # seconds that running jobs have when their worker leaves
    max_tasks: tuple[int | None, ...] = ()  # for each node: runs after which a process leaves
    supervised: tuple[bool, ...] = ()  # for each node: whether someone sees its processes die
    downtime: float = 0.0  # seconds for which nobody scheduled before the simulation
    settle: float = 0.0  # seconds after which an effect that is not found was not done
    traffic: Traffic | None = None  # of guards only
    stream: Stream | None = None  # of events only
    story: Story | None = None  # of sagas only

    @property
    def is_real(self) -> bool:
        """Whether its workers are those of production."""
        return self.kind != "store"

    def without(self, faults: frozenset[int]) -> Plan:
        kept = tuple(fault for fault in self.faults if fault.number not in faults)
        return msgspec.structs.replace(self, faults=kept)


def make_plan(seed: int) -> Plan:
    rng = random.Random(f"plan:{seed}")
    nodes = rng.choice((2, 3, 3))
    jump = rng.randrange(len(JUMPS))
    schedules = _schedules(rng, ZONES[jump // 2])
    queues = QUEUES if rng.random() < 0.3 else QUEUES[:1]
    ops = with_pauses(seed, _ops(rng, nodes, queues), nodes)
    return Plan(
        seed=seed,
        epoch=JUMPS[jump] + rng.choice((-30.0, 1800.0, 4000.0)),
        skews=tuple(round(rng.uniform(-3600, 3600), 3) for _ in range(nodes)),
        ops=ops,
        queues=queues,
        faults=with_faults(rng, nodes, ops, scheduled=bool(schedules)),
        schedules=schedules,
        window=rng.choice((1, 2, 3)),
        deaf=rng.random() < 0.4,
    )


def with_faults(rng: random.Random, nodes: int, ops: tuple[Op, ...], *, scheduled: bool) -> tuple[Fault, ...]:
    faults = make_faults(rng, nodes, CHAOS - 4, scheduled=scheduled)
    enqueues = [(op.at, op.node) for op in ops if op.kind == "enqueue"]
    return (*faults, *around_enqueues(rng, enqueues, len(faults)))


def with_pauses(seed: int, ops: tuple[Op, ...], nodes: int) -> tuple[Op, ...]:
    """Where jobs have tenants, one of these is sometimes paused just before or after an enqueue, or twice."""
    rng = random.Random(f"pauses:{seed}")
    having = [(op.at, job.tenant) for op in ops for job in op.jobs if job.tenant is not None]
    if not having or rng.random() < 0.4:
        return ops
    more = []
    for number in range(len(ops), len(ops) + rng.choice((1, 1, 2))):
        at, tenant = rng.choice(having)
        moment = round(max(0.1, at + rng.uniform(-1, 2)), 3)
        seconds = round(rng.choice((0.0, 0.3, 1.0, 3.0, 9.0)) * rng.uniform(0.5, 1), 3)
        node = rng.randrange(nodes)
        more.append(
            Op(number=number, at=moment, node=node, kind="pause tenant", name=tenant, seconds=seconds)
        )
    return (*ops, *more)


# --- the callers ---


def _ops(rng: random.Random, nodes: int, queues: tuple[str, ...]) -> tuple[Op, ...]:
    flavours = rng.sample(list(_FLAVOURS), rng.randint(2, 4))  # a few at a time: swarms find more than soups
    made: list[Op] = []
    total = rng.randint(12, 22)
    for number in range(total):
        at, node = round(rng.uniform(0.5, CHAOS - 4), 3), rng.randrange(nodes)
        kind = rng.choices(list(_OPS), list(_OPS.values()))[0]
        jobs: tuple[JobSpec, ...] = ()
        target = 0
        if kind in ("enqueue", "commit", "rollback"):
            most = 4 if kind == "enqueue" else 2
            jobs = tuple(_job(rng, rng.choice(flavours), queues) for _ in range(rng.randint(1, most)))
        elif kind == "cancel":
            target, at = rng.randrange(total), round(at / 2 + CHAOS / 2, 3)
        name = rng.choice(("a", "b")) if kind in ("lease", "steal", "key") else rng.choice(queues)
        lengths = (
            (0.0, 0.0, 0.0, 0.1, 0.1, 0.2, 0.4, 0.8, 7.0)
            if kind in ("commit", "rollback")
            else (0.0, 0.3, 1.0, 3.0, 7.0)
        )
        seconds = round(rng.choice(lengths) * rng.uniform(0.5, 1), 3)
        made.append(
            Op(
                number=number,
                at=at,
                node=node,
                kind=kind,
                jobs=jobs,
                name=name,
                target=target,
                seconds=seconds,
            )
        )
    if rng.random() < 0.2:
        made.append(_poison(rng, total, nodes))
    return tuple(made)


_OPS = {
    "enqueue": 34,
    "commit": 14,
    "rollback": 6,
    "cancel": 9,
    "pause": 3,
    "lease": 8,
    "steal": 2,
    "key": 8,
    "drain": 4,
    "epoch": 1,
}


def _poison(rng: random.Random, number: int, nodes: int) -> Op:
    """A job that kills whoever runs it, and some innocents beside it."""
    jobs = (JobSpec(script=(Beat(0.5, "poison"),)), JobSpec(script=(Beat(4.0, "done"),)))
    return Op(number=number, at=rng.uniform(1, 10), node=rng.randrange(nodes), kind="enqueue", jobs=jobs)


def _job(rng: random.Random, flavour: str, queues: tuple[str, ...]) -> JobSpec:
    options = _FLAVOURS[flavour](rng)
    script = [_beat(rng) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    script.append(Beat(_length(rng), rng.choices(_ENDS, (50, 12, 3, 3, 3))[0]))
    return JobSpec(
        script=tuple(script),
        queue=rng.choice(queues),
        priority=rng.choice((0, 0, 0, 5, -5)),
        **options,
    )


_ENDS = ("done", "effect", "cancel", "dead", "unknown")


def _beat(rng: random.Random) -> Beat:
    outcome = rng.choice(("retry", "retry", "snooze", "hold"))
    return Beat(_length(rng), outcome, rng.choice((0.0, 0.5, 3.0)))


def _length(rng: random.Random) -> float:
    return round(rng.choice((0.02, 0.3, 1.0, 3.0, 9.0)) * rng.uniform(0.5, 1.2), 3)


_FLAVOURS: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "plain": lambda _: {},
    "late": lambda rng: {rng.choice(("delay", "at")): round(rng.uniform(0.1, 12), 3)},
    "guarded": lambda rng: {"guard": rng.choice(GUARDS)},
    "expiring": lambda rng: {"expires": round(rng.uniform(0.5, 12), 3), "delay": rng.choice((None, 2.0))},
    "unique": lambda rng: {"unique": rng.choice(("u1", "u2"))},
    "ordered": lambda rng: {"ordered": rng.choice(("o1", "o2")), "delay": rng.choice((None, None, 3.0))},
    "few": lambda rng: {"concurrency": rng.choice(("c1", "c2"))},
    "tenant": lambda rng: {"tenant": rng.choice(("t1", "t2"))},
    "bounded": lambda _: {"max_waiting": 4},
    "all": lambda rng: {
        "ordered": rng.choice((None, "o1", "o2")),
        "concurrency": rng.choice((None, "c1")),
        "tenant": rng.choice((None, "t1")),
        "unique": rng.choice((None, None, "u1")),
        "delay": rng.choice((None, None, 2.0)),
        "expires": rng.choice((None, None, None, 15.0)),
    },
}
SLOTS = {"c1": 1, "c2": 2}


def _schedules(rng: random.Random, jumping: str) -> tuple[ScheduleSpec, ...]:
    if rng.random() < 0.7:
        return ()
    zones = (jumping, jumping, *ZONES)
    return tuple(
        ScheduleSpec(name=f"s{place}", expression=rng.choice(CRONS), zone=rng.choice(zones))
        for place in range(rng.randint(1, 2))
    )
