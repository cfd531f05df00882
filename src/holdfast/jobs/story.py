"""The story of one job: what was planned, each claim, what held it, its steps, its moves, and what persons have decided."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.store.ports import Store
from holdfast.store.records import AttemptError, AuditEntry, JobRecord
from holdfast.store.states import Held, State
from holdfast.store.steps import Kind, Progress, StepRecord
from holdfast.store.story import Entry

_DECISIONS = 100  # the newest


class ClaimTold(msgspec.Struct, frozen=True, kw_only=True):
    """One claim of the job: most are one run of its task."""

    attempt: int
    token: int | None
    worker: str | None
    began_at: float | None
    ended_at: float | None  # None: it runs
    # running, succeeded, failed, snoozed, held, released, interrupted, dead, unknown or cancelled.
    outcome: str
    error: str | None = None  # what went wrong, as far as it is kept
    reason: str | None = None  # of one that was put off or cancelled, in words
    times: int = 1  # so many like it, one after the other


class HoldTold(msgspec.Struct, frozen=True, kw_only=True):
    """What kept it from running, for how long."""

    held: str  # time, guard …
    since: float | None  # None: that is not kept
    until: float | None  # None: it is held still
    key: str | None = None  # of the guard or lock
    reason: str | None = None  # in words
    times: int = 1


class StepTold(msgspec.Struct, frozen=True, kw_only=True):
    """A step or effect. What it gave back is told by `hf.unknown.steps`."""

    name: str
    kind: Kind
    outcome: Progress
    first_at: float
    begun_at: float | None  # when the call that counted began
    at: float  # when it was written last
    calls: int
    token: int  # of the claim that wrote it last


class MoveTold(msgspec.Struct, frozen=True, kw_only=True):
    at: float
    due_at: float | None  # the new time, if it has one
    priority: int | None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a person, or a lookup, has decided about it."""

    at: float
    actor: str
    action: str
    before: str | None
    after: str | None


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """All that is kept of a job, in the order in which it happened. It is pruned with the job."""

    job_id: str
    task: str
    state: State
    attempt: int
    planned_at: float  # the time that was asked for last; else when it was enqueued
    enqueued_at: float
    finished_at: float | None
    reason: str | None
    claims: tuple[ClaimTold, ...]
    holds: tuple[HoldTold, ...]
    steps: tuple[StepTold, ...]
    moves: tuple[MoveTold, ...]
    decisions: tuple[Decision, ...]
    forgotten: int = 0  # entries that gave way to newer ones

    def as_json(self) -> str:
        """As JSON text, to be stored with rows of your own."""
        return msgspec.json.encode(self).decode()


async def story_of(store: Store, job_id: str) -> Story | None:
    """None: there is no such job. The row is read first: whatever comes after that is an entry."""
    record = await store.jobs.get(job_id)
    if record is None:
        return None
    entries = await store.jobs.entries(job_id)
    [record] = await store.holds.explained([record])
    steps = await store.steps.load(job_id, record.generation)
    audit = await store.audit.find(subject=job_id, limit=_DECISIONS)
    return compose(record, entries, steps, audit)


def compose(
    record: JobRecord, entries: Sequence[Entry], steps: Sequence[StepRecord], audit: Sequence[AuditEntry]
) -> Story:
    claims = [*_ended(record, entries), *_of_row(record, entries)]
    return Story(
        job_id=record.id,
        task=record.task,
        state=record.state,
        attempt=record.attempt,
        planned_at=record.enqueued_at if record.due_at is None else record.due_at,
        enqueued_at=record.enqueued_at,
        finished_at=record.finished_at,
        reason=record.reason,
        claims=tuple(claims),
        holds=tuple(_holds(record, entries, claims)),
        steps=tuple(map(_step, steps)),
        moves=tuple(_move(each) for each in entries if each.outcome == "moved"),
        decisions=tuple(_decision(each) for each in reversed(audit)),
        forgotten=entries[-1].number - len(entries) if entries else 0,
    )


