"""Short words for what the tests of PostgreSQL do."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Done, Outcome
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.records import Claim, Finish, JobRecord, NewJob


def job(**options: Any) -> NewJob:
    return NewJob(**{"id": new_id(), "task": "mail.send", **options})


def hush(store: PostgresStore) -> None:
    """No hints: their NOTIFY would come between the requests that a test wants to cut off."""
    store.wakeups.tell = lambda queues: None  # type: ignore[method-assign]


async def put(store: PostgresStore, **options: Any) -> str:
    [answer] = await store.jobs.enqueue([job(**options)])
    return answer.id


async def put_many(store: PostgresStore, number: int, **options: Any) -> list[str]:
    return [answer.id for answer in await store.jobs.enqueue([job(**options) for _ in range(number)])]


async def take(store: PostgresStore, number: int = 1, *, lease: float = 30.0) -> list[Claim]:
    return await store.claims.claim({"default": number}, lease=lease, worker="w")


async def end(store: PostgresStore, claim: Claim, outcome: Outcome | None = None) -> bool:
    [accepted] = await store.claims.finish([Finish(claim, outcome or Done())])
    return accepted


async def the(store: PostgresStore, job_id: str) -> JobRecord:
    record = await store.jobs.get(job_id)
    assert record is not None
    return record


async def blocked(store: PostgresStore, number: int = 1) -> None:
    """Return when so many others of this database wait for a lock: a fact, not a guess by the clock."""
    sql = """SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND state = 'active'"""
    async with asyncio.timeout(30):
        while True:
            async with store.transaction() as tx:
                [(waiting,)] = await tx.fetch(sql)
            if waiting >= number:
                return
            await asyncio.sleep(0.01)
