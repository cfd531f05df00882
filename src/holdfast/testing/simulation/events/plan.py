"""What a seed decides for the kind `events`: the nodes, who emits what and how, who hears it, and what goes wrong."""

from __future__ import annotations

import random

from holdfast.testing.simulation.events.faults import event_faults
from holdfast.testing.simulation.events.spec import (
    CHANGED,
    FLAWS,
    KEYS,
    NOTED,
    PLACED,
    CacheSpec,
    EventSpec,
    GroupSpec,
    Stream,
    Weather,
)
from holdfast.testing.simulation.faults import Fault, around_enqueues, make_faults
from holdfast.testing.simulation.plan import CHAOS, QUEUES, Op, Plan

_EPOCH = 1_790_000_000.0


def make_plan(seed: int) -> Plan:
    rng = random.Random(f"events plan:{seed}")
    nodes = rng.choice((2, 3, 3, 4))
    stream = _stream(rng)
    ops = _ops(rng, nodes, stream)
    return Plan(
        seed=seed,
        kind="events",
        epoch=_EPOCH + rng.randrange(86_400),
        skews=tuple(round(rng.uniform(-3600, 3600), 3) for _ in range(nodes)),
        ops=ops,
        queues=QUEUES[:1],
        faults=_faults(rng, nodes, ops, stream),
        schedules=(),
        window=3,
        slots=4,
        grace=rng.choice((0.0, 2.0)),
        max_tasks=(None,) * nodes,
        supervised=(False,) * nodes,
        stream=stream,
    )


def _faults(rng: random.Random, nodes: int, ops: tuple[Op, ...], stream: Stream) -> tuple[Fault, ...]:
    faults = make_faults(rng, nodes, CHAOS - 4, scheduled=False)
    emits = [(op.at, op.node) for op in ops if op.kind == "emit"]
    for _ in range(2):
        faults = (*faults, *around_enqueues(rng, emits, len(faults)))
    return (*faults, *event_faults(rng, nodes, len(faults), stream))


# --- who hears, and over what ---

_GROUPS = (
    GroupSpec(name="billing", pattern="order.*", emits=True),
    GroupSpec(name="stock", pattern="order.*"),
    GroupSpec(name="mail", pattern="bill.*", ordered=False),
    GroupSpec(name="outside", pattern="order.*", with_tx=False),
    GroupSpec(name="notes", pattern="note.*", ordered=False),
    GroupSpec(name="newer", pattern="order.*", newer=True),
    GroupSpec(name="grown", pattern="order.*", also="note.*"),
)


def _stream(rng: random.Random) -> Stream:
    groups = tuple(rng.sample(_GROUPS, rng.randint(1, 3)))
    over_broker = rng.random() < 0.5
    tail_lost = round(rng.uniform(6, CHAOS - 2), 3) if over_broker and rng.random() < 0.3 else None
    return Stream(
        transport="broker" if over_broker else "store",
        groups=groups,
        weather=_weather(rng, tail_lost) if over_broker else (),
        tail_lost=tail_lost,
        garbage=_moments(rng, rng.choice((0, 0, 1, 3))) if over_broker else (),
        views=rng.choice(((), ("orders",), ("orders", "totals"))),
        history=rng.random() < 0.5,
        prunes=not over_broker and rng.random() < 0.4,
        cache=_cache(rng) if rng.random() < 0.3 else None,
        holds_key=rng.random() < 0.8,
    )


def _moments(rng: random.Random, number: int) -> tuple[float, ...]:
    return tuple(sorted(round(rng.uniform(2, CHAOS - 1), 3) for _ in range(number)))


_HOW = ("down", "frozen", "slow", "lost answers", "lost answers", "lost acks", "twice", "reordered")


def _weather(rng: random.Random, tail_lost: float | None) -> tuple[Weather, ...]:
    """One after the other. Sometimes nobody has read what is lost."""
    made, at = [], rng.uniform(0, 4)
    if tail_lost is not None and rng.random() < 0.6:
        made.append(Weather(round(tail_lost - 3.0, 3), tail_lost, "gives nothing"))
    while at < CHAOS:
        end = at + rng.choice((1.0, 3.0, 8.0)) * rng.uniform(0.7, 1.3)
        made.append(Weather(round(at, 3), round(end, 3), rng.choice(_HOW)))
        at = end + rng.choice((0.1, 1.0, 4.0))
    return tuple(made)


def _cache(rng: random.Random) -> CacheSpec:
    fresh = rng.choice((1.0, 3.0))
    return CacheSpec(
        on=rng.choice(("memory", "store")),
        fresh=fresh,
        stale=fresh * rng.choice((1.5, 3.0)),
        load=rng.choice((0.05, 0.5, 2.0)),
        fails=rng.choice((0.0, 0.2)),
        gap=rng.choice((0.3, 1.0)),
        crowd=rng.choice((1, 3)),
    )


# --- who emits ---

_OPS = {"emit": 10, "emit in transaction": 10, "emit, then roll back": 3, "emit expecting": 3, "drain": 1}


def _ops(rng: random.Random, nodes: int, stream: Stream) -> tuple[Op, ...]:
    keys = KEYS[: rng.choice((1, 2, 3))]
    made: list[Op] = []
    for number in range(rng.randint(8, 24)):
        at, node = round(rng.uniform(0.5, CHAOS - 2), 3), rng.randrange(nodes)
        kind = rng.choices(list(_OPS), list(_OPS.values()))[0]
        most = {"drain": 0, "emit expecting": 1}.get(kind, rng.choice((1, 1, 2, 4)))
        events = tuple(_event(rng, keys, stream) for _ in range(rng.randint(min(most, 1), most)))
        seconds = round(rng.choice((0.0, 0.0, 0.1, 0.4, 1.5)) * rng.uniform(0.5, 1), 3)
        made.append(Op(number=number, at=at, node=node, kind=kind, events=events, seconds=seconds))
    for at in _moments(rng, rng.choice((0, 1, 2))) if stream.views else ():
        name, node = rng.choice(stream.views), rng.randrange(nodes)
        made.append(Op(number=len(made), at=at, node=node, kind="rebuild", name=name))
    return tuple(made)


def _event(rng: random.Random, keys: tuple[str, ...], stream: Stream) -> EventSpec:
    kind = rng.choice((PLACED, CHANGED, CHANGED, NOTED))
    return EventSpec(
        type=kind,
        key=None if kind == NOTED and rng.random() < 0.7 else rng.choice(keys),
        plays={group.name: _play(rng) for group in stream.groups if rng.random() < 0.5},
        flaw=rng.choice(FLAWS) if stream.transport == "broker" and rng.random() < 0.06 else "",
        bad=bool(stream.views) and rng.random() < 0.06,
    )


_ENDS = ("fail", "fail late", "fail late", "retry", "slow", "long")


def _play(rng: random.Random) -> tuple[str, ...]:
    """Most succeed at last, some never do."""
    if rng.random() < 0.08:
        return ("fail late",) if rng.random() < 0.5 else ("reject",)
    return (
        *(rng.choice(_ENDS) for _ in range(rng.choice((0, 0, 1, 1, 2)))),
        rng.choice(("done", "done", "slow")),
    )
