"""Wake-ups: a hint that there may be work. None is promised, so these tests show that the usual ones arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.kernel.clock import timeout
from holdfast.kernel.errors import NotOpen
from holdfast.kernel.outcomes import Dead
from holdfast.kernel.spawn import spawn
from holdfast.store.bell import LOG, OUTBOX
from holdfast.store.event_records import Delivery
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, end, job, put, raises, take_one
from holdfast.testing.conformance.outbox import emit, event, relay

SOON = 0.03  # seconds of silence that are enough to say that nothing was heard
LONG = 20.0  # seconds that nobody waits unless a test fails


async def listen(store: Store, *queues: str) -> None:
    """The first wait begins to listen, and says that nobody knows what was before."""
    assert await store.wakeups.wait(queues, LONG) is True
    await silence(store, *queues)


async def silence(store: Store, *queues: str) -> None:
    """Wait until nothing is new any more."""
    async with timeout(LONG):
        while await store.wakeups.wait(queues, SOON):
            pass


async def waiting(store: Store, queues: Sequence[str] = ("default",)) -> asyncio.Task[bool]:
    """Someone who waits for these queues, and has begun to."""
    task = spawn(store.wakeups.wait(queues, LONG), name="waiting")
    for _ in range(5):
        await asyncio.sleep(0)  # let it begin
    return task


class WakeupsConformance(Conformance):
    async def test_nothing_new_is_false(self, store: Store) -> None:
        await listen(store, "default")
        assert await store.wakeups.wait(["default"], SOON) is False
        assert await store.wakeups.wait(["default"], 0) is False
        assert await store.wakeups.wait([], SOON) is False

    async def test_a_hint_wakes_who_waits_for_its_queue(self, store: Store) -> None:
        await listen(store, "mail", "default")
        task = await waiting(store, ["mail", "default"])
        store.wakeups.hint(["other", "mail"])
        assert await task is True

    async def test_a_hint_is_kept_for_who_waits_later(self, store: Store) -> None:
        await listen(store, "mail")
        store.wakeups.hint(["mail"])
        assert await store.wakeups.wait(["mail"], LONG) is True

    async def test_a_hint_for_another_queue_is_none(self, store: Store) -> None:
        await listen(store, "mail")
        store.wakeups.hint(["other"])
        assert await store.wakeups.wait(["mail"], SOON) is False

    async def test_all_who_wait_are_woken(self, store: Store) -> None:
        await listen(store, "default")
        tasks = [await waiting(store) for _ in range(5)]
        await put(store)
        assert await asyncio.gather(*tasks) == [True] * 5

    async def test_an_enqueue_wakes_who_waits_in_the_same_process(self, store: Store) -> None:
        await listen(store, "default")
        for options in ({}, {"ordered": "o"}, {"tenant": "t"}, {"at": 1.0}):
            await silence(store, "default")
            task = await waiting(store)
            await put(store, **options)
            assert await task is True, options

    async def test_an_enqueue_wakes_who_waits_elsewhere(self, store: Store) -> None:
        other = await self.second(store)
        await listen(other, "default")
        for _ in range(3):
            await silence(other, "default")
            task = await waiting(other)
            await put(store)
            assert await task is True

    async def test_a_hint_of_many_queues_reaches_everyone(self, store: Store) -> None:
        await listen(store, "name 7")
        task = await waiting(store, ["name 7"])
        store.wakeups.hint([f"name {number} {'x' * 100}" for number in range(500)] + ["name 7"])
        assert await task is True

    async def test_a_transaction_wakes_after_its_commit(self, store: Store) -> None:
        await listen(store, "default")
        async with store.transaction() as tx:
            await store.jobs.enqueue([job()], tx=tx)
            assert await store.wakeups.wait(["default"], SOON) is False
        assert await store.wakeups.wait(["default"], LONG) is True

    async def test_a_transaction_wakes_who_waits_elsewhere(self, store: Store) -> None:
        other = await self.second(store)
        await listen(other, "default")
        task = await waiting(other)
        async with store.transaction() as tx:
            await store.jobs.enqueue([job()], tx=tx)
        assert await task is True

    async def test_a_transaction_that_is_rolled_back_wakes_nobody(self, store: Store) -> None:
        await listen(store, "default")
        with raises(Rollback):
            async with store.transaction() as tx:
                await store.jobs.enqueue([job()], tx=tx)
                raise Rollback
        assert await store.wakeups.wait(["default"], SOON) is False

    async def test_a_tick_and_a_replay_wake_too(self, store: Store) -> None:
        await listen(store, "default")
        task = await waiting(store)
        await store.schedules.tick("nightly", 5.0, job())
        assert await task is True
        claim = await take_one(store)
        await end(store, claim, Dead("broken"))
        await silence(store, "default")
        task = await waiting(store)
        await store.dead.replay([claim.job_id], actor="ada")
        assert await task is True

    async def test_resuming_a_queue_wakes_who_waits_for_it_here_and_elsewhere(self, store: Store) -> None:
        await store.queues.pause("mail", by="ada")
        other = await self.second(store)
        for each in (store, other):
            await listen(each, "mail")
        tasks = [await waiting(each, ["mail"]) for each in (store, other)]
        await store.queues.resume("mail", by="ada")
        assert await asyncio.gather(*tasks) == [True, True]

    async def test_claims_and_finishes_wake_nobody(self, store: Store) -> None:
        await put(store)
        await put(store)
        await listen(store, "default")
        await silence(store, "default")
        claim = await take_one(store)
        await store.claims.renew([claim], lease=30)
        await end(store, claim)
        assert await store.wakeups.wait(["default"], SOON) is False

    async def test_events_wake_who_relays_and_who_reads_the_log(self, store: Store) -> None:
        other = await self.second(store)
        for each in (store, other):
            await listen(each, OUTBOX, LOG, "default")
        tasks = [await waiting(each, [OUTBOX]) for each in (store, other)]
        ids = await emit(store, "a", "b")
        assert await asyncio.gather(*tasks) == [True, True]
        for each in (store, other):
            await silence(each, OUTBOX)
        tasks = [await waiting(each, [OUTBOX]) for each in (store, other)]
        async with store.transaction() as tx:
            await store.outbox.emit([event()], tx=tx)
            assert not any(task.done() for task in tasks)
        assert await asyncio.gather(*tasks) == [True, True]
        for each in (store, other):
            assert await each.wakeups.wait([LOG, "default"], SOON) is False, "nothing was published"
        tasks = [await waiting(each, [LOG]) for each in (store, other)]
        await store.outbox.stamp(await relay(store), ids)
        assert await asyncio.gather(*tasks) == [True, True]
        for each in (store, other):
            assert await each.wakeups.wait(["default"], SOON) is False, "nothing is queued"

    async def test_a_delivery_wakes_who_waits_for_its_queue(self, store: Store) -> None:
        await listen(store, "default")
        task = await waiting(store)
        await store.inbox.deliver("billing", [Delivery("e", job())])
        assert await task is True
        await silence(store, "default")
        await store.inbox.deliver("billing", [Delivery("e", job())], upto=5)
        assert await store.wakeups.wait(["default"], SOON) is False, "it had that event"

    async def test_what_a_person_decides_about_events_wakes_who_relays(self, store: Store) -> None:
        ids, lease = await emit(store, "a", "b"), await relay(store)
        for event_id in ids:
            await store.outbox.failed(lease, event_id, "poison", rest=None)
        other = await self.second(store)
        await listen(other, OUTBOX)
        task = await waiting(other, [OUTBOX])
        await store.outbox.requeue(ids[:1], actor="ada")
        assert await task is True
        await silence(other, OUTBOX)
        task = await waiting(other, [OUTBOX])
        await store.outbox.drop(ids[1:], actor="ada", reason="broken")
        assert await task is True

    async def test_a_hint_never_raises(self, store: Store) -> None:
        nonsense: list[object] = [None, 5, "default", [None, 5], b"x", {"a": 1}, ["\ud83e"], [[]], object()]
        for given in nonsense:
            store.wakeups.hint(given)  # type: ignore[arg-type]
        await put(store)
        await store.close()
        store.wakeups.hint(["default"])

    async def test_nobody_waits_at_a_closed_store(self, store: Store) -> None:
        await listen(store, "default")
        task = await waiting(store)
        await store.close()
        assert await task is True  # what it does next tells it more
        with raises(NotOpen):
            await store.wakeups.wait(["default"], LONG)
