"""How often a program has committed something, by what the database itself says: each of these is a write to the disk."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path
from typing import Self

from holdfast import Holdfast, Tx
from holdfast.errors import Deadlock

_SEEN = "CREATE TABLE heart_writes (number xid8 PRIMARY KEY)"
_NOTICE = """CREATE FUNCTION heart_notice() RETURNS trigger LANGUAGE plpgsql AS '
    BEGIN INSERT INTO heart_writes VALUES (pg_current_xact_id()) ON CONFLICT DO NOTHING; RETURN NULL; END'"""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'holdfast'"
_WATCH = """CREATE TRIGGER heart_watch AFTER INSERT OR UPDATE OR DELETE ON holdfast.{table}
    FOR EACH STATEMENT EXECUTE FUNCTION heart_notice()"""


class Commits:
    """Of all processes on the database, whatever they write there: also leases, quota and reports of workers."""

    def __init__(self, hf: Holdfast, url: str) -> None:
        self._hf, self._url = hf, url
        self._is_counted_by_triggers = not url.startswith("sqlite")

    async def __aenter__(self) -> Self:
        while self._is_counted_by_triggers:
            with suppress(Deadlock):  # with a worker that writes to these tables in another order
                async with self._hf.transaction() as tx:
                    await self._watch(tx)
                break
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_counted_by_triggers:
            async with self._hf.transaction() as tx:
                await tx.execute("DROP FUNCTION heart_notice CASCADE")
                await tx.execute("DROP TABLE heart_writes")

    async def _watch(self, tx: Tx) -> None:
        await tx.execute(_SEEN)
        await tx.execute(_NOTICE)
        for (table,) in await tx.fetch(_TABLES):
            await tx.execute(_WATCH.format(table=table))

    async def count(self) -> int:
        if not self._is_counted_by_triggers:
            return _changes(self._url.removeprefix("sqlite:///"))
        async with self._hf.transaction() as tx:
            [(number,)] = await tx.fetch("SELECT count(*) FROM heart_writes")
        return number


def _changes(file: str) -> int:
    """The third number of SQLite's WAL index: it grows with each transaction that writes."""
    return struct.unpack_from("=I", Path(f"{file}-shm").read_bytes(), 8)[0]
