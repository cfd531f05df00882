"""Brings the rows of one column under the current key, a page in each transaction. Writers may go on meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol
from uuid import UUID

import msgspec

from holdfast.kernel.errors import HoldfastError, UsageError
from holdfast.kernel.show import show
from holdfast.vault.errors import SealBroken
from holdfast.vault.place import Place
from holdfast.vault.vault import Vault, sealed_under

PAGE = 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?")
_HEX = re.compile("[0-9a-f]{32}")


class Rows(Protocol):
    """As much of a transaction as this needs."""

    async def execute(self, sql: str, /, *params: Any) -> int: ...
    async def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]: ...


class SealedColumn(msgspec.Struct, frozen=True):
    """A column that keeps sealed text: its table, the column of the primary key, and the one of the tenant."""

    table: str
    column: str
    row: str = "id"
    tenant: str | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and _NAME.fullmatch(value)):
                raise UsageError(f"{name} of a sealed column is a plain name of SQL; not {show(value)}.")

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}"

    def places(self, row: object, tenant: object) -> Iterator[Place]:
        """As the program may have named it: SQLAlchemy keeps a UUID on SQLite without its dashes, and a program says `str()` of it."""
        for owner in _spellings("" if self.tenant is None or tenant is None else str(tenant)):
            for key in _spellings(str(row)):
                yield Place(self.table, self.column, key, owner)


class Page(msgspec.Struct, frozen=True):
    """What one page has done: the last row it saw (None: there are no more), how many it sealed anew, which do not open."""

    last: Any
    resealed: int
    broken: Sequence[str]


async def reseal_page(tx: Rows, vault: Vault, column: SealedColumn, after: Any = None) -> Page:
    """The next rows behind `after` that another key has sealed. A row that somebody changed meanwhile is left as it is now."""
    names = (column.row, column.tenant or column.row, column.column)
    row, tenant, value = (_quoted(name) for name in names)
    table, prefix = _quoted(column.table), sealed_under(vault.keyring().current)
    behind, params = ("", ()) if after is None else (f"AND {row} > $2", (after,))
    found = await tx.fetch(
        f"SELECT {row}, {tenant}, {value} FROM {table} WHERE {value} IS NOT NULL AND substr({value}, 1, {len(prefix)}) <> $1 "  # noqa: S608  checked names
        f"{behind} ORDER BY {row} LIMIT {PAGE}",
        prefix,
        *params,
    )
    resealed, broken = 0, []
    for key, owner, sealed in found:
        try:
            fresh = _resealed(vault, sealed, column.places(key, owner))
        except HoldfastError:
            broken.append(str(key))
            continue
        resealed += await tx.execute(
            f"UPDATE {table} SET {value} = $1 WHERE {row} = $2 AND {value} = $3",  # noqa: S608  checked names
            fresh,
            key,
            sealed,
        )
    return Page(found[-1][0] if len(found) == PAGE else None, resealed, broken)


async def count_by_key(tx: Rows, column: SealedColumn, key_ids: Sequence[str]) -> dict[str, int]:
    """How many rows each of these keys has sealed; all others, also what is not sealed at all, are under ""."""
    value, table = _quoted(column.column), _quoted(column.table)
    prefixes = [sealed_under(key_id) for key_id in key_ids]
    sums = "".join(
        f", count(CASE WHEN substr({value}, 1, {len(prefix)}) = ${position} THEN 1 END)"
        for position, prefix in enumerate(prefixes, 1)
    )
    [(total, *counts)] = await tx.fetch(f"SELECT count({value}){sums} FROM {table}", *prefixes)  # noqa: S608  checked names
    found = {key_id: count for key_id, count in zip(key_ids, counts, strict=True) if count}
    others = total - sum(found.values())
    return {**found, "": others} if others else found


def _resealed(vault: Vault, sealed: str, places: Iterable[Place]) -> str:
    """In the place in which it opens."""
    broken: SealBroken | None = None
    for place in places:
        try:
            return vault.reseal(sealed, place)
        except SealBroken as error:
            broken = error
    assert broken is not None
    raise broken


def _spellings(text: str) -> Iterator[str]:
    yield text
    if _HEX.fullmatch(text):
        yield str(UUID(text))


def _quoted(name: str) -> str:
    return ".".join(f'"{part}"' for part in name.split("."))
