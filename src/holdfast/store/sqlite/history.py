"""Forget jobs that were over long ago, a bounded number in each transaction."""

from __future__ import annotations

from functools import partial

from holdfast.store.edge import checked
from holdfast.store.records import Pruned
from holdfast.store.sqlite.connection import Db, numbers
from holdfast.store.sqlite.subject import Subject

BATCH = 2_000  # jobs in one transaction, so that nobody waits long for the write lock


def old(db: Db, *, keep: float, after: int) -> list[int]:
    """Jobs after this number that were over long ago, the earliest first."""
    sql = "SELECT seq FROM holdfast_over WHERE seq > ? AND finished_at <= ? ORDER BY seq LIMIT ?"
    return [seq for (seq,) in db.rows(sql, after, db.now - keep, BATCH)]


def forget(db: Db, *, jobs: list[int]) -> int:
    gone = numbers(jobs)
    db.run("DELETE FROM holdfast_over WHERE seq IN (SELECT value FROM json_each(?))", gone)
    return db.run("DELETE FROM holdfast_job WHERE seq IN (SELECT value FROM json_each(?))", gone)


@checked
class History(Subject):
    async def prune(self, *, keep: float) -> Pruned:
        """Found by the reader and deleted by the writer: looking through millions of rows keeps no lock."""
        total, last = 0, 0
        while jobs := await self._file.read(partial(old, keep=keep, after=last)):
            total += await self._file.write(partial(forget, jobs=jobs), repeatable=True)
            last = jobs[-1]
        return Pruned(total)
