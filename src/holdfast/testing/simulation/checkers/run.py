"""What the checkers look at: a finished simulation, as its clients and its database saw it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import msgspec

from holdfast.store.story import Entry as Told
from holdfast.testing.simulation.fleet import Args, NamedArgs
from holdfast.testing.simulation.history import Call, History
from holdfast.testing.simulation.ledger import Entry, Ledger, Made
from holdfast.testing.simulation.plan import JobSpec, Plan


class Violation(msgspec.Struct, frozen=True):
    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


IN_TRANSACTION = 20.0  # seconds: one that was paused writes with the time at which it began
_STALL = 0.55  # seconds for which a slow disk stops everyone, at most


@dataclass
class Life:
    """When a process lived, in virtual seconds, and when it was not itself."""

    opened: float  # its store
    ended: float = float("inf")
    paused: list[tuple[float, float]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


@dataclass
class Run:
    plan: Plan
    history: History
    ledger: Ledger
    ended: float
    unfinished: list[tuple[Any, ...]]  # id, state, held: what has not ended after the heal
    pending: list[str]  # what else has not
    leaked: list[tuple[Any, ...]]  # kind, key, row: what jobs that are over still hold
    remaining: dict[str, str]  # the state of every job at the end
    stories: dict[str, list[Told]]  # of every job that is not forgotten
    crashes: list[str]
    longest_mailbox: int
    file_size: int

    def __post_init__(self) -> None:
        self.told: Any = None  # of events or sagas, made by the first checker that asks
        self.lives = _lives(self)
        self.specs = {op.number: op.jobs for op in self.plan.ops}
        self.healed = next((event.moment for event in self.history.happened("healed")), self.ended)
        steps = [event.moment for event in self.history.happened("fault") if "host clock" in event.data]
        self.host_stepped = steps
        # The disk is everyone's: who wants nothing of it stands still as well while another waits for it.
        self.slow = [
            (event.moment, event.moment + event.data + _STALL) for event in self.history.happened("slow")
        ]
        self.workers = sorted({event.data for event in self.history.happened("booted")})

    def args(self, made: Made) -> Args | NamedArgs:
        if self.plan.kind == "store":
            return msgspec.json.decode(made.args, type=Args)
        return msgspec.json.decode(made.args, type=NamedArgs)

    def spec(self, made: Made) -> JobSpec | None:
        """What the plan said of a job; None for a schedule's."""
        args = self.args(made)
        return None if args.op < 0 else self.specs[args.op][args.place]

    def well(self, process: str, begin: float, end: float) -> bool:
        """Whether a process ran undisturbed: alive, never paused, and each of its calls answered at once."""
        life = self.lives[process]
        # The database's clock is a large number: its seconds are rounded.
        begin, end = begin - 0.01, end + 0.01
        if life.opened > begin - 1.0 or life.ended < end:
            return False
        if any(start < end and begin < stop for start, stop in [*life.paused, *self.slow]):
            return False
        return all(_smooth(call) for call in life.calls if _within(call, begin, end))

    def was_paused(self, call: Call) -> bool:
        """Whether the caller's process stood still at some time between question and answer."""
        end = self.ended if call.answered is None else call.answered.moment
        pauses = self.lives[call.process].paused
        return any(start <= end and call.invoked.moment <= stop for start, stop in pauses)

    def stepped_within(self, begin: float, end: float) -> bool:
        """Whether the database's clock was stepped then."""
        return any(begin - 1.0 <= moment <= end + 1.0 for moment in self.host_stepped)

    def stepped_under(self, entry: Entry) -> bool:
        """Whether it was stepped since the transaction read it that wrote this, if it was one that stays open."""
        return self.stepped_within(entry.moment - IN_TRANSACTION, entry.moment)


def _within(call: Call, begin: float, end: float) -> bool:
    answered = float("inf") if call.answered is None else call.answered.moment
    return call.invoked.moment <= end and answered >= begin


def _smooth(call: Call) -> bool:
    return (
        call.answered is not None and call.kind == "ok" and call.answered.moment - call.invoked.moment < 0.25
    )


def _lives(run: Run) -> dict[str, Life]:
    lives: dict[str, Life] = defaultdict(lambda: Life(0.0))
    paused: dict[str, float] = {}
    for event in run.history.events:
        if event.kind != "event":
            continue
        match event.verb:
            case "booted":
                lives[event.data] = Life(float("inf"))
            case "opened":
                lives[event.data].opened = event.moment
            case "killed" | "draining":
                lives[event.data].ended = min(lives[event.data].ended, event.moment)
                if event.data in paused:
                    lives[event.data].paused.append((paused.pop(event.data), event.moment))
            case "paused":
                paused[event.data] = event.moment
            case "resumed":
                lives[event.data].paused.append((paused.pop(event.data), event.moment))
    for process, begin in paused.items():
        lives[process].paused.append((begin, run.ended))
    for call in run.history.calls:
        lives[call.process].calls.append(call)
    return lives
