"""What a seed decides for the kind `guards`: the nodes, their guards, the provider's phases, the calls and the jobs."""

from __future__ import annotations

import random

import msgspec

from holdfast.testing.simulation.faults import make_faults
from holdfast.testing.simulation.guards.spec import USERS, GuardSpec, Phase, RateSpec, Traffic
from holdfast.testing.simulation.plan import CHAOS, QUEUES, Beat, JobSpec, Op, Plan

_EPOCH = 1_790_000_000.0


def make_plan(seed: int) -> Plan:
    rng = random.Random(f"guards plan:{seed}")
    nodes = rng.choice((2, 3, 3, 4))
    traffic = _traffic(rng, nodes, seed)
    epoch = _EPOCH + rng.randrange(86_400)
    skews = tuple(round(rng.uniform(-3600, 3600), 3) for _ in range(nodes))
    ops = _ops(rng, nodes, traffic)
    return Plan(
        seed=seed,
        kind="guards",
        epoch=epoch,
        skews=skews,
        ops=(*ops, *_rated_ops(seed, nodes, traffic, len(ops))),
        queues=QUEUES[:1],
        faults=make_faults(rng, nodes, CHAOS - 4, scheduled=False),
        schedules=(),
        window=3,
        slots=3,
        grace=rng.choice((0.0, 2.0)),
        max_tasks=(None,) * nodes,
        supervised=(False,) * nodes,
        traffic=traffic,
    )


def _traffic(rng: random.Random, nodes: int, seed: int) -> Traffic:
    guards = tuple(
        _patient(seed, _within(seed, _guard(rng, f"g{number}"))) for number in range(rng.choice((1, 1, 1, 2)))
    )
    rate = sum(guard.rate for guard in guards)
    crowd = rng.choice((1, 2, 4, 8))
    offered = rate * rng.choice((0.5, 1.0, 2.0)) / nodes  # calls a second of each node
    jobs = rng.random() < 0.4
    return Traffic(
        guards=guards,
        phases=_phases(rng, nodes),
        crowd=crowd,
        gap=round(min(crowd / offered, 6.0), 3),
        cancels=rng.choice((0.0, 0.1, 0.3)),
        jobs=jobs,
        rates=_rates(seed) if jobs else (),
    )


def _rates(seed: int) -> tuple[RateSpec, ...]:
    """Drawn apart, so that the rest of a plan does not change with it."""
    rng = random.Random(f"guards rates:{seed}")
    number = rng.choice((0.5, 1.0, 2.0, 4.0))
    return (RateSpec(task="r0", number=number, per="user:{user}" if rng.random() < 0.3 else None),)


def _guard(rng: random.Random, name: str) -> GuardSpec:
    rate = rng.choice((2.0, 4.0, 8.0))
    adapts = rng.random() < 0.4
    timeout = rng.choice((0.5, 1.0))
    return GuardSpec(
        name=name,
        rate=rate,
        burst=rng.choice((1.0, 2.0, rate, 3 * rate)),
        floor=rate / 2
        if adapts
        else None,  # from far below, the few answers there take a minute to bring it back
        ceiling=rate * rng.choice((1, 2)) if adapts else None,
        per="user:{user}" if rng.random() < 0.3 else None,
        longest_pause=rng.choice((1.0, 4.0, 10.0)),
        breaker=_breaker(rng, timeout),
        bulkhead=rng.choice((None, (2, 0), (2, 3), (4, 4))),
        attempts=rng.choice((1, 2, 4)),
        budget=rng.choice((0, 3, 10)),
        timeout=timeout,
        deadline=rng.choice((1.5, 3.0, 5.0)),
    )


def _within(seed: int, spec: GuardSpec) -> GuardSpec:
    """Of the breakers that count failures half do so within a window. Drawn apart, as the rates are."""
    rng = random.Random(f"guards within:{seed}:{spec.name}")
    if "failures" not in spec.breaker or rng.random() < 0.5:
        return spec
    return msgspec.structs.replace(spec, breaker=spec.breaker | {"window": rng.choice((3.0, 10.0))})


