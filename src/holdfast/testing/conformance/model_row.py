"""One job of the model, and how a store would hand it over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.store.records import AttemptError, Claim, JobRecord, NewJob
from holdfast.store.states import LIVE, Held, State
from holdfast.store.steps import OPEN, Kind, Progress, Step


class Written(NamedTuple):
    """A step as the last run left it."""

    step: Step
    token: int | None


@dataclass
class Row:
    """A job, in any state. `slot` and `has_turn` are what it holds of its keys."""

    job: NewJob
    rank: int
    enqueued_at: float
    run_at: float | None
    expires_at: float | None
    state: State = State.QUEUED
    held: Held | None = None
    attempt: int = 0
    interruptions: int = 0
    strikes: int = 0
    suspect: bool = False
    alone: bool = False
    has_turn: bool = False
    slot: int | None = None
    token: int | None = None
    lease_until: float | None = None
    worker: str | None = None
    started_at: float | None = None
    finished_at: float | None = None
    reason: str | None = None
    result: str | None = None
    progress: float | None = None
    note: str | None = None
    due_at: float | None = None  # the time that was asked for
    words: str | None = None  # why it was put off
    errors: list[AttemptError] = field(default_factory=list)
    steps: dict[str, Written] = field(default_factory=dict)  # of its generation

    @property
    def deadline(self) -> float | None:
        within = None if self.job.within is None else self.enqueued_at + self.job.within
        return min((moment for moment in (self.job.deadline, within) if moment is not None), default=None)

    @property
    def ready(self) -> bool:
        return self.state is State.QUEUED and self.held is None

    @property
    def live(self) -> bool:
        return self.state in LIVE

    @property
    def by_priority(self) -> tuple[int, int]:
        """Its place among others: the highest priority first, then the oldest rank."""
        return -self.job.priority, self.rank

    def claim(self) -> Claim:
        job = self.job
        return Claim(
            job_id=job.id,
            token=self.token or 0,
            lease_until=self.lease_until or 0,
            task=job.task,
            queue=job.queue,
            args=job.args,
            attempt=self.attempt,
            interruptions=self.interruptions,
            alone=self.alone,
            enqueued_at=self.enqueued_at,
            due_later=None if (self.run_at or 0.0) <= self.enqueued_at else self.run_at,
            generation=job.generation,
            deadline=self.deadline,
            ordered=job.ordered,
            concurrency=job.concurrency,
            tenant=job.tenant,
            guard=job.guard,
            correlation_id=job.correlation_id,
            causation_id=job.causation_id,
            trace=job.trace,
            has_steps=bool(self.steps),
        )

    def open_effects(self) -> list[str]:
        """Those of which nobody knows whether they were done."""
        found = [
            step
            for step, _ in self.steps.values()
            if step.progress is Progress.UNKNOWN or (step.kind is Kind.AT_MOST_ONCE and step.progress in OPEN)
        ]
        return [step.name for step in sorted(found, key=lambda step: step.number)]

    def leave_to_person(self) -> list[str]:
        """The same; they are unknown from now on."""
        names = self.open_effects()
        for name in names:
            step, token = self.steps[name]
            self.steps[name] = Written(replace(step, progress=Progress.UNKNOWN), token)
        return names

    def record(self) -> JobRecord:
        """As `get` answers, except for the token, which is the model's own."""
        job = self.job
        return JobRecord(
            id=job.id,
            task=job.task,
            queue=job.queue,
            args=job.args,
            state=self.state,
            held=self.held,
            priority=job.priority,
            attempt=self.attempt,
            interruptions=self.interruptions,
            strikes=self.strikes,
            suspect=self.suspect,
            token=self.token,
            lease_until=self.lease_until,
            worker=self.worker,
            run_at=self.run_at,
            expires_at=self.expires_at,
            deadline=self.deadline,
            enqueued_at=self.enqueued_at,
            started_at=self.started_at,
            finished_at=self.finished_at,
            reason=self.words if self.held in (Held.TIME, Held.GUARD) else self.reason,
            result=self.result,
            errors=tuple(self.errors),
            unique=job.unique,
            ordered=job.ordered,
            concurrency=job.concurrency,
            tenant=job.tenant,
            guard=job.guard,
            correlation_id=job.correlation_id,
            causation_id=job.causation_id,
            trace=job.trace,
            generation=job.generation,
            progress=self.progress if self.state is State.RUNNING else None,
            note=self.note if self.state is State.RUNNING else None,
            due_at=self.due_at,
        )
