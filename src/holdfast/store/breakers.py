"""Frozen rows of breakers: what each node says of its own, what a person holds, and what the fleet has agreed on."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.kernel.show import show
from holdfast.store.quota import DAY, Pace

NODES_SHOWN = 50  # of one guard in a listing
KEYS_SHOWN = 5
KEYS_COUNTED = 10_000  # nobody waits for a longer count
JOBS_COUNTED = 1000  # the same of who waits for a page
_INT8 = 2**63


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerReport(msgspec.Struct, frozen=True):
    """What one node says of its breaker."""

    guard: str
    state: BreakerState
    generation: int = 0  # the node's own
    open_for: float = 0.0  # seconds that it stays open
    calls: int = 0  # in its window
    failures: int = 0
    slow: int = 0
    paused: float = 0.0  # share of the last hour in which its limiter was, 0 to 1

    def __post_init__(self) -> None:
        _set(self, "guard", check_name("guard", self.guard))
        _set(self, "state", check_breaker_state(self.state))
        _set(self, "open_for", check_seconds("open_for", self.open_for, 0.0, DAY))
        for kind in ("generation", "calls", "failures", "slow"):
            _set(self, kind, check_int(kind, getattr(self, kind), 0, _INT8 - 1))
        _set(self, "paused", check_seconds("paused", self.paused, 0.0, 1.0))


class NodeBreaker(msgspec.Struct, frozen=True):
    """What another node has said of its breaker, and when. Nothing of it is older than that node's `ttl`."""

    node: str
    state: BreakerState
    generation: int
    open_for: float
    calls: int
    failures: int
    slow: int
    at: float
    paused: float = 0.0  # share of the last hour


class Hold(msgspec.Struct, frozen=True):
    """A person keeps the breaker open or closed."""

    state: BreakerState
    by: str
    at: float


class FleetBreaker(msgspec.Struct, frozen=True, kw_only=True):
    """What a node is told of one guard."""

    guard: str
    generation: int = 0  # of the fleet's state: `open_fleet` and `close_fleet` name it
    reset: int = 0  # the generation that a person's reset began: who has seen none as high starts anew
    opened_until: float | None = None
    open_for: float = 0.0  # seconds that are left until then
    held: Hold | None = None
    others: tuple[NodeBreaker, ...] = ()  # by name


class Probe(msgspec.Struct, frozen=True):
    """A permit for one call while the fleet's breaker is half open. Give it back with `probed`, whatever came of it."""

    guard: str
    node: str
    token: int
    until: float


class GuardRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A guard as a person looks at it."""

    name: str
    generation: int = 0
    opened_until: float | None = None
    held: Hold | None = None
    nodes: tuple[NodeBreaker, ...] = ()  # by name, the first NODES_SHOWN
    nodes_number: int = 0
    probes: int = 0  # permits that are out
    keys: int = (
        0  # of its limiter, counted up to KEYS_COUNTED; those that nobody asked for lately are forgotten
    )
    slowed: int = 0  # of these, those for which the other side has asked for less
    slowest: tuple[Pace, ...] = ()  # the first KEYS_SHOWN of them
    paused: int = 0
    longest: tuple[Pace, ...] = ()  # the KEYS_SHOWN that are paused for longest


class GuardSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One guard, and one key of its limiter, as a page shows it: no more than is read in a moment."""

    name: str
    key: str
    now: float
    known: bool = False  # whether anybody has heard of it
    opened_at: float | None = None  # also when that is over, and nobody has found out yet
    opened_until: float | None = None  # None: it is not open for all
    held: Hold | None = None
    nodes: int = 0  # processes that are heard of,
    nodes_open: int = 0  # and of these, those whose own breaker is open
    calls: int = 0  # in the windows of those,
    failures: int = 0  # and of these
    rate: float | None = None  # of the key, when the other side has asked for less
    paused: float = 0.0
    in_row: int = 0
    jobs: int = 0  # that are held under it, counted up to JOBS_COUNTED


_set = msgspec.structs.force_setattr


def check_breaker_state(state: Any) -> BreakerState:
    if not isinstance(state, str) or state not in BreakerState.__members__.values():
        raise UsageError(f"A breaker's state is one of {', '.join(BreakerState)}; not {show(state)}.")
    return BreakerState(state)


def check_hold(state: Any) -> BreakerState:
    found = check_breaker_state(state)
    if found is BreakerState.HALF_OPEN:
        raise UsageError("A breaker is held open or closed, not 'half_open'.")
    return found


def check_probe(probe: Any) -> None:
    if not isinstance(probe, Probe):
        raise UsageError(f"A probe is what probe() gave, not {show(probe)} ({type(probe).__name__}).")
    check_name("guard", probe.guard)
    check_int("The token of a probe", probe.token, 0, _INT8 - 1)
