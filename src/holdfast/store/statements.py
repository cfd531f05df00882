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


# A verb as a generator: it yields a statement, is sent the rows, and returns the answer. It does no I/O itself,
# so asyncpg, psycopg and SQLAlchemy, sync or async, all run the same verb, each on the thread of its connection.
Procedure: TypeAlias = Generator[Statement, Rows, T]
