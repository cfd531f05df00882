"""Every error of Holdfast.

HoldfastError
├── UsageError              the call is wrong, and nothing was stored (also a ValueError)
│   ├── PayloadError        a value that the codec does not take
│   ├── NeverAwaited        an `await` was forgotten: what was asked for was not done
│   ├── WrongConnection     `tx` is not a transaction of this store's database
│   └── NotOpen             the store is not open, or closed already
├── TooManyWaiting          the task's `max_waiting` is reached; nothing was stored
├── LeaseLost               the holder's token is no longer the newest: someone else may run this now
├── StepFailed              a step failed in an earlier attempt, and the task went on without it
├── StepLeft                the task went on, and nobody knows what became of a step or an effect of it
├── LockHeld                another holds the lock, and the wait for it is over
├── LockLost                the lock of `hf.lock` ended or was stolen inside its block: another may hold it now
├── Refused                 a guard has not let the call through: it was not made, so trying again later is safe
│   ├── BreakerOpen         the breaker is open, or its half-open permits are out
│   ├── RateLimited         the limiter's next moment is too far away
│   ├── BulkheadFull        all permits are out, and there is no room or no time to wait for one
│   └── DeadlinePassed      there is no time left for an attempt
├── TimedOut                a guarded attempt gave no answer in time: nobody knows whether it was done
├── NoResult                a job has no result to give
│   ├── JobDead             it failed for good
│   ├── JobUnknown          nobody knows whether an effect of it was done: a person decides
│   ├── JobCancelled        it was cancelled, or expired
│   ├── JobMissing          there is no such job, or not any more
│   ├── SagaUndone          it failed or was cancelled, and what it had done is undone
│   ├── SagaStuck           it needs a person, or is parked
│   └── SagaMissing         there is no such saga, or not any more
├── VersionConflict         a key has another version than was expected: somebody else has changed it meanwhile
├── ViewBehind              a view has not read as far as was asked for, and the wait for it is over
├── ReplicaBehind           a replica has not got what was asked for, and the wait for it is over
├── TransportUnavailable    the broker does not answer, or not in time: nobody knows whether it has the messages
└── StoreError              the store could not do it
    ├── StoreUnavailable    not reachable, or not in time; nothing was stored, trying again is safe
    │   ├── StoreBusy       SQLite: another process held the write lock too long
    │   ├── SerializationFailure  another transaction was first: roll back, and do all of it again
    │   └── Deadlock        two transactions waited for each other: roll back, and do all of it again
    ├── StoreFull           no space left; nothing was stored
    ├── StoreReadOnly       the database accepts no writes now (a fail-over, most often)
    ├── CommitUnknown       the answer to COMMIT was lost: it happened or it did not
    ├── TransactionEnded    the transaction was cut off or has ended; its writes are rolled back
    ├── StatementError      a statement of yours is wrong: its syntax, a name in it, or a missing privilege
    ├── DataError           a value does not fit the column or the statement that it was given to
    ├── StatementTimeout    a statement of yours took longer than the database allows
    │   └── LockTimeout     what it needs is locked by another transaction
    ├── ConstraintViolation     the rows would break a rule of the tables
    │   ├── UniqueViolation     a key is taken
    │   ├── ForeignKeyViolation a row that is referred to is not there, or a row is still referred to
    │   ├── CheckViolation      a CHECK is not met
    │   └── NotNullViolation    a column that must have a value has none
    ├── UnsupportedStore    this SQLite, file system or library cannot keep the promises
    └── SchemaError         the tables do not fit this version of Holdfast
        ├── SchemaMissing   there are none yet, or some are older: migrate
        ├── SchemaTooNew    a newer Holdfast has migrated them
        └── SchemaChanged   a migration that was applied differs from the one in this version
"""

from __future__ import annotations


class HoldfastError(Exception):
    """The root: `except HoldfastError` catches all of them."""


class UsageError(HoldfastError, ValueError):
    """The call is wrong, and nothing was stored."""


class PayloadError(UsageError):
    """A value that the codec does not take."""


class NeverAwaited(UsageError):
    """An `await` was forgotten: what was asked for was not done."""


class WrongConnection(UsageError):
    """`tx` is not a transaction of this store's database."""


class NotOpen(UsageError):
    """The store is not open, or closed already."""


class TooManyWaiting(HoldfastError):
    """The task's `max_waiting` is reached; nothing was stored."""


class LeaseLost(HoldfastError):
    """The holder's token is no longer the newest: someone else may run this now."""


class StepFailed(HoldfastError):
    """A step failed in an earlier attempt, and the task went on without it: so it does now."""


class StepLeft(HoldfastError):
    """The task went on, and nobody knows what became of a step or an effect of it: this run cannot succeed."""


