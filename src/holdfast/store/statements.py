"""One SQL statement as a value, and procedures that yield statements, so that any driver can run them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

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


# A verb as a generator: it yields a statement, is sent the rows, and returns the answer. It does no I/O itself,
# so asyncpg, psycopg and SQLAlchemy, sync or async, all run the same verb, each on the thread of its connection.
Procedure: TypeAlias = Generator[Statement, Rows, T]
