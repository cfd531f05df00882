"""What a seed decides for the kind `sagas`: the nodes, their sagas, who starts, signals and cancels them, and what goes wrong."""

from __future__ import annotations

import random
from itertools import count

from holdfast.testing.simulation.events.spec import EventSpec
from holdfast.testing.simulation.faults import Fault, around_enqueues, make_faults
from holdfast.testing.simulation.plan import CHAOS, QUEUES, Op, Plan
from holdfast.testing.simulation.sagas.faults import saga_faults
from holdfast.testing.simulation.sagas.spec import BRIEF, PAID, TICKED, TRIP, Act, SagaSpec, Story, every
from holdfast.testing.simulation.service.acting import settle

_EPOCH = 1_790_000_000.0


def make_plan(seed: int) -> Plan:
    rng = random.Random(f"sagas plan:{seed}")
    nodes = rng.choice((2, 2, 3))
    story = _story(rng)
    ops = _ops(rng, nodes, story)
    faults = _faults(rng, nodes, ops)
    return Plan(
        seed=seed,
        kind="sagas",
        epoch=_EPOCH + rng.randrange(86_400),
        skews=tuple(round(rng.uniform(-3600, 3600), 3) for _ in range(nodes)),
        ops=ops,
        queues=QUEUES[:1],
        faults=faults,
        schedules=(),
        window=3,
        slots=rng.choice((2, 4)),
        grace=rng.choice((0.0, 2.0)),
        max_tasks=(None,) * nodes,
        supervised=(False,) * nodes,
        settle=settle(faults),
        story=story,
    )


def _faults(rng: random.Random, nodes: int, ops: tuple[Op, ...]) -> tuple[Fault, ...]:
    faults = make_faults(rng, nodes, CHAOS - 4, scheduled=False)
    starts = [(op.at, op.node) for op in ops if op.kind == "start saga"]
    faults = (*faults, *around_enqueues(rng, starts, len(faults)))
    return (*faults, *saga_faults(rng, nodes, len(faults)))


# --- what sagas do ---


def _story(rng: random.Random) -> Story:
    kinds = rng.sample(list(_ACTS), rng.randint(2, 4))  # a few at a time: swarms find more than soups
    sagas = tuple(_saga(rng, f"s{number}", kinds) for number in range(rng.randint(2, 5)))
    undone = [f"{saga.id}/{act.name}" for saga in sagas for act in every(saga.acts, deep=False) if act.undo]
    return Story(
        sagas=sagas,
        stubborn=tuple(each for each in undone if rng.random() < 0.12),
        mended=rng.random() < 0.6,
        decides=rng.random() < 0.7,
        prunes=rng.random() < 0.15,
    )


def _saga(rng: random.Random, saga_id: str, kinds: list[str]) -> SagaSpec:
    """Steps, what else this seed has, and at the end, in half of them, a failure."""
    numbers = count()
    acts: list[Act] = [_step(rng, numbers)]
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(("step", *kinds))
        acts.append(_ACTS[kind](rng, numbers, saga_id))
    if rng.random() < 0.5:
        acts.append(Act(kind="fail"))
    return SagaSpec(id=saga_id, name=BRIEF if rng.random() < 0.2 else TRIP, acts=tuple(acts))


def _step(rng: random.Random, numbers: count[int], *, may_catch: bool = True) -> Act:
    """Most can be undone by arguments. By its result only one of which the engine must know whether it was done."""
    how = rng.choices(("args", "result", "plain", "keyed"), (6, 3, 2, 1))[0]
    shape: dict[str, object] = {
        "args": {
            "undo": "args",
            "policy": rng.choice((None, None, "at_most_once")),
            "looks": rng.random() < 0.3,
        },
        "result": {"undo": "result", "policy": "at_most_once", "looks": rng.random() < 0.7},
        "plain": {},
        "keyed": {"undo": "args", "policy": "keyed"},
    }[how]  # type: ignore[assignment]
    return Act(
        kind="step",
        name=f"x{next(numbers)}",
        tries=rng.choice((1, 2, 3)),
        pause=rng.choice((0.2, 0.2, 2.0)),
        timeout=rng.choice((None, None, 1.5)),
        catches=may_catch and rng.random() < 0.15,
        **shape,  # type: ignore[arg-type]
    )


def _pivot(rng: random.Random, numbers: count[int], _: str) -> Act:
    looks = rng.random() < 0.6
    policy = rng.choice((None, "at_most_once"))
    return Act(kind="step", name=f"p{next(numbers)}", pivot=True, tries=2, looks=looks, policy=policy)


