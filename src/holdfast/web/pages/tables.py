"""Tables: columns, and pages of rows by key. No page numbers: the next page begins after the last row of this one."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.requests import Request

from holdfast.kernel.names import check_int

_OLDER, _NEWER = "older", "newer"
_LONGEST = 1000  # characters of a cursor


class Column(msgspec.Struct, frozen=True):
    """A head of a table. With `sort`, it is a link that sorts by this word: `?sort=wait`, and `?sort=-wait`."""

    title: str
    align: Literal["", "right"] = ""
    sort: str = ""


class Rows(msgspec.Struct, frozen=True):
    """One page of a table: its rows, their place, and the links to the pages beside it."""

    rows: Sequence[Any]
    first: int = 1
    total: str = ""  # such as 10,000+
    newer: str | None = None  # the query of that page
    older: str | None = None

    def __iter__(self) -> Any:
        return iter(self.rows)

    @property
    def words(self) -> str:
        """1 to 50 of 10,000+."""
        if not self.rows:
            return "nothing"
        of = f" of {self.total}" if self.total else ""
        return f"{self.first:,} to {self.first + len(self.rows) - 1:,}{of}"


class Cursor:
    """Where a page of a table begins. `key` is that of the last row before it; None at the begin.

    Ask the database for `limit` rows after the key, or, when `is_backwards`, before it and in the other order; then
    `cursor.rows(found, key=lambda row: (row.at, row.id))`.
    """

    def __init__(self, request: Request, *, size: int = 50) -> None:
        self.size = check_int("size", size, 1, 1000)
        self.limit = size + 1  # one more says whether there is a next page
        query = request.scope.get("query_string", b"").decode("latin-1")
        self._rest = [pair for pair in parse_qsl(query) if pair[0] not in (_OLDER, _NEWER)]
        older, newer = request.query_params.get(_OLDER), request.query_params.get(_NEWER)
        self.is_backwards = older is None and newer is not None
        found = _decoded(older if older is not None else newer or "")
        self._at: int = found[0] if found else 1
        self.key: tuple[Any, ...] | None = tuple(found[1]) if found else None
        if self.key is None:
            self.is_backwards = False

    def rows(self, found: Sequence[Any], *, key: Callable[[Any], tuple[Any, ...]], total: str = "") -> Rows:
        """The page, out of what the database has found."""
        more, kept = len(found) > self.size, list(found[: self.size])
        if self.is_backwards:
            kept.reverse()
        first = max(1, self._at - len(kept)) if self.is_backwards else self._at
        has_newer = more if self.is_backwards else self.key is not None
        has_older = True if self.is_backwards else more
        return Rows(
            kept,
            first,
            total,
            self._link(_NEWER, first, key(kept[0])) if kept and has_newer else None,
            self._link(_OLDER, first + len(kept), key(kept[-1])) if kept and has_older else None,
        )

    def _link(self, way: str, at: int, key: tuple[Any, ...]) -> str:
        text = base64.urlsafe_b64encode(msgspec.json.encode([at, list(key)])).decode().rstrip("=")
        return "?" + urlencode([*self._rest, (way, text)])


def sort_link(query: dict[str, str], word: str) -> str:
    """The query that sorts by this word; the other way round when it does already. The table begins at its begin then."""
    rest = {name: value for name, value in query.items() if name not in (_OLDER, _NEWER)}
    return "?" + urlencode({**rest, "sort": f"-{word}" if query.get("sort") == word else word})


def sorted_by(query: dict[str, str], word: str) -> str:
    """`ascending` or `descending`, when the table is sorted by this word; else empty."""
    now = query.get("sort", "") if word else ""
    return "ascending" if now == word and word else "descending" if now == f"-{word}" and word else ""


def _decoded(text: str) -> tuple[int, list[str | int | float | bool | None]] | None:
    """None for what is no cursor of ours: then the table begins at its begin."""
    if not text or len(text) > _LONGEST:
        return None
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        at, key = msgspec.json.decode(content, type=tuple[int, list[str | int | float | bool | None]])
    except (binascii.Error, ValueError):
        return None
    return (at, key) if 1 <= at < 2**53 and key else None
