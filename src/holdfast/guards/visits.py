"""Whether who was let through to find out has called: a task may end without a call, and then nobody has found out."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar


class Visit:
    """Of a breaker that is not closed, by one run: in which generation of it, and whether a probe was made."""

    __slots__ = ("breaker", "generation", "has_called")

    def __init__(self, breaker: object, generation: int) -> None:
        self.breaker, self.generation = breaker, generation
        self.has_called = False


_visit: ContextVar[Visit | None] = ContextVar("holdfast_visit", default=None)


@contextmanager
def visiting(visit: Visit | None) -> Generator[None, None, None]:
    """A probe of this breaker inside is the visit's."""
    mark = _visit.set(visit)
    try:
        yield
    finally:
        _visit.reset(mark)


def is_probing(breaker: object) -> bool:
    """Whether this call is of a run that finds out, and its probe was made: then it can wait for what that finds."""
    visit = _visit.get()
    return visit is not None and visit.breaker is breaker and visit.has_called


def called(breaker: object) -> None:
    """A probe was admitted."""
    visit = _visit.get()
    if visit is not None and visit.breaker is breaker:
        visit.has_called = True