def _wait(rng: random.Random, _: count[int], saga_id: str) -> Act:
    type_ = rng.choice((PAID, PAID, TICKED))
    key = saga_id if type_ == PAID and rng.random() < 0.8 else None
    timeout = rng.choice((None, 4.0, 15.0, 60.0))
    return Act(kind="wait", name=type_, key=key, timeout=timeout, catches=rng.random() < 0.3)


def _signal(rng: random.Random, _: count[int], __: str) -> Act:
    return Act(kind="signal", timeout=rng.choice((None, 4.0, 15.0, 60.0)), catches=rng.random() < 0.3)


def _child(rng: random.Random, numbers: count[int], saga_id: str) -> Act:
    """Its steps are named apart: they are of another saga."""
    inner = count()
    acts = [_step(rng, inner) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.3:
        acts.append(
            _signal(rng, inner, "")
            if rng.random() < 0.5
            else Act(kind="sleep", seconds=rng.choice((0.5, 3.0)))
        )
    if rng.random() < 0.2:
        acts.append(_pivot(rng, inner, ""))
    if rng.random() < 0.25:
        acts.append(Act(kind="fail"))
    return Act(kind="child", name=f"{saga_id}/c{next(numbers)}", acts=tuple(acts), catches=rng.random() < 0.3)


def _gather(rng: random.Random, numbers: count[int], saga_id: str) -> Act:
    branches = tuple(
        tuple(_of_branch(rng, numbers, saga_id) for _ in range(rng.randint(1, 2)))
        for _ in range(rng.randint(2, 3))
    )
    return Act(kind="gather", branches=branches, catches=rng.random() < 0.15)


def _of_branch(rng: random.Random, numbers: count[int], saga_id: str) -> Act:
    kind = rng.choice(("step", "step", "step", "sleep", "signal", "wait", "child"))
    return _ACTS[kind](rng, numbers, saga_id)


_ACTS = {
    "step": lambda rng, numbers, _: _step(rng, numbers),
    "sleep": lambda rng, _, __: Act(kind="sleep", seconds=rng.choice((0.1, 1.0, 3.0, 8.0))),
    "linger": lambda rng, _, __: Act(kind="linger", seconds=rng.choice((0.5, 3.0))),
    "wait": _wait,
    "signal": _signal,
    "child": _child,
    "gather": _gather,
    "pivot": _pivot,
}


# --- what comes to them from outside ---


def _ops(rng: random.Random, nodes: int, story: Story) -> tuple[Op, ...]:
    numbers = count()
    made: list[Op] = []

    def add(kind: str, at: float, **what: object) -> None:
        node = rng.randrange(nodes)
        made.append(Op(number=next(numbers), at=round(at, 3), node=node, kind=kind, **what))  # type: ignore[arg-type]

    for saga in story.sagas:
        begin = rng.uniform(0.5, CHAOS * 0.6)
        if rng.random() < 0.3:
            add("roll back saga", max(0.1, begin - 1.0), name=saga.id, seconds=0.2)
        add(rng.choice(("start saga", "start saga", "start saga in transaction")), begin, name=saga.id)
        if rng.random() < 0.3:
            add("start saga", begin + rng.choice((0.0, 0.05, 2.0)), name=saga.id)
        for act in every(saga.acts, deep=False):
            _answer(rng, add, saga, act, begin)
            for inner in act.acts:
                if inner.kind == "signal":
                    add("signal saga", _soon(rng, begin), name=act.name)
        if rng.random() < 0.2:
            add("cancel saga", _soon(rng, begin), name=saga.id)
    if rng.random() < 0.2:
        add("drain", rng.uniform(2, CHAOS - 4))
    return tuple(made)


def _answer(rng: random.Random, add: object, saga: SagaSpec, act: Act, begin: float) -> None:
    """What a wait waits for comes before it, at about the same time, after it, or not in time."""
    assert callable(add)
    if act.kind == "signal" and rng.random() < 0.85:
        add("signal saga", _soon(rng, begin), name=saga.id)
    if act.kind == "wait":
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            key = saga.id if act.name == PAID else None
            add("emit to sagas", _soon(rng, begin), events=(EventSpec(type=act.name, key=key),))


def _soon(rng: random.Random, begin: float) -> float:
    return max(0.2, begin + rng.choice((-0.3, 0.3, 1.0, 2.0, 4.0, 9.0)) * rng.uniform(0.5, 1.2))