def _patient(seed: int, spec: GuardSpec) -> GuardSpec:
    """Some limiters have pauses that grow, and some guards charge nothing for faults. Drawn apart, too."""
    rng = random.Random(f"guards patient:{seed}:{spec.name}")
    pause = (spec.longest_pause / 4, spec.longest_pause) if rng.random() < 0.4 else None
    return msgspec.structs.replace(spec, pause=pause, uncharged=rng.random() < 0.4)


def _breaker(rng: random.Random, timeout: float) -> dict[str, float | int]:
    made: dict[str, float | int] = {
        "cooldown": rng.choice((0.5, 2.0, 4.0)),
        "permits": rng.choice((1, 2, 3)),
        "lease": timeout + rng.choice((0.5, 4.0)),
    }
    if rng.random() < 0.4:
        return made | {"failures": rng.choice((2, 4))}
    made |= {"failure_ratio": rng.choice((0.5, 0.8)), "minimum": rng.choice((3, 6))}
    made |= {"window": rng.choice((3.0, 10.0))} if rng.random() < 0.7 else {"calls": 10}
    return made | ({"slow": timeout / 2, "slow_ratio": 0.6} if rng.random() < 0.5 else {})


_HOW = ("errors", "errors", "flaky", "slow", "hangs", "throttles", "throttles")


def _phases(rng: random.Random, nodes: int) -> tuple[Phase, ...]:
    """One after the other, and some for one node only: it is that node then which is sick."""
    made, at = [], rng.uniform(0, 3)
    while at < CHAOS:
        end = at + rng.choice((1.0, 3.0, 6.0, 12.0)) * rng.uniform(0.7, 1.3)
        node = rng.randrange(nodes) if rng.random() < 0.25 else None
        made.append(Phase(round(at, 3), round(end, 3), rng.choice(_HOW), node))
        at = end + rng.choice((0.0, 2.0, 5.0))
    return tuple(made)


def _ops(rng: random.Random, nodes: int, traffic: Traffic) -> tuple[Op, ...]:
    """Jobs of guarded tasks, and now and then a worker that is asked to leave."""
    made: list[Op] = []
    for number in range(1, 1 + (rng.randint(3, 8) if traffic.jobs else 0)):
        at, node = round(rng.uniform(0.5, CHAOS - 1), 3), rng.randrange(nodes)
        jobs = tuple(_job(rng, traffic) for _ in range(rng.randint(1, 6)))
        made.append(Op(number=number, at=at, node=node, kind="enqueue", jobs=jobs))
    if rng.random() < 0.3:
        at, node = round(rng.uniform(2, CHAOS - 4), 3), rng.randrange(nodes)
        made.append(Op(number=len(made) + 1, at=at, node=node, kind="drain"))
    return tuple(made)


def _rated_ops(seed: int, nodes: int, traffic: Traffic, before: int) -> tuple[Op, ...]:
    """Crowds of jobs that keep to a rate, and nothing else."""
    rng, made = random.Random(f"guards rated jobs:{seed}"), list[Op]()
    for spec in traffic.rates:
        for _ in range(rng.randint(1, 3)):
            at, node = round(rng.uniform(0.5, CHAOS - 1), 3), rng.randrange(nodes)
            number = before + len(made) + 1
            jobs = tuple(_rated_job(rng, spec) for _ in range(rng.randint(1, 10)))
            made.append(Op(number=number, at=at, node=node, kind="enqueue", jobs=jobs))
    return tuple(made)


def _rated_job(rng: random.Random, spec: RateSpec) -> JobSpec:
    user = rng.choice(USERS)
    beat = Beat(rng.choice((0.0, 0.0, 0.3)), "idle")
    key = spec.name if spec.per is None else f"{spec.name}/user:{user}"
    return JobSpec(script=(beat,), task=spec.task, guard=key, user=user)


def _job(rng: random.Random, traffic: Traffic) -> JobSpec:
    """Its script says what it does beside the call: it waits before, or does not call at all."""
    guard = rng.choice(traffic.guards)
    user = rng.choice(USERS)
    beat = Beat(rng.choice((0.0, 0.0, 0.3, 1.5)), rng.choice(("call", "call", "call", "call twice", "idle")))
    key = guard.name if guard.per is None else f"{guard.name}/user:{user}"
    return JobSpec(script=(beat,), task=guard.name, guard=key, user=user)
