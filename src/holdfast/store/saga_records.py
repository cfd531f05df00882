"""Frozen rows of sagas: what is started, how far it is, what it waits for, and what people decide about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds, check_text
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.kernel.show import show, storable
from holdfast.store.records import NewJob

WAITS_LIMIT = 500  # characters of what a saga waits for, in words
_set = msgspec.structs.force_setattr


class SagaState(StrEnum):
    RUNNING = "running"  # on its way: its job is ready, or runs
    WAITING = "waiting"  # for a time, a signal, an event or another saga
    COMPENSATING = "compensating"  # what it has done is being undone
    DONE = "done"  # all of it
    UNDONE = "undone"  # all that it had begun
    NEEDS_OPERATOR = "needs_operator"  # neither goes on by itself: a person decides
    PARKED = "parked"  # its code has changed under it: it looks again by itself; or its job is dead: a person lets it go on


OVER = frozenset({SagaState.DONE, SagaState.UNDONE})
STUCK = frozenset({SagaState.NEEDS_OPERATOR, SagaState.PARKED})


class NewSaga(msgspec.Struct, frozen=True, kw_only=True):
    """One saga to store, with the job that carries it. It checks itself when built."""

    id: str
    name: str
    job: NewJob
    timeout: float | None = None  # seconds from now
    parent: str | None = None  # the id of the saga that starts it

    def __post_init__(self) -> None:
        _set(self, "id", check_name("saga", self.id))
        _set(self, "name", check_name("saga", self.name))
        if not isinstance(self.job, NewJob):
            raise UsageError(f"The job of a saga is a NewJob, not {show(self.job)}.")
        if self.job.keyed or not self.job.is_batchable or self.job.expires is not None:
            raise UsageError("The job of a saga has no keys and does not expire: its saga sees to that.")
        if self.timeout is not None:
            _set(self, "timeout", check_seconds("timeout", self.timeout))
        if self.parent is not None:
            _set(self, "parent", check_name("saga", self.parent))


class StartedSaga(msgspec.Struct, frozen=True):
    id: str
    job_id: str | None  # None: refused, since its parent is gone, over or being undone
    created: bool  # False: a saga with this id was there already
    name: str | None = None  # of the saga that has this id


class SagaRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A saga as it is stored. Times are seconds since 1970 on the database's clock."""

    id: str
    name: str
    job_id: str
    state: SagaState
    undoing: bool  # it was decided to compensate
    started_at: float
    at: float  # when its state was written last
    decided_at: float | None  # when it was decided to compensate
    finished_at: float | None
    deadline: float | None
    asked: str | None  # why someone wants it undone
    pivot: str | None  # the step that was passed, and after which there is no way back
    waits: str | None  # for what, in words
    result: str | None  # JSON text
    error: str | None  # the last one
    cause: str | None  # why it is undone
    parent: str | None
    correlation_id: str | None
    now: float  # when it was read


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a saga, as its run decides."""

    state: SagaState
    undoing: bool = False  # it is decided to compensate, from now on and for good
    error: str | None = None  # None leaves what was written
    result: str | None = None
    pivot: str | None = None
    waits: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.state, SagaState):
            raise UsageError(f"The state of a saga is one of {', '.join(SagaState)}; not {show(self.state)}.")
        if not isinstance(self.undoing, bool):
            raise UsageError(f"undoing is True or False, not {show(self.undoing)}.")
        if self.state is SagaState.COMPENSATING and not self.undoing:
            raise UsageError("A saga that compensates is undoing.")
        for kind in ("error", "waits"):
            if (text := getattr(self, kind)) is not None:
                _set(self, kind, _words(kind, text))
        if self.waits is not None:
            _set(self, "waits", self.waits[:WAITS_LIMIT])
        if self.result is not None:
            check_text("result", self.result, RESULT_LIMIT)
        if self.pivot is not None:
            _set(self, "pivot", check_name("step", self.pivot))


def _words(kind: str, text: object) -> str:
    if not isinstance(text, str):
        raise UsageError(f"{kind} is text, not {show(text)} ({type(text).__name__}).")
    return storable(text)


class Rest(msgspec.Struct, frozen=True):
    """Put the job back, uncharged: for so many seconds; None: until somebody wakes it."""

    after: float | None = None

    def __post_init__(self) -> None:
        if self.after is not None:
            _set(self, "after", check_seconds("after", self.after))


class Written(msgspec.Struct, frozen=True):
    """What was written under a claim that is still held."""

    kept: bool  # the step; False: it was done before, and stays as it was
    moved: bool  # the saga; False: it is over, or someone wants it undone and it would be done
    asked: str | None  # why someone wants it undone


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """What a step of a saga waits for."""

    kind: Literal["signal", "saga", "event"]
    name: str  # of the signal; the id of the saga; the type of the event
    key: str | None = None  # of the event
    after: int = 0  # only events behind this position of the log
    give_up: bool = False  # its time is over: when there is nothing now, that is how it ends
    undone: bool = False  # of a saga: only that it was undone counts, not that it is done

    def __post_init__(self) -> None:
        if self.kind not in ("signal", "saga", "event"):
            raise UsageError(f"A saga waits for a signal, a saga or an event; not {show(self.kind)}.")
        _set(self, "name", check_name(self.kind, self.name))
        if self.key is not None:
            _set(self, "key", check_name("key", self.key))
        check_int("The position", self.after, 0, 2**63 - 1)
        for flag in ("give_up", "undone"):
            if not isinstance(value := getattr(self, flag), bool):
                raise UsageError(f"{flag} is True or False, not {show(value)}.")


class Heard(msgspec.Struct, frozen=True):
    """The answer to a wait. What has come is recorded with the step."""

    result: str | None  # JSON text: what has come, or that the time is over; None: nothing yet
    asked: str | None = None  # why someone wants the saga undone


class SignalRecord(msgspec.Struct, frozen=True):
    name: str
    value: str  # JSON text
    at: float
    taken_by: str | None  # the step that has it


class SagaCount(msgspec.Struct, frozen=True):
    name: str
    state: SagaState
    number: int


class SagaAnswer(msgspec.Struct, frozen=True):
    """What became of a saga that a person, or another saga, wanted something of."""

    id: str
    outcome: Literal[
        "accepted", "missing", "over", "too_late", "undoing", "not_stuck", "no_such_step", "no_job", "ending"
    ]
    state: SagaState | None = None  # as it is now
    steps: tuple[str, ...] = ()  # those that can be decided about
