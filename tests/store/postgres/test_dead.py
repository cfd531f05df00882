"""Dead jobs on PostgreSQL: what others do between our look and our write."""

from __future__ import annotations

import asyncio

import pytest
from kit import blocked, end, job, put_many, take

from holdfast.kernel.outcomes import Dead
from holdfast.store.records import Replayed


@pytest.mark.parametrize("committed", [True, False])
async def test_a_replay_waits_for_who_is_taking_its_unique_key(store, other, committed):
    [dead] = await put_many(store, 1, unique="u")
    [claim] = await take(store, 1)
    await end(store, claim, Dead("broken"))
    try:
        async with other.transaction() as tx:
            await other.jobs.enqueue([job(unique="u")], tx=tx)
            replaying = asyncio.create_task(store.dead.replay([dead], actor="ada"))
            await blocked(other)
            if not committed:
                raise KeyError
    except KeyError:
        pass
    assert await replaying == [Replayed(dead, "unique_taken" if committed else "queued")]
