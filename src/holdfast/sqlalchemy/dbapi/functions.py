"""SQL functions that SQLAlchemy's SQLite dialect expects of a connection."""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakSet

import apsw

_have: WeakSet[apsw.Connection] = WeakSet()


def add_functions(connection: apsw.Connection) -> None:
    """Once for each connection."""
    if connection not in _have:
        connection.create_scalar_function("regexp", _regexp, 2, deterministic=True)
        _have.add(connection)


def _regexp(*given: Any) -> bool | None:
    """`value REGEXP pattern`, which SQLite calls as (pattern, value)."""
    pattern, value = given
    return None if value is None else re.search(pattern, value) is not None
