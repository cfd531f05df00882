"""What a snapshot gives to a program: the rows of one moment, and no way to write."""

from __future__ import annotations

from typing import Any, Protocol

from holdfast.kernel.awaits import Awaits, must_await, of_tx

ONLY_READS = "This is a snapshot, which only reads. Write in `async with hf.transaction() as tx`."
LIMIT = 60.0  # seconds; an open snapshot keeps the database from clearing away what has changed since
NEW = "A snapshot is entered once. Ask for another with hf.snapshot()."
FAILED = "Nothing more is read in it. Ask for another with hf.snapshot()."


class Reads(Protocol):
    async def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]: ...


class ReadTx:
    """All that it reads is of one moment: `$1`, `$2` on both stores, rows are tuples."""

    def __init__(self, reads: Reads, awaits: Awaits) -> None:
        self._reads, self.awaits = reads, awaits

    @must_await("tx.fetch", to=of_tx)
    async def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]:
        """Run one statement that reads, with `$1`, `$2` …; its rows."""
        return await self._reads.fetch(sql, *params)
