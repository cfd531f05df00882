"""Bugs planted on purpose, one at a time: a simulation that does not find them proves nothing."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from holdfast.testing.simulation.mutants import (
    alerts,
    claims,
    contention,
    deliveries,
    effects,
    enqueues,
    events,
    guards,
    looks,
    reading,
    replacing,
    requests,
    sagas,
    waiting,
    workers,
)
from holdfast.testing.simulation.mutants.planting import MUTANTS, Mutant


@contextmanager
def planted(name: str | None) -> Generator[None, None, None]:
    with ExitStack() as stack:
        if name is not None:
            MUTANTS[name].plant(stack)
        yield


def schema_of(name: str | None) -> str:
    return "" if name is None else MUTANTS[name].schema


__all__ = [
    "MUTANTS",
    "Mutant",
    "alerts",
    "claims",
    "contention",
    "deliveries",
    "effects",
    "enqueues",
    "events",
    "guards",
    "looks",
    "planted",
    "reading",
    "replacing",
    "requests",
    "sagas",
    "schema_of",
    "waiting",
    "workers",
]
