"""What a failure of the driver or the server means: try again, the answer is lost, or which of our errors it is."""

from __future__ import annotations

import asyncpg

from holdfast.kernel.errors import (
    Deadlock,
    HoldfastError,
    SchemaMissing,
    SerializationFailure,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    TransactionEnded,
    UsageError,
)


class Blocked(StoreUnavailable):
    """Someone else's open transaction has a lock that this needs."""


# Everything that asyncpg and the socket below it raise.
FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)

# The server has answered: this statement did nothing, and the next try may succeed.
_TRANSIENT = {
    "40001",  # serialization_failure
    "40P01",  # deadlock_detected
    "53300",  # too_many_connections
    "57P03",  # cannot_connect_now: it is starting
}
# The server ended the connection, perhaps after it had committed.
_ENDED = {"57P01", "57P02", "57P05", "25P03", "25P04", "08000", "08003", "08006", "08P01"}
# Our tables, or a part of them, are not there.
_NO_TABLES = {"42P01", "3F000", "42703", "42883"}
_BUSY = {"57014", "53200", "53000", "53400", "08001", "08004"}
_MEANINGS: tuple[tuple[set[str], type[HoldfastError], str], ...] = (
    (
        _NO_TABLES,
        SchemaMissing,
        "Holdfast's tables are missing or older than this version ({}). Run `holdfast migrate`.",
    ),
    ({"25006"}, StoreReadOnly, "PostgreSQL accepts no writes now ({}). Nothing was stored."),
    ({"53100"}, StoreFull, "PostgreSQL has no space left ({}). Nothing was stored."),
    ({"55P03"}, Blocked, "Another transaction has what this needs ({}). Nothing was stored."),
    ({"40001"}, SerializationFailure, "Another transaction was first ({}). Nothing was stored."),
    ({"40P01"}, Deadlock, "This and another transaction waited for each other ({}). Nothing was stored."),
    (_TRANSIENT | _BUSY, StoreUnavailable, "PostgreSQL could not do it in time ({}). Nothing was stored."),
    (
        {"25P02", "25P03", "25P04"},
        TransactionEnded,
        "The transaction has ended, and its writes are rolled back ({}).",
    ),
    (_ENDED, StoreUnavailable, "PostgreSQL closed the connection ({}). Nothing was stored."),
)


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke after something was sent, so that nobody knows what the server did last."""
    if isinstance(error, asyncpg.PostgresError):
        return error.sqlstate in _ENDED or error.sqlstate is None
    return isinstance(error, OSError | TimeoutError)


def is_unsent(error: BaseException) -> bool:
    """Whether the driver refused before it sent anything: the connection was closed already."""
    driver = isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError)
    return driver and not isinstance(error, ValueError)  # a ValueError is about an argument


def is_transient(error: BaseException) -> bool:
    """Whether it is certain that nothing was stored and that trying again may help."""
    return is_unsent(error) or (isinstance(error, asyncpg.PostgresError) and error.sqlstate in _TRANSIENT)


def is_fenced(error: BaseException) -> bool:
    """Whether this connection leads to a server that is no longer the one to write to."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate == "25006"


def is_taken(error: BaseException) -> bool:
    """Whether another has a key that only one may have. Nothing was stored."""
    return isinstance(error.__cause__, asyncpg.UniqueViolationError)


def translate(error: BaseException) -> HoldfastError:
    """The same failure in Holdfast's words."""
    if isinstance(error, asyncpg.PostgresError):
        return _of_server(error, error.sqlstate or "")
    if isinstance(error, ValueError):
        return UsageError(f"PostgreSQL cannot take this value: {error}")
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"PostgreSQL did not answer in time{_detail(error)}. Nothing was stored.")
    return StoreUnavailable(f"PostgreSQL cannot be reached{_detail(error)}. Nothing was stored.")


def _of_server(error: asyncpg.PostgresError, state: str) -> HoldfastError:
    for states, kind, message in _MEANINGS:
        if state in states:
            return kind(message.format(error))
    if state.startswith("22"):
        return UsageError(f"PostgreSQL cannot take this value: {error}")
    return StoreError(f"PostgreSQL refused: {error} (SQLSTATE {state}).")


def _detail(error: BaseException) -> str:
    return f" ({error})" if str(error) else ""
