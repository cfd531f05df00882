"""How a guard of a fleet is, as `hf.guards.look` tells it."""

from __future__ import annotations

import msgspec

from holdfast.guards.ports import State


class GuardLook(msgspec.Struct, frozen=True, kw_only=True):
    """A guard of the fleet, for one key of its limiter, or for calls without a key."""

    name: str
    key: str = ""
    state: State = State.CLOSED  # of its breaker, for all
    since: float | None = None  # when it was opened, or a person began to hold it
    why: str | None = None  # it does not let all calls through at the full rate
    rate: float | None = (
        None  # calls a second that the other side has left us; None: it has not asked for less
    )
    paused_until: float | None = None  # no calls of this key before
    held: int = 0  # jobs that wait under it, counted up to 1,000; without a key, those of all keys
    held_by: str | None = None  # the person who keeps the breaker open or closed

    @property
    def interval(self) -> float | None:
        """Seconds between two calls, at that rate."""
        return None if self.rate is None else 1 / self.rate
