"""Finds look at live jobs and at those that are over, one after the other: what ends in between is found once."""

from __future__ import annotations

import pytest
from kit import end, put_many, take

from holdfast.kernel.outcomes import Done
from holdfast.store.postgres import finding
from holdfast.store.states import State

FINDS = {
    "all": lambda: finding.find(state=None, held=None, before=None, limit=10),
    "unique": lambda: finding.of_unique(["u"], 10),
    "tenant": lambda: finding.of_tenant("t", [], None, 10),
}


@pytest.mark.parametrize("find", FINDS)
async def test_a_job_that_ends_between_the_two_looks_is_found_once(store, other, find):
    [job_id] = await put_many(store, 1, unique="u", tenant="t")
    await store.holds.promote()
    [claim] = await take(store, 1)
    procedure = FINDS[find]()
    async with other.transaction() as tx:
        statement = next(procedure)
        rows = await tx.fetch(statement.sql, *statement.params)
        assert [row[0] for row in rows] == [job_id]
        await end(store, claim, Done())
        with pytest.raises(StopIteration) as answer:
            while True:
                statement = procedure.send(rows)
                rows = await tx.fetch(statement.sql, *statement.params)
    assert [(each.id, each.state) for each in answer.value.value] == [(job_id, State.SUCCEEDED)]