class LockHeld(HoldfastError):
    """Another holds the lock, and the wait for it is over."""


class LockLost(HoldfastError):
    """The lock of `hf.lock` ended or was stolen inside its block: another may hold it now."""


class Refused(HoldfastError):
    """A guard has not let the call through: it was not made. `retry_after` says in how many seconds it may be, when known."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BreakerOpen(Refused):
    """The breaker is open, or its half-open permits are out."""


class RateLimited(Refused):
    """The limiter's next moment is too far away."""


class BulkheadFull(Refused):
    """All permits are out, and there is no room or no time to wait for one."""


class DeadlinePassed(Refused):
    """There is no time left for an attempt."""


class TimedOut(HoldfastError, TimeoutError):
    """A guarded attempt gave no answer in time: nobody knows whether it was done."""


class NoResult(HoldfastError):
    """A job has no result to give."""


class JobDead(NoResult):
    """It failed for good; the message has its last error."""


class JobUnknown(NoResult):
    """Nobody knows whether an effect of the job was done: it waits for a person."""


class JobCancelled(NoResult):
    """It was cancelled, or expired."""


class JobMissing(NoResult):
    """There is no such job, or not any more."""


class VersionConflict(HoldfastError):
    """A key has another version than was expected: somebody else has changed it. Read it again, and decide anew."""

    def __init__(self, message: str, *, key: str, expected: int, found: int) -> None:
        super().__init__(message)
        self.key, self.expected, self.found = key, expected, found


class ViewBehind(HoldfastError):
    """A view has not read as far as was asked for, and the wait is over. `row` is what it has; None: no row."""

    def __init__(self, message: str, *, row: object = None) -> None:
        super().__init__(message)
        self.row = row


class ReplicaBehind(HoldfastError):
    """A replica has not got what was asked for, and the wait for it is over."""


class SagaUndone(NoResult):
    """It failed or was cancelled, and what it had done is undone; the message says why."""


class SagaStuck(NoResult):
    """It does not go on by itself: it needs a person, or is parked."""


class SagaMissing(NoResult):
    """There is no such saga, or not any more."""


class TransportUnavailable(HoldfastError):
    """The broker does not answer, or not in time: nobody knows whether it has the messages. Publish them again."""


class StoreError(HoldfastError):
    """The store could not do it."""


class StoreUnavailable(StoreError):
    """Not reachable, or not in time; nothing was stored, and trying again is safe."""


class StoreBusy(StoreUnavailable):
    """SQLite: another process held the write lock too long."""


class SerializationFailure(StoreUnavailable):
    """Another transaction was first. Roll this one back, and do all of it again."""


class Deadlock(StoreUnavailable):
    """Two transactions waited for each other. Roll this one back, and do all of it again."""


class StoreFull(StoreError):
    """No space left; nothing was stored."""


class StoreReadOnly(StoreError):
    """The database accepts no writes now."""


class CommitUnknown(StoreError):
    """The answer to COMMIT was lost: it happened or it did not."""


class TransactionEnded(StoreError):
    """The transaction was cut off or has ended; its writes are rolled back."""


class StatementError(StoreError):
    """A statement of yours is wrong: its syntax, a name in it, or a privilege that is missing."""


class DataError(StoreError):
    """A value does not fit the column or the statement that it was given to."""


class StatementTimeout(StoreError):
    """A statement of yours took longer than the database allows."""


class LockTimeout(StatementTimeout):
    """What the statement needs is locked by another transaction, and the wait for it is over."""


class ConstraintViolation(StoreError):
    """The rows would break a rule of the tables. `table`, `columns` and `constraint` as far as the database tells them."""

    def __init__(
        self,
        message: str,
        *,
        constraint: str | None = None,
        table: str | None = None,
        columns: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.constraint, self.table, self.columns = constraint, table, columns


class UniqueViolation(ConstraintViolation):
    """A key is taken: another row has these values already."""


class ForeignKeyViolation(ConstraintViolation):
    """A row that is referred to is not there, or a row that shall go is still referred to."""


class CheckViolation(ConstraintViolation):
    """A CHECK is not met."""


class NotNullViolation(ConstraintViolation):
    """A column that must have a value has none."""


class UnsupportedStore(StoreError):
    """This SQLite, file system or library cannot keep the promises."""


class SchemaError(StoreError):
    """The tables do not fit this version of Holdfast."""


class SchemaMissing(SchemaError):
    """There are no tables yet, or some are older: migrate."""


class SchemaTooNew(SchemaError):
    """A newer Holdfast has migrated the tables."""


class SchemaChanged(SchemaError):
    """A migration that was applied differs from the one in this version."""


# The store's own trouble: the same call may succeed a little later.
TROUBLE = (StoreUnavailable, StoreFull, StoreReadOnly, CommitUnknown)
