"""Transactions: what the verbs write through `tx=` commits with the caller's rows, or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import LeaseLost, TooManyWaiting, TransactionEnded, UsageError, WrongConnection
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead, Done, Retry
from holdfast.kernel.spawn import start
from holdfast.store.event_records import NewEvent
from holdfast.store.ports import Store
from holdfast.store.records import Enqueued, Finish
from holdfast.store.states import Held, State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    Rollback,
    end,
    held,
    ids,
    job,
    put,
    put_many,
    raises,
    state_of,
    take,
    take_one,
    the,
    total,
)

_CREATE = "CREATE TABLE conformance_order (id INTEGER PRIMARY KEY, name TEXT)"


class TransactionsConformance(Conformance):
    async def _orders(self, store: Store) -> list[tuple[object, ...]]:
        async with store.transaction() as tx:
            return await tx.fetch("SELECT id, name FROM conformance_order ORDER BY id")

    async def _create(self, store: Store) -> None:
        async with store.transaction() as tx:
            await tx.execute("DROP TABLE IF EXISTS conformance_order")
            await tx.execute(_CREATE)

    async def test_a_job_is_seen_inside_its_transaction(self, store: Store) -> None:
        async with store.transaction() as tx:
            [stored] = await store.jobs.enqueue([job()], tx=tx)
            assert await store.jobs.get(stored.id) is None
            record = await store.jobs.get(stored.id, tx=tx)
            assert record is not None
            assert record.state is State.QUEUED

    async def test_execute_counts_rows_and_fetch_gives_tuples(self, store: Store) -> None:
        await self._create(store)
        async with store.transaction() as tx:
            assert await tx.execute("INSERT INTO conformance_order (id, name) VALUES ($1, $2)", 1, "Zoë") == 1
            assert await tx.execute("INSERT INTO conformance_order (id, name) VALUES ($1, $2)", 2, None) == 1
            rows = await tx.fetch("SELECT id, name FROM conformance_order WHERE id >= $1 ORDER BY id", 1)
            assert rows == [(1, "Zoë"), (2, None)]
            assert all(type(row) is tuple for row in rows)
            assert await tx.execute("UPDATE conformance_order SET name = $1", "x") == 2
            assert await tx.execute("DELETE FROM conformance_order WHERE id = $1", 9) == 0
        assert await self._orders(store) == [(1, "x"), (2, "x")]

    async def test_tasks_share_it_in_the_order_in_which_they_ask(self, store: Store) -> None:
        await self._create(store)
        async with store.transaction() as tx:
            asked = [
                *(store.outbox.emit([NewEvent(id=new_id(), type="t", key="a")], tx=tx) for _ in range(3)),
                tx.execute("INSERT INTO conformance_order VALUES (1, 'a')"),
                tx.fetch("SELECT name FROM conformance_order"),
                store.jobs.enqueue([job()], tx=tx),
            ]
            answers: list[Any] = await asyncio.gather(*asked)
        assert [each[0].version for each in answers[:3]] == [1, 2, 3]
        assert answers[3:5] == [1, [("a",)]]
        assert await store.jobs.get(answers[5][0].id) is not None

    async def test_what_was_asked_for_before_its_end_is_in_it(self, store: Store) -> None:
        await self._create(store)
        async with store.transaction() as tx:
            inside = [
                start(tx.execute("INSERT INTO conformance_order VALUES ($1, 'a')", number), name="inside")
                for number in range(3)
            ]
            await sleep(0)  # each of them has asked
        late = start(tx.execute("INSERT INTO conformance_order VALUES (9, 'late')"), name="late")
        with raises(TransactionEnded):
            await late
        assert [await each for each in inside] == [1, 1, 1]
        assert len(await self._orders(store)) == 3

    async def test_a_commit_cannot_hide_behind_a_statement(self, store: Store) -> None:
        await self._create(store)
        for verb in ("execute", "fetch"):
            with raises(UsageError, "One statement"):
                async with store.transaction() as tx:
                    await getattr(tx, verb)("INSERT INTO conformance_order VALUES (1, 'a'); COMMIT; BEGIN")
            assert await self._orders(store) == []

    async def test_a_semicolon_in_a_text_is_no_second_statement(self, store: Store) -> None:
        await self._create(store)
        async with store.transaction() as tx:
            assert await tx.execute("INSERT INTO conformance_order VALUES (1, 'a; b');") == 1
            assert await tx.fetch("SELECT name FROM conformance_order WHERE name <> ';';") == [("a; b",)]
        assert await self._orders(store) == [(1, "a; b")]

    async def test_a_parameter_may_be_used_twice_and_in_any_order(self, store: Store) -> None:
        await self._create(store)
        async with store.transaction() as tx:
            await tx.execute("INSERT INTO conformance_order (name, id) VALUES ($2, $1)", 1, "a")
            sql = "SELECT id FROM conformance_order WHERE (name = $2 OR name = $2) AND id = $1"
            assert await tx.fetch(sql, 1, "a") == [(1,)]

    async def test_an_exception_rolls_back_and_reaches_the_caller(self, store: Store) -> None:
        await self._create(store)
        with raises(Rollback):
            async with store.transaction() as tx:
                await tx.execute("INSERT INTO conformance_order (id) VALUES (1)")
                raise Rollback
        assert await self._orders(store) == []

    async def test_others_see_nothing_before_the_commit(self, store: Store) -> None:
        other = await self.second(store)
        async with store.transaction() as tx:
            new = job()
            await store.jobs.enqueue([new], tx=tx)
            assert await other.jobs.get(new.id) is None
        assert await other.jobs.get(new.id) is not None

    async def test_an_enqueued_job_exists_if_and_only_if_the_transaction_committed(
        self, store: Store
    ) -> None:
        await self._create(store)
        new = job(unique="u")
        with raises(Rollback):
            async with store.transaction() as tx:
                await tx.execute("INSERT INTO conformance_order (id) VALUES (1)")
                assert await store.jobs.enqueue([new], tx=tx) == [Enqueued(new.id, created=True)]
                raise Rollback
        assert await store.jobs.get(new.id) is None
        assert await total(store) == 0
        async with store.transaction() as tx:
            await tx.execute("INSERT INTO conformance_order (id) VALUES (2)")
            assert await store.jobs.enqueue([new], tx=tx) == [Enqueued(new.id, created=True)]
        assert await state_of(store, new.id) == READY
        assert await self._orders(store) == [(2, None)]

    async def test_a_unique_key_enqueued_in_a_rolled_back_transaction_is_free(self, store: Store) -> None:
        with raises(Rollback):
            async with store.transaction() as tx:
                await store.jobs.enqueue([job(unique="u")], tx=tx)
                raise Rollback
        assert (await store.jobs.enqueue([job(unique="u")]))[0].created

    async def test_keys_answer_inside_a_transaction_as_outside(self, store: Store) -> None:
        async with store.transaction() as tx:
            first, second, third = job(unique="u"), job(unique="u"), job(ordered="o", delay=5)
            answers = await store.jobs.enqueue([first], tx=tx)
            answers += await store.jobs.enqueue([second, third], tx=tx)
        assert answers == [Enqueued(first.id, True), Enqueued(first.id, False), Enqueued(third.id, True)]
        assert await state_of(store, third.id) == held(Held.ARRIVED)

    async def test_max_waiting_refuses_inside_a_transaction(self, store: Store) -> None:
        await put(store, max_waiting=1)
        with raises(TooManyWaiting):
            async with store.transaction() as tx:
                await store.jobs.enqueue([job(), job(max_waiting=1)], tx=tx)
        assert await total(store) == 1

    async def test_an_empty_transaction_is_no_error(self, store: Store) -> None:
        async with store.transaction():
            pass

    async def test_a_finish_commits_with_the_rows_of_its_transaction(self, store: Store) -> None:
        await self._create(store)
        job_id = await put(store)
        claim = await take_one(store)
        async with store.transaction() as tx:
            await tx.execute("INSERT INTO conformance_order (id) VALUES (1)")
            assert await store.claims.finish([Finish(claim, Done("1"))], tx=tx) == [True]
        record = await the(store, job_id)
        assert (record.state, record.result, record.token) == (State.SUCCEEDED, "1", claim.token)
        assert await store.claims.settle(job_id, claim.token)
        assert await self._orders(store) == [(1, None)]

    async def test_a_rolled_back_finish_leaves_the_claim_held(self, store: Store) -> None:
        first, second = await put_many(store, 2, ordered="o")
        await store.holds.promote()
        claim = await take_one(store)
        with raises(Rollback):
            async with store.transaction() as tx:
                await store.claims.finish([Finish(claim, Done("1"))], tx=tx)
                raise Rollback
        assert (await the(store, first)).state is State.RUNNING
        assert await state_of(store, second) == held(Held.ORDERING)
        assert not await store.claims.settle(first, claim.token)
        assert len(await store.claims.renew([claim], lease=LEASE)) == 1
        assert await end(store, claim)

    async def test_every_outcome_may_be_written_in_a_transaction(self, store: Store) -> None:
        made = await put_many(store, 3, ordered="o")
        await store.holds.promote()
        for outcome in (Retry(error="oops"), Dead("broken")):
            claim = await take_one(store)
            async with store.transaction() as tx:
                assert await store.claims.finish([Finish(claim, outcome)], tx=tx) == [True]
        assert (await the(store, made[0])).state is State.DEAD
        assert await state_of(store, made[1]) == READY

    async def test_a_lost_claim_raises_and_rolls_back_everything(self, store: Store) -> None:
        await self._create(store)
        job_id = await put(store)
        lost = await take_one(store)
        await self.advance(store, LEASE)
        await store.claims.rescue()
        with raises(LeaseLost, job_id):
            async with store.transaction() as tx:
                await tx.execute("INSERT INTO conformance_order (id) VALUES (1)")
                await store.claims.finish([Finish(lost, Done("1"))], tx=tx)
        assert await self._orders(store) == []
        assert await state_of(store, job_id) == READY

    async def test_one_lost_claim_of_several_rolls_back_all(self, store: Store) -> None:
        await put_many(store, 2)
        held_, lost = await take(store, 2)
        await end(store, lost, Retry(after=5))
        with raises(LeaseLost, lost.job_id):
            async with store.transaction() as tx:
                await store.claims.finish([Finish(held_, Done()), Finish(lost, Done())], tx=tx)
        assert (await the(store, held_.job_id)).state is State.RUNNING

    async def test_a_transaction_that_has_ended_takes_no_more(self, store: Store) -> None:
        async with store.transaction() as tx:
            pass
        with raises(TransactionEnded):
            await tx.execute("SELECT 1")
        with raises(TransactionEnded):
            await store.jobs.enqueue([job()], tx=tx)
        assert await total(store) == 0

    async def test_what_is_no_transaction_of_this_store_is_refused(self, store: Store) -> None:
        for wrong in (object(), "tx", store):
            with raises(WrongConnection):
                await store.jobs.enqueue([job()], tx=wrong)
        assert await total(store) == 0

    async def test_work_goes_on_after_a_transaction_that_failed(self, store: Store) -> None:
        with raises(Exception, "there_is_no_such_table"):
            async with store.transaction() as tx:
                await tx.execute("SELECT * FROM there_is_no_such_table")
        job_id = await put(store)
        assert ids(await take(store)) == [job_id]
