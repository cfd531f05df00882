"""What a seed decides of sagas: what each of them does, how each of its steps is undone, and what comes to it from outside."""

from __future__ import annotations

import msgspec

PAID, TICKED = "order.paid", "clock.ticked"  # events with a key, which is the saga's id, and without
TYPES = (PAID, TICKED)
GO = "go"  # the signal that sagas wait for
TRIP, BRIEF, LEG = (
    "trip",
    "brief",
    "leg",
)  # the sagas of the program: a brief one has a timeout, a leg is a child
TIMEOUT = 9.0  # seconds of a brief one
UNDO_TRIES = 3


class Act(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that a saga does. The names of steps are unique in their saga."""

    kind: str  # step, sleep, wait, signal, child, gather, fail, linger
    name: str = ""  # of a step; the type of an event; the id of a child
    undo: str = ""  # how a step is undone: by arguments, by its result; nothing: not at all
    policy: str | None = None
    looks: bool = False  # it can be looked up whether the step was done
    pivot: bool = False
    tries: int = 1
    pause: float = 0.2  # seconds, about, between two of them
    timeout: float | None = None  # seconds of a step's call, or of a wait
    catches: bool = False  # the saga goes on without it
    seconds: float = 0.0  # that it sleeps
    key: str | None = None  # of an event
    acts: tuple[Act, ...] = ()  # of a child
    branches: tuple[tuple[Act, ...], ...] = ()  # of a gather


class SagaSpec(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str  # trip, brief
    acts: tuple[Act, ...]


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """Of the kind `sagas`."""

    sagas: tuple[SagaSpec, ...]
    stubborn: tuple[str, ...] = ()  # steps that can never be undone before everything is healed: `saga/step`
    mended: bool = True  # they can be after it
    decides: bool = True  # a person lets go on what needs one
    prunes: bool = False  # a person forgets what is over, far sooner than a program would


def every(acts: tuple[Act, ...], *, deep: bool = True) -> list[Act]:
    """All of them, with those of branches; `deep`: and those of children."""
    found: list[Act] = []
    for act in acts:
        found.append(act)
        for branch in act.branches:
            found += every(branch, deep=deep)
        if deep:
            found += every(act.acts, deep=deep)
    return found
