"""Frozen rows of steps and effects: what a job has done so far, kept for its later attempts."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds, check_text
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.kernel.show import show

UNDECIDED_SHOWN = 20  # of one job in a listing
PLAN_LIMIT = 64 * 1024  # bytes of JSON text
MOST_TRIES = 1_000_000
LAST_CALL = 2**31 - 2  # one more may be counted when it is read
MOST_STEPS = 10_000  # of one job: a later attempt reads all of them
LAST_NUMBER = 2 * MOST_STEPS  # of a saga that undoes all of them: each undo is a step too


class Kind(StrEnum):
    """What may be done again when nobody knows whether it was done."""

    STEP = "step"  # anything inside may be repeated until its result is recorded
    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    KEYED = "keyed"  # the other side recognises its key


class Progress(StrEnum):
    """How far a step is."""

    BEGUN = "begun"  # its call may have been made: an effect's intent
    SOUGHT = "sought"  # its call may have been made, and since then it was looked for in vain
    UNKNOWN = "unknown"  # its call may have been made, and a person must say
    DONE = "done"  # its result is recorded
    RESOLVED = "resolved"  # it was done, says a person, who gave its result
    ASIDE = "aside"  # its result is recorded, on a way that its task has left by failing
    FAILED = "failed"  # its call is known to have had no effect; it may be made again
    HANDLED = "handled"  # it failed, and the task went on without it: that stays so


OPEN = (Progress.BEGUN, Progress.SOUGHT, Progress.UNKNOWN)  # nobody knows whether it was done


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a run writes about one of its steps."""

    name: str
    number: int  # its place among the job's steps, by their first beginning
    kind: Kind = Kind.STEP
    progress: Progress = Progress.DONE
    branch: str = ""  # the step that began the coroutine it was asked in; none: the task itself
    fingerprint: str = ""  # of what an effect's call was given
    result: str | None = None  # JSON text
    plan: str | None = None  # of a saga's step: how it is undone, as JSON text; None leaves what was written
    tries: int = 0  # that have failed, as far as somebody has to know
    error: str | None = None  # of the last one
    calls: int = 0  # that were made, also by earlier runs; what was written of more stays
    intent: bool = False  # another call may be made from now on
    took: float | None = None  # seconds since the last call began, of one that had no intent

    def __post_init__(self) -> None:
        check_name("step", self.name)
        check_int("The number of a step", self.number, 0, LAST_NUMBER)
        for value, allowed in ((self.kind, Kind), (self.progress, Progress)):
            if not isinstance(value, allowed):
                raise UsageError(f"{allowed.__name__} is one of {', '.join(allowed)}; not {show(value)}.")
        if self.branch != "":
            check_name("branch", self.branch)
        check_text("fingerprint", self.fingerprint, 100)
        if self.result is not None:
            check_text("result", self.result, RESULT_LIMIT)
        if self.plan is not None:
            check_text("plan", self.plan, PLAN_LIMIT)
        check_int("The tries of a step", self.tries, 0, MOST_TRIES)
        if self.error is not None:
            check_text("error", self.error, RESULT_LIMIT)
        check_int("The calls of a step", self.calls, 0, LAST_CALL)
        if self.took is not None:
            check_seconds("took", self.took)


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A step as it is stored. Times are seconds since 1970 on the database's clock."""

    name: str
    number: int
    kind: Kind
    progress: Progress
    branch: str
    fingerprint: str
    result: str | None
    token: int  # of the run that wrote it last
    first_at: float  # when it was first begun
    at: float  # when it was written last
    now: float  # when it was read
    plan: str | None = None
    tries: int = 0
    error: str | None = None
    begun_at: float | None = None  # when the last call that counted began; None: none was made
    calls: int = 0  # that were made, or may have been; one that a guard refused before is none
    looks: int = 0  # since it is unknown: how often it was looked up again, in vain


class Undecided(msgspec.Struct, frozen=True):
    """An effect of an unknown job that waits for a person."""

    job_id: str
    name: str
    first_at: float  # when it was first begun
    at: float  # since when nobody knows of it


class Resolved(msgspec.Struct, frozen=True):
    """What became of a job whose unknown effect a person has decided about."""

    job_id: str
    outcome: Literal["queued", "still_unknown", "not_unknown", "no_such_effect", "say_which"]
    open: tuple[str, ...] = ()  # its effects that wait for a decision
