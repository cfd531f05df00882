"""Rescue in a caller's transaction: what it writes beside a job that is given up commits with it, or neither does."""

from __future__ import annotations

from holdfast.store.ports import Store
from holdfast.store.records import AuditEntry, Rescue
from holdfast.store.states import State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    READY,
    Rollback,
    end,
    ids,
    put,
    put_many,
    raises,
    state_of,
    take,
    take_one,
    take_suspect,
    the,
)


async def two_strikes(store: Store) -> str:
    """A suspect that runs alone, and is dead when it is interrupted once more."""
    job_id = await put(store, task="poison")
    await take_one(store)
    await store.claims.rescue_worker("w1")
    for _ in range(2):
        await take_suspect(store)
        await store.claims.rescue_worker("w1")
    await take_suspect(store)
    return job_id


class RescueInTransactionConformance(Conformance):
    async def test_rows_commit_with_the_job_that_is_given_up(self, store: Store) -> None:
        job_id = await two_strikes(store)
        await self.advance(store, 31)
        async with store.transaction() as tx:
            (rescued,) = await store.claims.rescue(tx=tx)
            assert rescued == Rescue(job_id, "w1", State.DEAD, 4, "poison")
            await store.audit.write(AuditEntry(actor="upkeep", action="told", subject=job_id), tx=tx)
        assert (await the(store, job_id)).state is State.DEAD
        assert len(await store.audit.find(subject=job_id)) == 1

    async def test_a_rescue_that_is_rolled_back_has_not_happened(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        await self.advance(store, 31)
        for worker in (None, "w1"):
            with raises(Rollback):
                async with store.transaction() as tx:
                    if worker is None:
                        assert len(await store.claims.rescue(tx=tx)) == 1
                    else:
                        assert len(await store.claims.rescue_worker(worker, tx=tx)) == 1
                    raise Rollback
            record = await the(store, job_id)
            assert (record.state, record.interruptions) == (State.RUNNING, 0)
        assert await end(store, claim), "its token was never taken from it"

    async def test_a_rescue_in_a_transaction_puts_back_and_passes_on(self, store: Store) -> None:
        first = await put(store, ordered="o", concurrency="c", concurrency_limit=1)
        second = await put(store, concurrency="c", concurrency_limit=1)
        await store.holds.promote()
        lost = await take_one(store)
        assert lost.job_id == first
        async with store.transaction() as tx:
            (rescued,) = await store.claims.rescue_worker("w1", tx=tx)
        assert rescued == Rescue(first, "w1", State.QUEUED, 1, "mail.send")
        assert await state_of(store, second) == READY
        assert not await end(store, lost)

    async def test_all_jobs_of_a_worker_are_rescued_in_one_transaction(self, store: Store) -> None:
        many = await put_many(store, 700)
        await take(store, 700)
        async with store.transaction() as tx:
            assert len(await store.claims.rescue_worker("w1", tx=tx)) == 700
            assert await store.claims.rescue_worker("w1", tx=tx) == []
        assert ids(await take(store, 700)) == []  # suspects run alone
        assert {(await the(store, job_id)).suspect for job_id in many[:5]} == {True}

    async def test_a_rescue_takes_no_more_than_asked_in_a_transaction_too(self, store: Store) -> None:
        await put_many(store, 3)
        await take(store, 3)
        async with store.transaction() as tx:
            assert await store.claims.rescue(tx=tx) == []
        await self.advance(store, 31)
        async with store.transaction() as tx:
            assert len(await store.claims.rescue(limit=2, tx=tx)) == 2
        assert len(await store.claims.rescue()) == 1
