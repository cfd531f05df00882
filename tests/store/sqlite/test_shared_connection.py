"""All writers of a process share one connection: a caller's statement must leave nothing behind in it."""

from __future__ import annotations

import pytest

from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.sqlite.store import SqliteStore


@pytest.mark.parametrize(
    "sql",
    [
        "PRAGMA query_only = ON",
        "/* quick */ pragma synchronous = OFF",
        "ATTACH 'other.db' AS other",
        "CREATE TEMP TABLE holdfast_job (x)",
        "-- mine\ncreate temporary view v as select 1",
    ],
)
@pytest.mark.parametrize("verb", ["execute", "fetch"])
async def test_what_would_stay_is_refused(tmp_path, verb, sql):
    store = SqliteStore(str(tmp_path / "jobs.db"))
    await store.open()
    with pytest.raises(UsageError, match="everyone's writes"):
        async with store.transaction() as tx:
            await getattr(tx, verb)(sql)
    await store.jobs.enqueue([NewJob(id=new_id(), task="t")])
    async with store.transaction() as tx:
        assert await tx.fetch("SELECT name FROM pragma_table_info('holdfast_job') LIMIT 1") == [("seq",)]
    await store.close()
