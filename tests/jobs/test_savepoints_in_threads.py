"""`with tx.savepoint():` in sync code, on both stores."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.errors import TransactionEnded, UniqueViolation


async def test_a_savepoint_in_sync_code(hf):
    @hf.task
    async def greet(name: str) -> None:
        pass

    def work():
        with hf.blocking.transaction() as tx:
            tx.execute("CREATE TABLE item (id INTEGER PRIMARY KEY)")
            tx.execute("INSERT INTO item VALUES (1)")
            with pytest.raises(UniqueViolation), tx.savepoint():
                greet.options(tx=tx).enqueue_sync("ada")
                tx.execute("INSERT INTO item VALUES (1)")
            with tx.savepoint():
                tx.execute("INSERT INTO item VALUES (2)")
        with pytest.raises(TransactionEnded), hf.blocking.transaction() as tx:
            tx.execute("INSERT INTO item VALUES (3)")
            with pytest.raises(UniqueViolation):
                tx.execute("INSERT INTO item VALUES (1)")
        with hf.blocking.transaction() as tx:
            return tx.fetch("SELECT id FROM item ORDER BY id")

    assert await asyncio.to_thread(work) == [(1,), (2,)]
    assert await hf.store.jobs.find() == []
    async with hf.transaction() as tx:
        await tx.execute("DROP TABLE item")
