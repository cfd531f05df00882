"""Which faults the guards of a run have met: an error that ends the run is a guard's fault only if its guard has seen such a one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from holdfast.guards.faults import Fault


class Witness:
    """Of one run, on whichever threads its calls are made."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: set[tuple[str, Fault]] = set()

    def add(self, guard: str, fault: Fault) -> None:
        self._seen.add((guard, fault))

    def has_seen(self, guard: str, fault: Fault) -> bool:
        return (guard, fault) in self._seen


_witness: ContextVar[Witness | None] = ContextVar("holdfast_witness", default=None)


@contextmanager
def witnessing(witness: Witness | None) -> Generator[None, None, None]:
    """Calls inside that fail are seen by it."""
    mark = _witness.set(witness)
    try:
        yield
    finally:
        _witness.reset(mark)


def met(guard: str, fault: Fault) -> None:
    """A call has failed so."""
    if (witness := _witness.get()) is not None:
        witness.add(guard, fault)
