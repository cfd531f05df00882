"""What is measured, in which order, and how much of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.systems import HOLDFAST, LIMITS, PEERS, STORES, System

# The most important first: when time runs out, the last ones are left out.
MEASURES = ("drain", "enqueue_one", "enqueue_concurrent", "enqueue_bulk", "latency", "steps", "recovery")
_OF_LIMITS = {"drain", "enqueue_one", "enqueue_bulk"}


@dataclass(frozen=True)
class Size:
    """How long each measurement takes, and how often it is made."""

    rounds: int
    enqueue: float  # seconds
    bulk: float
    drain: float
    samples: int
    idle: float
    minutes: float
    measures: Sequence[str] = MEASURES
    peers_recover: bool = False  # half a minute and more for each of them
    stores: Sequence[str] = STORES

    def options(self, system: System, measure: str) -> dict[str, Any]:
        return {
            "seconds": {"drain": self.drain, "enqueue_bulk": self.bulk}.get(measure, self.enqueue),
            "guess": system.guess,
            "processes": 1 if system.store == "sqlite" else 2,
            "size": system.bulk,
            "samples": self.samples,
            "idle": self.idle,
            "patience": 90.0,
        }


QUICK = Size(rounds=1, enqueue=2.0, bulk=1.5, drain=4.5, samples=220, idle=1.0, minutes=14)
FULL = Size(
    rounds=3, enqueue=5.0, bulk=3.0, drain=7.0, samples=500, idle=3.0, minutes=120,
    peers_recover=True, stores=("postgres", "redis", "redis-fsync", "sqlite"),
)  # fmt: skip
TINY = Size(
    rounds=1, enqueue=0.2, bulk=0.2, drain=0.2, samples=20, idle=0.2, minutes=5, measures=MEASURES[:-1]
)


@dataclass(frozen=True)
class Choice:
    """A part of the plan, for a quick look; nothing chosen is everything."""

    systems: frozenset[str] = field(default_factory=frozenset)
    stores: frozenset[str] = field(default_factory=frozenset)
    measures: frozenset[str] = field(default_factory=frozenset)

    def has(self, system: System, measure: str) -> bool:
        return (
            (not self.systems or system.name in self.systems)
            and (not self.stores or system.store in self.stores)
            and (not self.measures or measure in self.measures)
        )


@dataclass(frozen=True)
class Step:
    system: System
    measure: str


def steps(size: Size, choice: Choice) -> Iterator[Step]:
    """Measure by measure, and store by store within it: what is compared runs within the same minutes."""
    for measure in size.measures:
        for store in size.stores:
            recovers = measure == "recovery"
            for system in _once(store, size) if recovers else _turns(store, size.rounds):
                if _applies(system, measure) and choice.has(system, measure):
                    yield Step(system, measure)


def _turns(store: str, rounds: int) -> Iterator[System]:
    """All in turns. Holdfast and the limit close the last round as well: a slow minute then shows."""
    ours = [system for system in (*LIMITS, *HOLDFAST) if system.store == store]
    for _ in range(rounds):
        yield from ours
        yield from _peers(store)
    yield from reversed(ours)


def _once(store: str, size: Size) -> Iterator[System]:
    """What takes long, and is told in seconds."""
    yield from (system for system in HOLDFAST if system.store == store)
    if size.peers_recover:
        yield from _peers(store)


def _peers(store: str) -> Iterator[System]:
    for system in PEERS:
        if system.store == store:
            yield system
        elif store == "redis-fsync" and system.store == "redis":
            yield system.on(store)


def _applies(system: System, measure: str) -> bool:
    if system.name == "limit":
        return measure in _OF_LIMITS
    if measure == "steps":
        return system.has_steps
    if system.store == "redis-fsync":
        return measure in ("drain", "enqueue_one")
    return measure != "enqueue_bulk" or system.bulk > 0
