"""Values as PostgreSQL's text, and `$1` as `%(p1)s`: for drivers that do not leave both to the server.

Sent as text of unknown type, a value gets the type that the server infers from the statement, which is what asyncpg
does. So one statement means the same through every driver, whatever types psycopg would have guessed from Python's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from holdfast.kernel.errors import UsageError


def text_form(value: Any) -> str | None:
    """How PostgreSQL reads this value as the type that the statement asks for."""
    if value is None:
        return None
    for kinds, form in _FORMS:
        if isinstance(value, kinds):
            return form(value)
    raise UsageError(
        f"A parameter of type {type(value).__name__} cannot be sent: {value!r:.60}. "
        "Pass text, numbers, dates, UUIDs, bytes, or lists of them; encode JSON yourself."
    )


def _array(values: Sequence[Any]) -> str:
    return "{" + ",".join(map(_element, values)) + "}"


def _element(item: Any) -> str:
    if item is None:
        return "NULL"
    if isinstance(item, list | tuple):
        return _array(item)
    return '"' + str(text_form(item)).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _interval(value: timedelta) -> str:
    return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"


# In this order: a bool is an int too. The bare methods give the text and number of an enum, not its name.
_FORMS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (str, str.__str__),
    (bool, lambda value: "t" if value else "f"),
    (int, int.__repr__),
    (float, float.__repr__),
    (list | tuple, _array),
    (Decimal | UUID, str),
    (datetime | date | time, lambda value: str(value.isoformat())),
    (timedelta, _interval),
    (bytes | bytearray | memoryview, lambda value: "\\x" + bytes(value).hex()),
)


def named(params: Sequence[Any]) -> dict[str, str | None]:
    """The values for what `pyformat` has made of a statement."""
    return {f"p{number}": text_form(value) for number, value in enumerate(params, start=1)}


# What is quoted or commented out has no parameters in it. `date'…'` is no `e'…'`, and `a$1` is a name.
_TOKEN = re.compile(
    r"""
      (?P<quoted> (?<![\w$])[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
                | (?P<tag>(?<![\w$])\$(?:[^\W\d]\w*)?\$).*?(?P=tag)
                | --[^\n]* | /\*.*?\*/ )
    | (?<![\w$])\$(?P<number>\d+)
    | %
    """,
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=512)
def pyformat(sql: str) -> str:
    """The statement with `%(p1)s` for `$1`, and `%%` for each `%`, in literals too: the driver looks there as well."""
    return _TOKEN.sub(_replacement, sql)


def _replacement(token: re.Match[str]) -> str:
    if number := token["number"]:
        return f"%(p{number})s"
    return token[0].replace("%", "%%")