def _ended(record: JobRecord, entries: Sequence[Entry]) -> list[ClaimTold]:
    errors = {(each.attempt, each.at): each for each in record.errors}
    return [_claim(each, errors.get((each.attempt, each.ended_at))) for each in entries if _is_claim(each)]


def _is_claim(entry: Entry) -> bool:
    return entry.outcome != "moved"


def _claim(entry: Entry, error: AttemptError | None) -> ClaimTold:
    return ClaimTold(
        attempt=entry.attempt,
        token=entry.token,
        worker=entry.worker,
        began_at=entry.began_at,
        ended_at=entry.ended_at,
        outcome=entry.outcome,
        error=None if error is None else error.error,
        reason=entry.words,
        times=entry.times,
    )


def _of_row(record: JobRecord, entries: Sequence[Entry]) -> list[ClaimTold]:
    """The last claim, unless an entry tells of it: it runs, or has succeeded."""
    told = {token for each in entries for token in (each.token, each.fence)}
    if record.started_at is None or record.token in told:
        return []
    return [
        ClaimTold(
            attempt=record.attempt,
            token=record.token,
            worker=record.worker,
            began_at=record.started_at,
            ended_at=record.finished_at,
            outcome=str(record.state),
        )
    ]


# --- what held it ---


def _holds(record: JobRecord, entries: Sequence[Entry], claims: Sequence[ClaimTold]) -> list[HoldTold]:
    """How long each lasted follows from the claim that came next: nothing is written when a job is let go."""
    begins = [each.began_at for each in claims[1:]]
    begins += [record.finished_at] * (len(claims) - len(begins))
    put_off = [_hold(each, begun) for each, begun in zip(filter(_is_claim, entries), begins, strict=False)]
    found = [*_first_hold(record, entries, claims), *(each for each in put_off if each is not None)]
    if record.held is None:
        return found
    last = found.pop() if found and found[-1].until is None else None
    if last is None or last.held != record.held:
        return [*found, _now_held(record)]
    return [*found, last]


def _first_hold(record: JobRecord, entries: Sequence[Entry], claims: Sequence[ClaimTold]) -> list[HoldTold]:
    """By time, from the beginning, if nothing has changed that since."""
    is_moved = any(each.outcome == "moved" for each in entries)
    if record.due_at is None or record.due_at <= record.enqueued_at or (is_moved and claims):
        return []
    begun = claims[0].began_at if claims else record.finished_at
    until = None if begun is None and record.held is Held.TIME else _earlier(record.due_at, begun)
    return [HoldTold(held=Held.TIME, since=record.enqueued_at, until=until)]


def _hold(entry: Entry, begun: float | None) -> HoldTold | None:
    if entry.held is None:
        return None
    until = None if begun is None else _earlier(entry.until, begun)
    since = entry.ended_at if entry.times == 1 else entry.began_at
    return HoldTold(
        held=entry.held, since=since, until=until, key=entry.key, reason=entry.words, times=entry.times
    )


def _now_held(record: JobRecord) -> HoldTold:
    key = None if record.held_by is None else record.held_by.name
    return HoldTold(held=str(record.held), since=None, until=None, key=key, reason=record.reason)


def _earlier(first: float | None, second: float | None) -> float | None:
    return min((each for each in (first, second) if each is not None), default=None)


# --- the rest ---


def _step(step: StepRecord) -> StepTold:
    return StepTold(
        name=step.name, kind=step.kind, outcome=step.progress, first_at=step.first_at,
        begun_at=step.begun_at, at=step.at, calls=step.calls, token=step.token,
    )  # fmt: skip


def _move(entry: Entry) -> MoveTold:
    return MoveTold(at=entry.ended_at, due_at=entry.due_at, priority=entry.priority)


def _decision(entry: AuditEntry) -> Decision:
    return Decision(
        at=entry.at or 0.0, actor=entry.actor, action=entry.action, before=entry.before, after=entry.after
    )
