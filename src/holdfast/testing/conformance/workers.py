"""Workers: who is alive, what it serves and runs, and who has died."""

from __future__ import annotations

from typing import Any

from holdfast.store.ports import Store
from holdfast.store.worker_records import SHOWN, NewWorker, WorkerRecord, WorkerState
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import put, put_many, take, take_one
from holdfast.testing.conformance.names import longest

TTL = 30.0


def worker(name: str, **options: Any) -> NewWorker:
    usual = {"host": "shop-1", "pid": 7, "version": "1.2.3", "queues": {"default": 10}, "tasks": ("a", "b")}
    return NewWorker(**{"name": name, **usual, **options})


async def one(store: Store) -> WorkerRecord:
    (found,) = await store.workers.find()
    return found


class WorkersConformance(Conformance):
    async def test_a_worker_is_known_from_its_start(self, store: Store) -> None:
        assert await store.workers.find() == []
        await store.workers.register(worker("w1"), ttl=TTL)
        now = await store.now()
        assert await one(store) == WorkerRecord(
            name="w1", role="worker", host="shop-1", pid=7, version="1.2.3", state=WorkerState.RUNNING,
            queues={"default": 10}, tasks=("a", "b"), started_at=now, seen_at=now, until=now + TTL,
            rescued=0, running=(), running_count=0,
        )  # fmt: skip

    async def test_a_worker_with_the_longest_names_is_known(self, store: Store) -> None:
        names = {"queues": {longest("queue"): 1}, "tasks": (longest("task"),), "host": longest("host")}
        await store.workers.register(worker(longest("worker"), role="relay", **names), ttl=TTL)
        found = await one(store)
        assert (found.queues, found.tasks, found.host) == tuple(names.values())
        assert found.role == "relay"

    async def test_a_sign_of_life_keeps_it_alive(self, store: Store) -> None:
        began = await store.now()
        await store.workers.register(worker("w1"), ttl=TTL)
        for _ in range(3):
            await self.advance(store, 20)
            assert await store.workers.beat("w1", ttl=TTL)
        found = await one(store)
        assert (found.started_at, found.seen_at, found.until) == (began, began + 60, began + 60 + TTL)
        assert found.state is WorkerState.RUNNING

    async def test_without_one_it_is_dead(self, store: Store) -> None:
        await store.workers.register(worker("w1"), ttl=TTL)
        began = await store.now()
        await self.advance(store, TTL)
        found = await one(store)
        assert (found.state, found.seen_at, found.until) == (WorkerState.DEAD, began, began + TTL)

    async def test_one_that_was_only_silent_is_alive_again(self, store: Store) -> None:
        await store.workers.register(worker("w1"), ttl=TTL)
        await self.advance(store, 100)
        assert await store.workers.beat("w1", ttl=TTL)
        assert (await one(store)).state is WorkerState.RUNNING

    async def test_one_that_is_draining_says_so(self, store: Store) -> None:
        await store.workers.register(worker("w1"), ttl=TTL)
        assert await store.workers.beat("w1", ttl=TTL, draining=True)
        assert (await one(store)).state is WorkerState.DRAINING
        await self.advance(store, TTL)
        assert (await one(store)).state is WorkerState.DEAD

    async def test_one_that_nobody_knows_must_register_again(self, store: Store) -> None:
        assert not await store.workers.beat("w1", ttl=TTL)
        assert await store.workers.find() == []

    async def test_one_that_leaves_is_forgotten(self, store: Store) -> None:
        await store.workers.register(worker("w1"), ttl=TTL)
        await store.workers.register(worker("w2"), ttl=TTL)
        assert await store.workers.leave("w1")
        assert not await store.workers.leave("w1")
        assert (await one(store)).name == "w2"

    async def test_one_whose_process_has_died_is_dead_at_once(self, store: Store) -> None:
        await store.workers.register(worker("w1"), ttl=TTL)
        await self.advance(store, 5)
        died = await store.now()
        assert await store.workers.bury("w1")
        await self.advance(store, 5)
        assert await store.workers.bury("w1")
        found = await one(store)
        assert (found.state, found.until) == (WorkerState.DEAD, died)
        assert not await store.workers.bury("w2")

    async def test_what_was_put_back_is_counted(self, store: Store) -> None:
        for name in ("w1", "w2"):
            await store.workers.register(worker(name), ttl=TTL)
        await store.workers.charge({"w2": 3, "w1": 1, "another": 5})
        await store.workers.charge({"w2": 2})
        await store.workers.charge({})
        assert {found.name: found.rescued for found in await store.workers.find()} == {"w1": 1, "w2": 5}

    async def test_the_same_name_again_is_another_start(self, store: Store) -> None:
        await store.workers.register(worker("w1"), ttl=TTL)
        await store.workers.charge({"w1": 1})
        await store.workers.beat("w1", ttl=TTL, draining=True)
        await self.advance(store, 5)
        await store.workers.register(worker("w1", pid=8, queues={}, tasks=()), ttl=TTL)
        found = await one(store)
        assert (found.pid, found.queues, found.tasks, found.rescued) == (8, {}, (), 0)
        assert (found.state, found.started_at) == (WorkerState.RUNNING, await store.now())

    async def test_what_it_runs_is_shown(self, store: Store) -> None:
        for name in ("w1", "w2"):
            await store.workers.register(worker(name), ttl=TTL)
        first, second = await put(store), await put(store, task="pay", queue="money")
        await take_one(store)
        await self.advance(store, 3)
        await take_one(store, "money")
        busy, idle = await store.workers.find()
        now = await store.now()
        assert [(job.id, job.task, job.queue, job.since) for job in busy.running] == [
            (first, "mail.send", "default", now - 3),
            (second, "pay", "money", now),
        ]
        assert (busy.running_count, idle.running, idle.running_count) == (2, (), 0)

    async def test_of_many_jobs_those_that_run_longest_are_shown(self, store: Store) -> None:
        await store.workers.register(worker("w1"), ttl=TTL)
        stored = await put_many(store, SHOWN + 5)
        claimed = (await take(store, 1))[0].job_id
        await self.advance(store, 1)
        assert len(await take(store, 99)) == len(stored) - 1
        found = await one(store)
        assert (found.running_count, len(found.running)) == (SHOWN + 5, SHOWN)
        assert found.running[0].id == claimed

    async def test_those_that_are_alive_come_first(self, store: Store) -> None:
        await store.workers.register(worker("dead-early"), ttl=5)
        await store.workers.register(worker("dead-late"), ttl=8)
        await store.workers.register(worker("b"), ttl=TTL)
        await store.workers.register(worker("a"), ttl=TTL)
        await self.advance(store, 10)
        await store.workers.register(worker("new"), ttl=TTL)
        names = [found.name for found in await store.workers.find()]
        assert names == ["a", "b", "new", "dead-late", "dead-early"]
        assert [found.name for found in await store.workers.find(limit=2)] == ["a", "b"]

    async def test_the_dead_are_forgotten_after_a_while(self, store: Store) -> None:
        await store.workers.register(worker("early"), ttl=5)
        await store.workers.register(worker("late"), ttl=20)
        await self.advance(store, 100)
        assert await store.workers.prune(keep=100) == 0
        assert await store.workers.prune(keep=80) == 1
        assert (await one(store)).name == "late"
        assert await store.workers.prune(keep=0, limit=1) == 1
