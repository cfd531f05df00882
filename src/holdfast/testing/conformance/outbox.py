"""The outbox: events are stored with the caller's rows, have versions by key, and are kept and found."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.kernel.ids import new_id
from holdfast.store.event_records import READER_KEPT, Emitted, NewEvent, OutboxEvent
from holdfast.store.ports import Store
from holdfast.store.records import Lease
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, raises


def event(key: str | None = "k", **options: Any) -> NewEvent:
    return NewEvent(**{"id": new_id(), "type": "order.placed", "key": key, **options})


async def emit(store: Store, *keys: str | None) -> list[str]:
    """An event of each key, in one call; their ids."""
    return [answer.id for answer in await store.outbox.emit([event(key) for key in keys])]


async def relay(store: Store, owner: str = "r1") -> Lease:
    lease = await store.leases.acquire("holdfast:relay", owner=owner, ttl=30)
    assert lease is not None, "the relay's lease should be free"
    return lease


async def publish(store: Store, *keys: str | None) -> list[str]:
    """Events of these keys, emitted and published at once."""
    ids, lease = await emit(store, *keys), await relay(store)
    assert await store.outbox.stamp(lease, ids)
    return ids


async def the_event(store: Store, event_id: str) -> OutboxEvent:
    found = await store.outbox.get(event_id)
    assert found is not None, f"event {event_id} should be stored"
    return found


class OutboxConformance(Conformance):
    async def test_an_event_is_stored_as_it_was_given(self, store: Store) -> None:
        new = event(
            "order:1",
            data='{"name": "Zoë", "nul": "\\u0000"}',
            correlation_id="c",
            causation_id="d",
            trace="00-t",
        )
        assert await store.outbox.emit([new]) == [Emitted(new.id, 1)]
        found = await the_event(store, new.id)
        assert (found.type, found.key, found.version, found.data) == ("order.placed", "order:1", 1, new.data)
        assert (found.correlation_id, found.causation_id, found.trace) == ("c", "d", "00-t")
        assert (found.state, found.position, found.published_at) == ("waiting", None, None)
        assert (found.time, found.tries, found.error) == (await store.now(), 0, None)
        assert await store.outbox.get(new_id()) is None

    async def test_events_of_a_key_have_versions_without_a_gap(self, store: Store) -> None:
        first = await store.outbox.emit([event("a"), event("b"), event("a"), event(None), event("a")])
        assert [answer.version for answer in first] == [1, 1, 2, None, 3]
        assert [answer.version for answer in await store.outbox.emit([event("a"), event("b")])] == [4, 2]
        assert [await store.outbox.version(key) for key in "abc"] == [4, 2, 0]

    async def test_nothing_is_emitted_for_nothing(self, store: Store) -> None:
        assert await store.outbox.emit([]) == []
        assert await store.outbox.find() == []

    async def test_an_id_is_stored_once_and_answers_with_its_version(self, store: Store) -> None:
        one, two, free = event("a"), event("a"), event(None)
        await store.outbox.emit([one, free])
        for again in (False, True):
            answers = await store.outbox.emit([two, one, one, free, two], again=again)
            assert [answer.version for answer in answers] == [2, 1, 1, None, 2]
        assert await store.outbox.version("a") == 2
        assert len(await store.outbox.find()) == 3

    async def test_an_event_exists_if_and_only_if_its_transaction_committed(self, store: Store) -> None:
        new = event("a")
        with raises(Rollback):
            async with store.transaction() as tx:
                assert await store.outbox.emit([new], tx=tx) == [Emitted(new.id, 1)]
                assert await store.outbox.version("a", tx=tx) == 1
                raise Rollback
        assert await store.outbox.get(new.id) is None
        assert await store.outbox.version("a") == 0
        other = await self.second(store)
        async with store.transaction() as tx:
            await store.outbox.emit([event("a"), event("a")], tx=tx)
            answers = await store.outbox.emit([new], tx=tx)
            assert answers == [Emitted(new.id, 3)]
            assert await other.outbox.get(new.id) is None
        assert (await the_event(other, new.id)).version == 3

    async def test_many_who_emit_at_once_share_the_versions_of_a_key(self, store: Store) -> None:
        clients = [store, await self.second(store), await self.second(store)]
        calls = [clients[n % 3].outbox.emit([event("a"), event(f"k{n}"), event("b")]) for n in range(30)]
        answers = await asyncio.gather(*calls)
        for place in (0, 2):
            assert sorted(answer[place].version or 0 for answer in answers) == [*range(1, 31)]
        by_version = sorted(await store.outbox.find(key="a"), key=lambda each: each.version or 0)
        assert [each.seq for each in by_version] == sorted(each.seq for each in by_version)

    async def test_many_events_in_one_call(self, store: Store) -> None:
        answers = await store.outbox.emit([event(f"k{n % 7}") for n in range(700)])
        assert [answer.version for answer in answers[-7:]] == [100] * 7
        found = await store.outbox.find(limit=1000)
        assert [each.id for each in reversed(found)] == [answer.id for answer in answers]

    async def test_events_are_found_newest_first(self, store: Store) -> None:
        a, b = event("a", type="x.y", correlation_id="c1"), event("b", correlation_id="c1")
        c, d = event("a", correlation_id="c2"), event(None)
        for each in (a, b, c, d):
            await store.outbox.emit([each])
        lease = await relay(store)
        await store.outbox.stamp(lease, [b.id])
        await store.outbox.failed(lease, d.id, "poison", rest=None)
        await store.outbox.failed(lease, a.id, "poison", rest=5)

        async def found(**wanted: Any) -> list[str]:
            return [each.id for each in await store.outbox.find(**wanted)]

        assert await found() == [d.id, c.id, b.id, a.id]
        assert await found(limit=2) == [d.id, c.id]
        assert await found(state="waiting") == [c.id, a.id]
        assert await found(state="waiting", limit=1) == [c.id]
        assert await found(state="published") == [b.id]
        assert await found(state="quarantined") == [d.id]
        assert await found(type="x.y") == [a.id]
        assert await found(key="a") == [c.id, a.id]
        assert await found(correlation_id="c1") == [b.id, a.id]
        assert await found(correlation_id="c1", state="waiting", key="a", type="x.y") == [a.id]
        assert await found(correlation_id="c9") == []

    async def test_the_log_has_what_was_published_in_order(self, store: Store) -> None:
        ids = await publish(store, "a", "b", None, "a")
        await emit(store, "a")
        log = await store.outbox.log()
        assert [each.id for each in log] == ids
        first = log[0].position or 0
        assert [each.position for each in log] == [first, first + 1, first + 2, first + 3]
        assert {(each.state, each.published_at) for each in log} == {("published", await store.now())}
        assert [each.id for each in await store.outbox.log(after=first)] == ids[1:]
        assert [each.id for each in await store.outbox.log(after=first, before=first + 3)] == ids[1:3]
        assert [each.id for each in await store.outbox.log(limit=2)] == ids[:2]
        assert await store.outbox.log(after=first + 3) == []

    async def test_the_log_since_a_moment(self, store: Store) -> None:
        assert await store.outbox.log(since=0) == []
        ids, times = list[str](), list[float]()
        for _ in range(20):
            times.append(await store.now())
            ids += await publish(store, "a", None)
            await self.advance(store, 100)
        for place in (0, 1, 7, 19):
            found = await store.outbox.log(since=times[place])
            assert [each.id for each in found] == ids[2 * place :]
        assert [each.id for each in await store.outbox.log(since=times[7] + 1)] == ids[16:]
        assert [each.id for each in await store.outbox.log(since=times[7], limit=3)] == ids[14:17]
        middle = (await store.outbox.log(since=times[7], limit=1))[0].position or 0
        assert [each.id for each in await store.outbox.log(after=middle + 4, since=times[7])] == ids[19:]
        assert await store.outbox.log(since=await store.now()) == []

    async def test_the_lag_counts_what_waits(self, store: Store) -> None:
        lag = await store.outbox.lag()
        assert (lag.waiting, lag.oldest, lag.quarantined, lag.position) == (0, None, 0, 0)
        ids = await emit(store, "a", "a", "b", "c")
        await self.advance(store, 5)
        await emit(store, "d")
        lease = await relay(store)
        await store.outbox.failed(lease, ids[0], "busy", rest=60)
        await store.outbox.failed(lease, ids[2], "poison", rest=None)
        await store.outbox.waiting(lease, limit=10)
        lag = await store.outbox.lag()
        assert (lag.waiting, lag.oldest, lag.quarantined, lag.position) == (4, 5.0, 1, 0)
        positions = await store.outbox.stamp(lease, [ids[3]])
        assert positions is not None
        assert (await store.outbox.lag()).position == positions[0]

    async def test_prune_forgets_what_was_published_long_ago(self, store: Store) -> None:
        old = await publish(store, "a", None, "a")
        await self.advance(store, 100)
        young = await publish(store, "a")
        waiting = await emit(store, "a")
        assert await store.outbox.prune(keep=101) == 0
        assert await store.outbox.prune(keep=100, limit=2) == 2
        assert await store.outbox.prune(keep=100) == 1
        assert await store.outbox.prune(keep=100) == 0
        assert [each.id for each in await store.outbox.find()] == [*waiting, *young]
        assert [await store.outbox.get(each) for each in old] == [None] * 3
        assert await store.outbox.version("a") == 4, "versions never go back"

    async def test_prune_keeps_what_a_group_has_not_read(self, store: Store) -> None:
        await store.inbox.subscribe("slow", from_start=True)
        ids = await publish(store, "a", "b", "c")
        log = await store.outbox.log()
        await store.inbox.subscribe("quick", from_start=True)
        await store.inbox.deliver("quick", [], upto=log[2].position)
        await self.advance(store, 1)
        assert await store.outbox.prune(keep=0) == 0
        await store.inbox.deliver("slow", [], upto=log[0].position)
        assert await store.outbox.prune(keep=0) == 1
        assert [each.id for each in await store.outbox.log()] == ids[1:]
        assert await store.inbox.unsubscribe("slow", actor="ada")
        assert await store.outbox.prune(keep=0) == 2

    async def test_a_group_that_nobody_reads_for_holds_nothing_back(self, store: Store) -> None:
        await store.inbox.subscribe("forgotten", from_start=True)
        await publish(store, "a")
        await self.advance(store, READER_KEPT - 1)
        assert await store.outbox.prune(keep=0) == 0
        await self.advance(store, 1)
        assert await store.outbox.prune(keep=0) == 1
