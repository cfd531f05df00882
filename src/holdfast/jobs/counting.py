"""Where ended runs are counted, when somebody counts: metrics do. Else nobody pays for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from holdfast.kernel.outcomes import Outcome
from holdfast.store.records import Claim, Finish


class Timed(Protocol):
    """A run, as far as it is counted."""

    @property
    def took(self) -> float | None:
        """Seconds; None: it has not ended."""

    @property
    def waited(self) -> float:
        """Seconds from when it was due until it began."""


class Flight(Protocol):
    """Ends on their way to the store: so it can be told what became of them when this process is killed meanwhile."""

    def sent(self, finishes: Sequence[Finish]) -> None:
        """These are about to be written. What was said before does not count any more."""

    def ended(
        self,
        finishes: Sequence[Finish],
        accepted: Sequence[bool | None],
        runs: Mapping[tuple[str, int], Timed],
    ) -> None:
        """The store has answered: what it has accepted is counted."""


class Counting(Protocol):
    def flight(self) -> Flight: ...


class Holder(Protocol):
    """Who runs a job that may be ended by a transaction of its own."""

    flight: Flight | None
    apart: Outcome | None


_counting: Counting | None = None


def count_by(counting: Counting | None) -> None:
    """Workers that start from now on tell it of each end."""
    global _counting  # noqa: PLW0603  one for each process, as the subscribers of notes are
    _counting = counting


def is_counted() -> bool:
    return _counting is not None


def new_flight() -> Flight | None:
    return None if _counting is None else _counting.flight()


def sent_apart(holder: Holder | None, claim: Claim, outcome: Outcome) -> None:
    """This end is about to be written in a transaction of its own."""
    if _counting is None or holder is None:
        return
    if holder.flight is None:
        holder.flight = _counting.flight()
    holder.apart = outcome
    holder.flight.sent([Finish(claim, outcome)])
