"""docs/store.md as plain Python: what a store must answer, in the fewest words. No SQL, no I/O, nobody else at work.

Ranks and tokens are numbers of the model's own; only their order means something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from holdfast.kernel.errors import TooManyWaiting
from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze, Unknown
from holdfast.store.doubts import ENDED, EXPIRED, noted, unsure
from holdfast.store.records import (
    ERRORS_KEPT,
    STRIKES_LIMIT,
    AttemptError,
    Claim,
    Enqueued,
    NewJob,
    Renewal,
    Replayed,
    Rescue,
)
from holdfast.store.states import SETTLED, Held, State
from holdfast.store.steps import Progress, Resolved, Step
from holdfast.testing.conformance.model_row import Row, Written
from holdfast.testing.conformance.model_waiting import ONE, Waiting


class Jobs(Waiting):
    """`store.jobs`, `store.claims`, `store.holds` and `store.dead` of one database that nobody else uses."""

    # Enqueue.

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """All or nothing. Known by its id, else a twin of one earlier in the call, else of one that is stored."""
        before, answers, first = dict(self.rows), [], dict[str, str]()
        for job in jobs:
            twin = None if job.id in self.rows else first.get(job.unique or "") or self._twin(job)
            if twin is None and job.id not in self.rows:
                self._insert(job)
            if job.unique is not None:
                first.setdefault(job.unique, twin or job.id)
            answers.append(Enqueued(twin or job.id, created=twin is None))
        new = [row for job_id, row in self.rows.items() if job_id not in before]
        if any(self._crowded(row) for row in new):
            self.rows = before
            raise TooManyWaiting
        return answers

    def deliver(self, jobs: Sequence[NewJob]) -> list[bool]:
        """Jobs that need their turn and nothing else have it at once, or a place in line, where nobody is in their order."""
        orders = {job.ordered for job in jobs} - {row.job.ordered for row in self._where(_is_in_order)}
        needy = {
            job.ordered for job in jobs if job.concurrency or job.tenant or job.delay or job.at is not None
        }
        self.enqueue(jobs)
        for job in jobs:
            if job.ordered is not None and job.ordered in orders - needy:
                row = self.rows[job.id]
                row.has_turn = not any(
                    other.has_turn and other.job.ordered == job.ordered for other in self.rows.values()
                )
                row.held = None if row.has_turn else Held.ORDERING
        return [True] * len(jobs)

    def _twin(self, job: NewJob) -> str | None:
        holders = (
            row.job.id
            for row in self.rows.values()
            if job.unique is not None and row.job.unique == job.unique and row.state not in SETTLED
        )
        return next(holders, None)

    def _insert(self, job: NewJob) -> None:
        run_at = self.now + job.delay if job.delay else job.at
        row = Row(job, next(self._rank), self.now, run_at, None, due_at=run_at)
        ends = (None if job.expires is None else self.now + job.expires, row.deadline)
        row.expires_at = min((end for end in ends if end is not None), default=None)
        late = not self._due(row) and not job.has_place
        row.held = Held.TIME if late else Held.ARRIVED if job.keyed else None
        self.rows[job.id] = row

    def _crowded(self, row: Row) -> bool:
        waiting = self._where(
            lambda other: (
                other.state is State.QUEUED
                and other.job.task == row.job.task
                and other.job.max_waiting is not None
            )
        )
        return row.job.max_waiting is not None and len(waiting) > row.job.max_waiting

    # Claim.

    def claim(self, wants: Mapping[str, int], *, lease: float, worker: str) -> list[Claim]:
        taken: list[Row] = []
        token = next(self._token)
        for queue, most in wants.items():
            taken += [self._take(row, token, lease, worker) for row in self._for_claim(queue)[:most]]
        for queue, tenant in sorted({(row.job.queue, row.job.tenant) for row in taken if row.job.tenant}):
            self._fill_window(queue, tenant, wants[queue])
        return [row.claim() for row in taken]

    def claim_suspect(self, queues: Sequence[str], *, lease: float, worker: str) -> Claim | None:
        suspects = [row for queue in queues for row in self._claimable(queue) if row.suspect]
        for row in sorted(suspects, key=lambda row: row.rank)[:1]:
            self._take(row, next(self._token), lease, worker, alone=True)
            if row.job.tenant is not None:
                self._fill_window(row.job.queue, row.job.tenant, 1)
            return row.claim()
        return None

    def _claimable(self, queue: str) -> list[Row]:
        return self._where(
            lambda row: (
                row.ready
                and row.job.queue == queue
                and queue not in self.paused
                and not self.stopped.get(row.job.tenant or "", False)
                and (row.expires_at is None or row.expires_at > self.now)
            )
        )

    def _for_claim(self, queue: str) -> list[Row]:
        return sorted(
            (row for row in self._claimable(queue) if not row.suspect), key=lambda row: row.by_priority
        )

    def _take(self, row: Row, token: int, lease: float, worker: str, *, alone: bool = False) -> Row:
        row.state, row.token, row.alone, row.worker = State.RUNNING, token, alone, worker
        row.lease_until, row.started_at = self.now + lease, self.now
        row.progress = row.note = None
        row.attempt += 1
        return row

    # The holder's writes: each names id and token.

    def holds(self, claim: Claim) -> Row | None:
        row = self.rows[claim.job_id]
        return row if row.state is State.RUNNING and row.token == claim.token else None

    def renew(self, claims: Sequence[Claim], *, lease: float) -> list[Renewal]:
        renewed = []
        for claim in claims:
            row = self.holds(claim)
            if row is not None and row.lease_until is not None and row.lease_until > self.now:
                row.lease_until = self.now + lease
                renewed.append(Renewal(claim.job_id, claim.token, row.lease_until, row.reason))
        return renewed

    def report(self, claim: Claim, progress: float | None, note: str | None) -> bool:
        row = self.holds(claim)
        if row is None:
            return False
        row.progress = row.progress if progress is None else progress
        row.note = row.note if note is None else note
        return True

    def finish(self, finishes: Sequence[tuple[Claim, Outcome]]) -> list[bool]:
        return self._let_go([(claim, partial(self._end, outcome)) for claim, outcome in finishes])

    def release(self, claims: Sequence[Claim]) -> list[bool]:
        return self._let_go(
            [(claim, lambda row: self._back(row, uncharge=1, rank=False)) for claim in claims]
        )

    def hold(self, claims: Sequence[Claim], reason: Held) -> list[bool]:
        return self._let_go(
            [(claim, lambda row: self._back(row, uncharge=1, held=reason)) for claim in claims]
        )

    def settle(self, job_id: str, token: int) -> bool:
        row = self.rows.get(job_id)
        return row is not None and row.token == token and row.state is not State.RUNNING

    def rescue(self) -> list[Rescue]:
        """In the order in which their leases ended."""
        ended = self._where(lambda row: row.lease_until is not None and row.lease_until <= self.now)
        return self._interrupt(sorted(ended, key=lambda row: row.lease_until or 0.0))

    def rescue_worker(self, worker: str) -> list[Rescue]:
        return self._interrupt(self._where(lambda row: row.state is State.RUNNING and row.worker == worker))

    def _let_go(self, moves: Iterable[tuple[Claim, Callable[[Row], None]]]) -> list[bool]:
        accepted, freed = [], []
        for claim, move in moves:
            row = self.holds(claim)
            accepted.append(row is not None)
            if row is not None:
                move(row)
                freed.append(row)
        self._pass_on(freed)
        return accepted

    def _end(self, outcome: Outcome, row: Row) -> None:
        match outcome:
            case Done(result=result):
                if effects := row.leave_to_person():
                    self._park(row, State.UNKNOWN, unsure(ENDED, effects))
                else:
                    self._over(row, State.SUCCEEDED, None, result)
            case Cancel(reason=reason):
                self._cancel(row, reason)
            case Dead(error=error):
                self._die(row, error)
            case Unknown(reason=reason):
                self._park(row, State.UNKNOWN, reason)
            case Retry(after=after, error=error):
                self._back(row, after=after, error=error)
            case Snooze(after=after, reason=words):
                self._back(row, after=after, uncharge=1, words=words)

    def _over(self, row: Row, state: State, reason: str | None, result: str | None = None) -> None:
        row.state, row.reason, row.result, row.finished_at = state, reason, result, self.now
        row.held = row.lease_until = row.slot = None
        row.has_turn = False

    def _cancel(self, row: Row, reason: str) -> None:
        self._over(row, State.CANCELLED, noted(reason, row.leave_to_person()))

    def _die(self, row: Row, why: str) -> None:
        effects = row.leave_to_person()
        self._park(row, *((State.UNKNOWN, unsure(why, effects)) if effects else (State.DEAD, why)))

    def _park(self, row: Row, state: State, reason: str) -> None:
        """Dead or unknown: it stays live. Unknown keeps its turn, because nobody knows whether it is over."""
        row.state, row.reason, row.lease_until, row.slot = state, reason, None, None
        row.has_turn = row.has_turn and state is State.UNKNOWN
        self._add_error(row, reason)

    def _back(
        self,
        row: Row,
        *,
        after: float = 0,
        uncharge: int = 0,
        error: str | None = None,
        held: Held | None = None,
        rank: bool = True,
        words: str | None = None,
    ) -> None:
        """Queued again; cancelled instead when someone has asked it to stop."""
        if error is not None:
            self._add_error(row, error)
        if row.reason is not None:
            self._cancel(row, row.reason)
            return
        row.state, row.slot = State.QUEUED, None
        row.lease_until = row.worker = row.started_at = None
        row.attempt -= uncharge
        row.run_at, row.words = self.now + after, words
        row.held = held or (Held.TIME if after > 0 else self._looked_at_again(row))
        if rank and row.held is None:
            row.rank = next(self._rank)

    def _add_error(self, row: Row, error: str) -> None:
        row.errors = [*row.errors, AttemptError(row.attempt, self.now, error)][-ERRORS_KEPT:]

    def _interrupt(self, lost: Sequence[Row]) -> list[Rescue]:
        rescued = []
        for row in lost:
            worker = row.worker
            row.token, row.suspect = next(self._token), True
            row.interruptions += 1
            row.strikes += row.alone
            if row.strikes >= STRIKES_LIMIT:
                self._die(row, f"its worker died under it {row.strikes} times while it ran alone")
            else:
                self._back(row)
            rescued.append(Rescue(row.job.id, worker, row.state, row.interruptions, row.job.task))
        self._pass_on(lost)
        return rescued

    # Cancel and expire.

    def cancel(self, job_id: str, reason: str, *, running: bool = True) -> State | None:
        row = self.rows.get(job_id)
        if row is None:
            return None
        if row.state is State.RUNNING:
            row.reason = reason if running else row.reason
        elif row.live:
            self._cancel(row, reason)
            self._pass_on([row])
        return row.state

    def move(self, job_id: str, *, at: float | None, priority: int | None) -> State | None:
        """One in line keeps its place; one that becomes due is ready, or looked at again, as if it had come just now."""
        row = self.rows.get(job_id)
        if row is None or row.state is not State.QUEUED:
            return None if row is None else row.state
        if priority is not None:
            row.job = replace(row.job, priority=priority)
        if at is not None:
            row.run_at = row.due_at = at
            row.words = None
            if row.job.ordered is None or row.has_turn or row.job.by_time:
                self._retime(row)
        return State.QUEUED

    def _retime(self, row: Row) -> None:
        before, slot = row.held, row.slot
        if self._due(row):
            if before is Held.TIME:
                needs_turn = row.job.ordered is not None and not row.has_turn
                row.held = Held.ARRIVED if needs_turn else self._looked_at_again(row)
                row.rank = next(self._rank) if row.held is None else row.rank
            return
        row.held, row.slot = Held.TIME, None
        if slot is not None:
            self._pass_on([row])
        if before is None and row.job.tenant is not None:
            self._fill_window(row.job.queue, row.job.tenant, ONE)

    def expire(self) -> int:
        expired = self._where(
            lambda row: (
                row.state is State.QUEUED and row.expires_at is not None and row.expires_at <= self.now
            )
        )
        for row in expired:
            if effects := row.leave_to_person():
                row.state, row.reason = State.UNKNOWN, unsure(EXPIRED, effects)
                row.held = row.slot = None
            else:
                self._over(row, State.CANCELLED, EXPIRED)
        self._pass_on(expired)
        return len(expired)

    # Steps, and what a person decides about effects of which nobody knows.

    def write(self, claim: Claim, step: Step) -> bool:
        row = self.holds(claim)
        if row is None:
            return False
        before = row.steps.get(step.name)
        said = (claim.token, step.progress)
        if (
            before is not None
            and (before.token, before.step.progress) != said
            and _stays(before.step.progress, step.progress)
        ):
            return False
        row.steps[step.name] = Written(step, claim.token)
        return True

    def resolve(self, job_id: str, *, done: bool) -> Resolved:
        row = self.rows[job_id]
        if row.state is not State.UNKNOWN:
            return Resolved(job_id, "not_unknown")
        waiting = [step for step, _ in row.steps.values() if step.progress is Progress.UNKNOWN]
        names = tuple(step.name for step in sorted(waiting, key=lambda step: step.number))
        if len(names) > 1:
            return Resolved(job_id, "say_which", names)
        if not names and done:
            return Resolved(job_id, "no_such_effect")
        for name in names:
            step, token = row.steps[name]
            progress = Progress.RESOLVED if done else Progress.FAILED
            row.steps[name] = Written(replace(step, progress=progress), token)
        anew = Row(row.job, next(self._rank), row.enqueued_at, None, None, errors=row.errors, token=row.token)
        anew.due_at = row.due_at
        anew.held, anew.has_turn, anew.steps = self._looked_at_again(row), row.has_turn, row.steps
        self.rows[job_id] = anew
        return Resolved(job_id, "queued")

    # What a person decides about the dead.

    def replay(self, job_ids: Sequence[str], args: str | None) -> list[Replayed]:
        return [self._replay(job_id, args) for job_id in job_ids]

    def _replay(self, job_id: str, args: str | None) -> Replayed:
        row = self.rows.get(job_id)
        if row is None or row.state is not State.DEAD:
            return Replayed(job_id, "not_dead")
        if self._twin(row.job) is not None:
            return Replayed(job_id, "unique_taken")
        if args is not None:
            row.job = replace(row.job, args=args, generation=row.job.generation + 1)
        anew = Row(row.job, next(self._rank), row.enqueued_at, None, None, errors=row.errors, token=row.token)
        anew.due_at = row.due_at
        anew.held = Held.ARRIVED if row.job.keyed else None
        anew.steps = {} if args is not None else row.steps
        self.rows[job_id] = anew
        return Replayed(job_id, "queued")

    def discard(self, job_ids: Sequence[str], reason: str) -> list[bool]:
        discarded = []
        for job_id in job_ids:
            row = self.rows.get(job_id)
            discarded.append(row is not None and row.state is State.DEAD)
            if row is not None and row.state is State.DEAD:
                self._over(row, State.CANCELLED, reason)
        return discarded


def _stays(before: Progress, now: Progress) -> bool:
    """What is recorded for good; but what a person said may turn out not to fit."""
    if before is Progress.RESOLVED and now is Progress.UNKNOWN:
        return False
    return before in (Progress.DONE, Progress.RESOLVED)


def _is_in_order(row: Row) -> bool:
    return row.has_turn or row.held in (Held.ORDERING, Held.ARRIVED)
