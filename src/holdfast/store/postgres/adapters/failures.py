"""Which failures inside the caller's transaction become ours. All others stay the driver's: its owner retries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.kernel.errors import HoldfastError, SchemaMissing, WrongConnection

FAILED = (
    "The transaction has already failed: an earlier statement raised an error, and PostgreSQL accepts nothing more in it. "
    "Nothing was stored. Roll it back, begin a new one and do the work again there."
)
_OLDER = ("42P01", "42703", "42883", "3F000")  # undefined table, column, function, schema


@contextmanager
def explained() -> Iterator[None]:
    """Around a statement of the store's own."""
    try:
        yield
    except HoldfastError:
        raise
    except Exception as error:
        match sqlstate(error):
            case "25P02":
                raise WrongConnection(FAILED) from error
            case state if state in _OLDER:
                raise SchemaMissing(
                    f"The tables of Holdfast are missing or older than this version needs: {_first_line(error)}. "
                    "Run `holdfast migrate`. The transaction has failed with it: roll it back."
                ) from error
        raise


def sqlstate(error: BaseException) -> str | None:
    """PostgreSQL's five characters, whichever driver raised it."""
    cause = getattr(error, "orig", None) or error  # SQLAlchemy wraps the driver's
    state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)  # psycopg 2 says pgcode
    return state if isinstance(state, str) else None


def _first_line(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    return str(cause).partition("\n")[0].rstrip(".")
