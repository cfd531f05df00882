"""What a seed decides of guards: how each is declared, when the provider misbehaves and how, and how much it is called."""

from __future__ import annotations

import msgspec

from holdfast.jobs.rates import NAME

USERS = ("ada", "bob")  # whom a limiter with `per` tells apart


class GuardSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one guard, the same on every node."""

    name: str
    rate: float
    burst: float
    floor: float | None
    ceiling: float | None
    per: str | None
    longest_pause: float
    breaker: dict[str, float | int]
    bulkhead: tuple[int, int] | None  # permits, and how many may wait
    attempts: int
    budget: int
    timeout: float
    deadline: float
    pause: tuple[float, float] | None = (
        None  # the first and the longest, after a 429 that does not say for how long
    )
    uncharged: bool = False  # whether faults of its calls charge its jobs nothing, so many times


class RateSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A task with `rate=`, the same on every node. Its jobs make no call."""

    task: str
    number: float
    per: str | None

    @property
    def name(self) -> str:
        """Of its limiter."""
        return NAME.format(self.task)

    @property
    def given(self) -> float | tuple[str, float]:
        return self.number if self.per is None else (self.per, self.number)


class Phase(msgspec.Struct, frozen=True, array_like=True):
    """What the provider does for a while; to one node only, or to all (None)."""

    begin: float
    end: float
    how: str
    node: int | None = None


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    guards: tuple[GuardSpec, ...]
    phases: tuple[Phase, ...]
    crowd: int  # calls that come together, while faults strike
    gap: float  # seconds, about, between two crowds on one node
    cancels: float  # the share of calls whose caller does not wait for the end
    jobs: bool  # whether workers with guarded tasks run, too
    rates: tuple[RateSpec, ...] = ()  # of tasks of those workers

    def phase(self, moment: float, node: int) -> str:
        """How the provider is for this node."""
        for each in self.phases:
            if each.begin <= moment < each.end and each.node in (None, node):
                return each.how
        return "well"
