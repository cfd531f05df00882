"""Lists as values of a program's statements: SQLite has no arrays, so `= ANY($1)` reads them out of JSON."""

from __future__ import annotations

import re
from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec

from holdfast.kernel.errors import DataError

# What is quoted or said in a comment is nobody's array; the first that fits is taken, from the left.
_QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/"
_CAST = r"(?:\s*::\s*\w[\w ]*\[\s*\])?"
_TEST = rf"(?P<test>=\s*any|(?:<>|!=)\s*all)\s*\(\s*\$(?P<place>\d+){_CAST}\s*\)"
_READ = re.compile(rf"(?P<quoted>{_QUOTED})|{_TEST}", re.IGNORECASE | re.DOTALL)
_ELSEWHERE = re.compile(
    rf"(?:{_QUOTED})|json_each\s*\(\s*\$\d+\s*[,)]|\$(?P<place>\d+)", re.IGNORECASE | re.DOTALL
)
_HOW = "A list is for `= ANY($1)` and `<> ALL($1)`; to store one, pass JSON text"


def with_arrays(sql: str, params: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The statement and its values as SQLite takes them; the same ones when no value is a list."""
    if not any(isinstance(value, list | tuple) for value in params):
        return sql, params
    read, elsewhere = _reading(sql)
    return read, tuple(
        _text(place, value, elsewhere) if isinstance(value, list | tuple) else value
        for place, value in enumerate(params, 1)
    )


@lru_cache(maxsize=256)
def _reading(sql: str) -> tuple[str, frozenset[int]]:
    """With each test against an array as one against the rows of JSON, and the parameters that stand anywhere else."""
    read = _READ.sub(_in_rows, sql)
    found = (each["place"] for each in _ELSEWHERE.finditer(read))
    return read, frozenset(int(place) for place in found if place is not None)


def _in_rows(found: re.Match[str]) -> str:
    if found["quoted"] is not None:
        return found["quoted"]
    test = "IN" if found["test"].startswith("=") else "NOT IN"
    return f"{test} (SELECT value FROM json_each(${found['place']}))"


def _text(place: int, values: list[Any] | tuple[Any, ...], elsewhere: frozenset[int]) -> str:
    if place in elsewhere:
        raise DataError(f"Parameter ${place} is a {type(values).__name__}. {_HOW}.")
    for value in values:
        if not _fits(value):
            kind = type(value).__name__
            raise DataError(
                f"Parameter ${place} is a list with a value ({kind}) that SQLite does not take in one. "
                "It takes None, bool, int (64 bits), finite float and str."
            )
    return msgspec.json.encode(values).decode()


def _fits(value: Any) -> bool:
    match value:
        case None | bool():
            return True
        case int():
            return -(2**63) <= value < 2**63
        case float():
            return isfinite(value)
        case str():
            return value.isascii() or _is_text(value)
    return False


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
