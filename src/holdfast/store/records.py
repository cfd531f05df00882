"""Frozen rows: what goes into a store and what comes out. Times are seconds since 1970 on the database's clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.names import HUNDRED_YEARS, check_int, check_name, check_seconds, check_text
from holdfast.kernel.outcomes import OUTCOMES, Outcome
from holdfast.kernel.show import show
from holdfast.store.held_records import HeldBy
from holdfast.store.states import Held, State

ARGS_LIMIT = 256 * 1024  # bytes of JSON text kept in the row
STRIKES_LIMIT = 3  # interruptions while alone after which a suspect is dead
GATED_COUNTED = 10_000  # nobody waits for a longer count
ABANDONED = 86_400.0  # seconds after which a key whose holder was lost is forgotten
NOTE_LIMIT = 500  # characters of a running job's note
ERRORS_KEPT = 20  # errors of the newest attempts kept with a job


class NewJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):  # texts and numbers: no cycle is possible
    """One job to store. It checks itself when built, so a bad value never reaches a database."""

    id: str
    task: str
    args: str = "{}"  # JSON text
    queue: str = "default"
    priority: int = 0  # higher runs first
    delay: float | None = None  # seconds from now, on the database's clock
    at: float | None = None  # or a moment
    expires: float | None = None  # seconds from now after which it need not start
    deadline: float | None = None  # a moment; carried with the job for its worker and its calls to respect
    within: float | None = (
        None  # the same in seconds from now, on the database's clock; the earlier of the two counts
    )
    unique: str | None = None  # at most one job with this key that is not over
    replace: bool = False  # a queued one with this key gets the time and the arguments of this
    ordered: str | None = None  # one at a time with this key, in the order of enqueueing
    by_time: bool = False  # in the order of their times instead
    concurrency: str | None = None  # at most `concurrency_limit` at a time with this key
    concurrency_limit: int | None = None
    tenant: str | None = None  # tenants of one queue take turns
    guard: str | None = None  # the rendered key of the guard that gates it
    max_waiting: int | None = None  # refuse when this many jobs of the task are queued
    correlation_id: str | None = None
    causation_id: str | None = None
    trace: str | None = None
    generation: int = 0  # raised only by an operator's edited replay

    def __post_init__(self) -> None:
        """Every job passes here, so the usual values are let through by the cheapest test that is enough."""
        check_id(self.id)
        if not _is_short(self.task):
            _set(self, "task", check_name("task", self.task))
        if not _is_short(self.queue):
            _set(self, "queue", check_name("queue", self.queue))
        if type(self.priority) is not int or not -100 <= self.priority <= 100:
            _set(self, "priority", check_int("priority", self.priority, -100, 100))
        if type(self.generation) is not int or not 0 <= self.generation <= 1_000_000:
            _set(self, "generation", check_int("generation", self.generation, 0, 1_000_000))
        check_args(self.args)
        _check_times(self)
        _check_keys(self)
        if self.replace is not False:
            _check_replace(self)
        if self.by_time is not False:
            _check_by_time(self)

    @property
    def is_plain(self) -> bool:
        """Whether it is ready at once, and has nothing that must be looked at."""
        return (
            self.unique is None
            and self.ordered is None
            and self.concurrency is None
            and self.tenant is None
            and self.max_waiting is None
            and self.delay is None
            and self.at is None
            and self.expires is None
            and self.deadline is None
            and self.within is None
            and self.guard is None
        )

    @property
    def is_batchable(self) -> bool:
        """Whether it can be stored together with those of other callers: nothing in it can be refused."""
        return self.unique is None and self.max_waiting is None

    @property
    def keyed(self) -> bool:
        """Whether promote must look at it before it can be ready."""
        return self.ordered is not None or self.concurrency is not None or self.tenant is not None

    @property
    def has_place(self) -> bool:
        """Whether it stands in the line of its order from its enqueue on, whatever its time."""
        return self.ordered is not None and not self.by_time


UNBOUNDED = 1_000_000_000  # a `max_waiting` that is never reached: with one, waiting jobs of a task can be counted quickly
# For members of enums and the like: what drivers can bind takes their place.
_set = msgspec.structs.force_setattr
_ID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
FIRST_ID, LAST_ID = (f"{each * 8}-{each * 4}-{each * 4}-{each * 4}-{each * 12}" for each in "0f")
_INT8 = 2**63  # a whole number that a database can keep is smaller
_SHORT = 200  # bytes that a name of any kind may have


def _is_short(name: object) -> bool:
    """A usual name. What is not printable, or ends with a space, is for `check_name` to judge."""
    return (
        type(name) is str
        and 0 < len(name) <= (_SHORT if name.isascii() else _SHORT // 4)
        and name.isprintable()
        and name[0] != " "
        and name[-1] != " "
    )


def check_id(job_id: object) -> None:
    # Small letters only: PostgreSQL would answer with them, and the caller would not know its own id again.
    if type(job_id) is not str or _ID.fullmatch(job_id) is None:
        raise UsageError(
            f"A job id is a UUID in its 36 characters, in small letters; {show(job_id)} is not. Pass it whole, as `handle.id` and `job.id` have it."
        )


def is_id(text: object) -> bool:
    return type(text) is str and _ID.fullmatch(text) is not None


def is_prefix(text: object) -> bool:
    """Whether an id may begin so; eight characters at least, or it says too little."""
    if type(text) is not str or not 8 <= len(text) <= len(FIRST_ID):
        return False
    return _ID.fullmatch(text + FIRST_ID[len(text) :]) is not None


def id_range(prefix: str) -> tuple[str, str]:
    """The first and the last id that begin so."""
    return prefix + FIRST_ID[len(prefix) :], prefix + LAST_ID[len(prefix) :]


def check_args(args: object) -> None:
    if type(args) is not str:
        raise UsageError(f"args is JSON text, not {show(args)}. Encode it with kernel.codec.encode().")
    size = len(args) if args.isascii() or len(args) > ARGS_LIMIT else len(args.encode(errors="surrogatepass"))
    if size > ARGS_LIMIT:
        raise PayloadError(
            f"args has {size:,} bytes; the limit is {ARGS_LIMIT:,}. Store large data elsewhere and pass its name."
        )
    if size != len(args) or "\0" in args:
        check_text("args", args, ARGS_LIMIT)


def _check_times(job: NewJob) -> None:
    if job.delay is not None:
        _check_time(job, "delay", job.delay)
        if job.at is not None:
            raise UsageError(f"Give delay or at, not both: delay={show(job.delay)}, at={show(job.at)}.")
    if job.at is not None:
        _check_time(job, "at", job.at)
    if job.expires is not None:
        _check_time(job, "expires", job.expires)
    if job.deadline is not None:
        _check_time(job, "deadline", job.deadline)
    if job.within is not None:
        _check_time(job, "within", job.within)


def _check_time(job: NewJob, kind: str, value: object) -> None:
    if type(value) is not float or not 0.0 <= value <= HUNDRED_YEARS:
        _set(job, kind, check_seconds(kind, value))


def _check_keys(job: NewJob) -> None:
    if job.unique is not None and not _is_short(job.unique):
        _check_key(job, "unique")
    if job.ordered is not None and not _is_short(job.ordered):
        _check_key(job, "ordered")
    if job.tenant is not None and not _is_short(job.tenant):
        _check_key(job, "tenant")
    if job.guard is not None and not _is_short(job.guard):
        _check_key(job, "guard")
    if job.correlation_id is not None and not _is_short(job.correlation_id):
        _check_key(job, "correlation_id")
    if job.causation_id is not None and not _is_short(job.causation_id):
        _check_key(job, "causation_id")
    if job.trace is not None and not _is_short(job.trace):
        _check_key(job, "trace")
    if job.concurrency is not None or job.concurrency_limit is not None:
        _check_concurrency(job)
    if job.max_waiting is not None:
        _set(job, "max_waiting", check_int("max_waiting", job.max_waiting, 1, 1_000_000_000))


def _check_by_time(job: NewJob) -> None:
    if not isinstance(job.by_time, bool):
        raise UsageError(f"by_time is True or False, not {show(job.by_time)}.")
    if job.ordered is None:
        raise UsageError(
            'order_by="time" is the order of jobs with `ordered`, and this job has none. Give both, or neither.'
        )


def _check_replace(job: NewJob) -> None:
    if type(job.replace) is not bool:
        raise UsageError(f"replace is True or False, not {show(job.replace)}.")
    if job.replace and job.unique is None:
        raise UsageError("replace=True replaces the job with the same unique key: give unique, too.")


def _check_key(job: NewJob, kind: str) -> None:
    _set(job, kind, check_name(kind, getattr(job, kind)))


def _check_concurrency(job: NewJob) -> None:
    if job.concurrency is None or job.concurrency_limit is None:
        raise UsageError(
            "concurrency and concurrency_limit go together: "
            f"concurrency={show(job.concurrency)}, concurrency_limit={show(job.concurrency_limit)}."
        )
    _check_key(job, "concurrency")
    _set(job, "concurrency_limit", check_int("concurrency_limit", job.concurrency_limit, 1, 10_000))


class Standing(msgspec.Struct, frozen=True):
    """The job that had the unique key already, as it is after this call."""

    id: str
    state: State
    due_at: float | None  # None: at once, or whenever its guard, its order or its tenant lets it go
    replaced: bool = False  # it has the time and the arguments of this call; else it was left alone


class Enqueued(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Two answers are the same when they name the same job: what stood there changes with time."""

    id: str  # of the stored job: the one there was, when a unique key was taken
    created: bool
    standing: Standing | None = None  # of one that was not created

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Enqueued) and (self.id, self.created) == (other.id, other.created)

    def __hash__(self) -> int:
        return hash((self.id, self.created))


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is stored, in any state."""

    id: str
    task: str
    queue: str
    args: str
    state: State
    held: Held | None
    priority: int
    attempt: int
    interruptions: int
    strikes: int
    suspect: bool
    token: int | None
    lease_until: float | None
    worker: str | None
    run_at: float | None
    expires_at: float | None
    deadline: float | None
    enqueued_at: float
    started_at: float | None
    finished_at: float | None
    reason: (
        str | None
    )  # why it is cancelled, dead or unknown, is asked to stop, or was put off while it is held for that
    result: str | None  # JSON text
    errors: tuple[AttemptError, ...]
    unique: str | None
    ordered: str | None
    concurrency: str | None
    tenant: str | None
    guard: str | None
    correlation_id: str | None
    causation_id: str | None
    trace: str | None
    generation: int
    progress: float | None = None  # of the attempt that runs: 0 to 1, as it says itself
    note: str | None = None
    due_at: float | None = None  # the time that was asked for last; None: at once. It stays after the run
    look_at: float | None = None  # of an unknown job: when it is looked up again
    held_by: HeldBy | None = (
        None  # of a queued job: by what, and by whom; where that was asked for (`Holds.explained`)
    )


def queued_among(records: Iterable[JobRecord]) -> list[str]:
    """The ids of those that do not run yet."""
    return [record.id for record in records if record.state is State.QUEUED]


def with_reasons(records: Iterable[JobRecord], found: Mapping[str, HeldBy]) -> list[JobRecord]:
    return [
        record if record.id not in found else msgspec.structs.replace(record, held_by=found[record.id])
        for record in records
    ]


class AttemptError(msgspec.Struct, frozen=True):
    """What went wrong in one attempt."""

    attempt: int
    at: float
    error: str


class Claim(msgspec.Struct, frozen=True, gc=False):
    """The right to run a job now: until `lease_until`, and only while nobody has a newer token."""

    job_id: str
    token: int
    lease_until: float
    task: str
    queue: str
    args: str
    attempt: int
    interruptions: int
    alone: bool
    enqueued_at: float
    generation: int
    deadline: float | None = None
    ordered: str | None = None
    concurrency: str | None = None
    tenant: str | None = None
    guard: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    trace: str | None = None
    unique: str | None = None
    has_steps: bool = False  # of its generation: recorded by this run or an earlier one
    decided: bool = False  # it has a guard, and an effect that a person has decided: perhaps no call is left
    put_offs: int = 0  # how often it was put off, uncharged, for a failure of the call behind its guard
    due_later: float | None = None  # its time, when that was after its enqueue
    row: int = 0  # the store's own number of the job, where it has one

    @property
    def due(self) -> float:
        """Since when it could have run, as far as its time goes."""
        return self.enqueued_at if self.due_later is None else self.due_later

    @property
    def keyed(self) -> bool:
        """Whether another job may be waiting for this one to end."""
        return self.ordered is not None or self.concurrency is not None


def check_claim(claim: object) -> None:
    """What a store reads of it. Every claim that is renewed or ended passes here, so the usual test is the cheapest."""
    if not isinstance(claim, Claim):
        raise UsageError(f"A claim is what claim() gave, not {show(claim)} ({type(claim).__name__}).")
    check_id(claim.job_id)
    if type(claim.token) is not int or not 0 <= claim.token < _INT8:
        check_int("The token of a claim", claim.token, 0, _INT8 - 1)
    if type(claim.row) is not int or not 0 <= claim.row < _INT8:
        check_int("The row of a claim", claim.row, 0, _INT8 - 1)
    if type(claim.attempt) is not int or not 0 <= claim.attempt < _INT8:
        check_int("The attempt of a claim", claim.attempt, 0, _INT8 - 1)
    if claim.ordered is not None and not _is_short(claim.ordered):
        check_name("ordered", claim.ordered)
    if claim.concurrency is not None and not _is_short(claim.concurrency):
        check_name("concurrency", claim.concurrency)


class Finish(msgspec.Struct, frozen=True, gc=False):
    claim: Claim
    outcome: Outcome

    def __post_init__(self) -> None:
        check_claim(self.claim)
        if type(self.outcome) not in OUTCOMES:
            raise UsageError(
                f"An outcome is Done, Retry, Snooze, Cancel, Dead or Unknown; not {show(self.outcome)}."
            )


class Renewal(msgspec.Struct, frozen=True):
    """A claim that was still held, and is now held until `lease_until`."""

    job_id: str
    token: int
    lease_until: float
    cancel: str | None  # someone asks it to stop, and why


class Rescue(msgspec.Struct, frozen=True):
    """A job that was put back, or given up, because its worker was lost."""

    job_id: str
    worker: str | None
    state: (
        State  # queued again, cancelled as it was asked to stop, or after too many strikes dead, or unknown
    )
    interruptions: int
    task: str


class Replayed(msgspec.Struct, frozen=True):
    """What became of a dead job that someone wanted to run again."""

    job_id: str
    outcome: Literal["queued", "not_dead", "unique_taken", "carries_saga"]


class Cancelled(msgspec.Struct, frozen=True):
    """What a cancellation has met, and what it has made of it. It changed nothing when both are the same."""

    state: State
    was: State

    @property
    def has_ended(self) -> bool:
        return self.state is State.CANCELLED and self.was is not State.CANCELLED


class Ended(msgspec.Struct, frozen=True):
    """A job that has expired: cancelled, or unknown when an effect of it is open."""

    job_id: str
    task: str
    state: State


class Pruned(msgspec.Struct, frozen=True):
    """What a prune has done, and whether it shall be asked again soon."""

    jobs: int  # that are forgotten
    more: bool = False  # it was cut short, so that nothing else waits for it


class Count(msgspec.Struct, frozen=True):
    queue: str
    state: State
    held: Held | None
    number: int
    at: float | None = None  # when it was counted: of a crowd, some seconds ago; None: just now


class Gated(msgspec.Struct, frozen=True):
    """Jobs that are held because their guard refused them."""

    guard: str | None  # its rendered key
    number: int  # counted up to GATED_COUNTED


class Paused(msgspec.Struct, frozen=True):
    queue: str
    by: str
    at: float


class PausedTenant(msgspec.Struct, frozen=True):
    tenant: str
    reason: str
    by: str
    at: float


class Lease(msgspec.Struct, frozen=True):
    """A time-limited right on a named thing."""

    name: str
    owner: str
    token: int
    until: float


class Tick(msgspec.Struct, frozen=True):
    """One nominal time of a schedule and the job that was enqueued for it."""

    schedule: str
    nominal: float
    job_id: str
    at: float


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what to which thing. Rows are only ever added."""

    actor: str
    action: str
    subject: str
    before: str | None = None  # JSON text
    after: str | None = None
    request_id: str | None = None
    at: float | None = None  # set by the store

    def __post_init__(self) -> None:
        """One that is read is never refused, whatever it was allowed to say when it was written."""
        if self.at is None:
            self.check()

    def check(self) -> None:
        for kind in ("actor", "action", "subject"):
            _set(self, kind, check_name(kind, getattr(self, kind)))
        for kind in ("before", "after", "request_id"):
            if (text := getattr(self, kind)) is not None:
                check_text(kind, text)


def paused_entry(tenant: str, reason: str, by: str) -> AuditEntry:
    after = msgspec.json.encode({"reason": reason}).decode()
    return AuditEntry(actor=by, action="tenant.paused", subject=f"tenant:{tenant}", after=after)
