"""One SQL statement as a value, and procedures that yield statements, so that any driver can run them."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from holdfast.kernel.errors import UsageError

T = TypeVar("T")
Rows: TypeAlias = Sequence[Sequence[Any]]


class Statement(msgspec.Struct, frozen=True):
    """SQL with `$1`, `$2` … and the values for them."""

    sql: str
    params: tuple[Any, ...] = ()


ONE_AT_A_TIME = "One statement at a time: a COMMIT could hide behind the first. Call each by itself."


def may_be_several(sql: str) -> bool:
    """Whether this text may hold more than one statement; one with a semicolon in a string may look so."""
    return ";" in sql.rstrip("; \t\r\n")


_LEADING = r"(?:[\s;\ufeff]|--[^\n]*\n|/\*.*?\*/)*"
_BACK = r"(?!\s+((work|transaction)\s+)?to\b)"  # ROLLBACK TO a savepoint goes on behind that
_ENDS = re.compile(
    _LEADING + rf"(begin|(start|prepare)\s+transaction|commit|end|abort|rollback{_BACK})\b",
    re.IGNORECASE | re.DOTALL,
)
_STAYS = re.compile(_LEADING + r"(pragma|attach|detach|create\s+temp(orary)?)\b", re.IGNORECASE | re.DOTALL)


def refuse_end(sql: str) -> None:
    """What was done before a COMMIT by hand would be stored, and what comes after it in the block would not."""
    if _ENDS.match(sql):
        raise UsageError(
            f"{sql.strip()!r} would begin or end a transaction. Leave that to the block: its end commits, an exception rolls back."
        )


def refuse_what_stays(sql: str) -> None:
    """On SQLite all callers write through one connection, one after the other."""
    if _STAYS.match(sql):
        raise UsageError(
            f"{sql.strip()!r} would change the connection that everyone's writes go through. "
            "Read with functions such as pragma_table_info('t'), and use ordinary tables."
        )


# A verb as a generator: it yields a statement, is sent the rows, and returns the answer. It does no I/O itself,
# so asyncpg, psycopg and SQLAlchemy, sync or async, all run the same verb, each on the thread of its connection.
Procedure: TypeAlias = Generator[Statement, Rows, T]
