"""Another time or priority for a queued job: the wish, and where the job waits from then on. Both stores ask here."""

from __future__ import annotations

import msgspec

from holdfast.kernel.clock import now
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.store.states import Held


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What is None stays as it is."""

    at: float | None = None  # a moment
    delay: float | None = None  # or seconds from now, on the database's clock
    priority: int | None = None

    def __post_init__(self) -> None:
        if self.at is not None and self.delay is not None:
            raise UsageError(f"Give delay or at, not both: delay={show(self.delay)}, at={show(self.at)}.")
        if self.at is None and self.delay is None and self.priority is None:
            raise UsageError("Nothing to move: give at, delay or priority.")

    @property
    def is_timed(self) -> bool:
        return self.at is not None or self.delay is not None

    @property
    def is_soon(self) -> bool:
        """The process's own clock is good enough for a hint."""
        return self.delay == 0 or (self.at is not None and self.at <= now())


class Place(msgspec.Struct, frozen=True):
    """Where a queued job waits, as far as another time changes it."""

    held: Held | None
    in_line: bool  # it has an order that is not one of times, and it is not its turn
    shares: bool  # it has a concurrency key or a tenant, or needs a turn as soon as it is due


def place_after(place: Place, *, due: bool) -> Held | None:
    """By what it is held when it has its new time.

    One in line waits for its turn first, whatever its time. One that is due and has waited for its time only is ready, or
    looked at again; what else holds it still does.
    """
    if place.in_line:
        return place.held
    if not due:
        return Held.TIME
    if place.held is Held.TIME:
        return Held.ARRIVED if place.shares else None
    return place.held
