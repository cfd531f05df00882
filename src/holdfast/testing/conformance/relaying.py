"""What a relay is given, in which order, and what becomes of events that cannot be published."""

from __future__ import annotations

from holdfast.kernel.ids import new_id
from holdfast.kernel.portions import PORTION
from holdfast.store.ports import Store
from holdfast.store.records import Lease
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.outbox import emit, event, relay, the_event


async def waiting(store: Store, lease: Lease, limit: int = 100) -> list[str]:
    return [each.id for each in await store.outbox.waiting(lease, limit=limit)]


class RelayingConformance(Conformance):
    async def test_what_waits_is_given_in_order_again_and_again(self, store: Store) -> None:
        ids = await emit(store, "a", "b", None, "a")
        ids += await emit(store, "b")
        lease = await relay(store)
        assert await waiting(store, lease) == ids
        assert await waiting(store, lease) == ids
        assert await waiting(store, lease, 2) == ids[:2]
        [first, *_] = await store.outbox.waiting(lease, limit=1)
        assert first == await the_event(store, ids[0])

    async def test_large_events_are_given_in_portions(self, store: Store) -> None:
        """Or many of them would fill the memory of whoever publishes or reads them."""
        data = ['"' + "x" * 100_000 + '"', '"' + "ö" * 50_000 + '"'] * 50
        new = [event(data=text) for text in data]
        ids = [each.id for each in await store.outbox.emit(new)]
        lease, found = await relay(store), list[str]()
        while some := await store.outbox.waiting(lease, limit=500):
            assert sum(len(each.data.encode()) for each in some) <= PORTION
            found += [each.id for each in some]
            await store.outbox.stamp(lease, [each.id for each in some])
        assert found == ids
        first = await store.outbox.log(limit=500)
        assert len(first) == PORTION // 100_002, "as many as there is room for"
        assert [each.id for each in await store.outbox.log(after=len(first), limit=500)] == ids[len(first) :]

    async def test_large_events_behind_one_that_failed_are_given_in_portions(self, store: Store) -> None:
        new = [event("a", data='"' + "x" * 200_000 + '"') for _ in range(60)]
        ids = [each.id for each in await store.outbox.emit(new)]
        lease = await relay(store)
        assert await store.outbox.failed(lease, ids[0], "no", rest=5)
        assert await waiting(store, lease, 500) == []
        await self.advance(store, 6)
        given = await waiting(store, lease, 500)
        assert given == ids[: PORTION // 200_002]

    async def test_what_is_stamped_does_not_wait(self, store: Store) -> None:
        ids = await emit(store, "a", "b", "a")
        lease = await relay(store)
        positions = await store.outbox.stamp(lease, [ids[1], ids[0]])
        assert positions is not None
        assert positions[1] == positions[0] + 1, "in the order given"
        assert await waiting(store, lease) == ids[2:]
        assert [each.id for each in await store.outbox.log()] == [ids[1], ids[0]]

    async def test_a_position_is_kept_and_given_once(self, store: Store) -> None:
        ids = await emit(store, "a", "b", "c")
        lease = await relay(store)
        first = await store.outbox.stamp(lease, ids[:1])
        again = await store.outbox.stamp(lease, [ids[1], ids[0], ids[1], new_id(), ids[2]])
        assert first is not None
        assert again is not None
        assert again[1] == first[0]
        assert again[0] == again[2] > first[0]
        assert again[3] == 0, "there is no such event"
        assert again[4] > again[0]
        assert await store.outbox.stamp(lease, []) == []

    async def test_a_lost_lease_is_given_nothing_and_writes_nothing(self, store: Store) -> None:
        [event_id] = await emit(store, "a")
        lost = await relay(store, "r1")
        await self.advance(store, 30)
        assert await self._refused(store, lost, event_id), "it has ended"
        held = await relay(store, "r2")
        assert await self._refused(store, lost, event_id), "another has it"
        assert await store.leases.release(held)
        assert await self._refused(store, held, event_id), "it was given back"
        found = await the_event(store, event_id)
        assert (found.state, found.tries) == ("waiting", 0)

    async def _refused(self, store: Store, lease: Lease, event_id: str) -> bool:
        return (
            await store.outbox.waiting(lease, limit=9) == []
            and await store.outbox.stamp(lease, [event_id]) is None
            and not await store.outbox.failed(lease, event_id, "late", rest=None)
        )

    async def test_one_that_failed_rests_and_its_key_with_it(self, store: Store) -> None:
        a1, b1, a2, free = await emit(store, "a", "b", "a", None)
        lease = await relay(store)
        assert await store.outbox.failed(lease, a1, "busy \0", rest=10)
        found = await the_event(store, a1)
        assert (found.state, found.tries, found.error) == ("waiting", 1, "busy \\u0000")
        assert await waiting(store, lease) == [b1, free]
        [a3] = await emit(store, "a")
        assert await waiting(store, lease) == [b1, free]
        await self.advance(store, 9)
        assert await waiting(store, lease) == [b1, free]
        await self.advance(store, 1)
        assert await waiting(store, lease) == [a1, b1, a2, free, a3]
        assert await waiting(store, lease, 1) == [a1]
        assert await store.outbox.stamp(lease, [a1]) is not None
        [a4] = await emit(store, "a")
        assert await waiting(store, lease, 4) == [b1, a2, free, a3]
        await store.outbox.stamp(lease, [b1, a2, free, a3])
        assert await waiting(store, lease) == [a4]

    async def test_one_without_a_key_rests_alone(self, store: Store) -> None:
        one, two = await emit(store, None, None)
        lease = await relay(store)
        assert await store.outbox.failed(lease, one, "busy", rest=10)
        assert await waiting(store, lease) == [two]
        await self.advance(store, 10)
        assert await waiting(store, lease) == [one, two]
        assert await store.outbox.failed(lease, one, "busy", rest=10)
        assert await waiting(store, lease) == [two]
        await self.advance(store, 10)
        await store.outbox.stamp(lease, [one])
        assert await waiting(store, lease) == [two]
        assert (await the_event(store, one)).tries == 2

    async def test_what_fails_again_rests_again(self, store: Store) -> None:
        a1, a2 = await emit(store, "a", "a")
        lease = await relay(store)
        for tries in (1, 2, 3):
            assert await store.outbox.failed(lease, a1, "busy", rest=5)
            assert await waiting(store, lease) == []
            assert (await the_event(store, a1)).tries == tries
            await self.advance(store, 5)
            assert await waiting(store, lease) == [a1, a2]

    async def test_a_quarantined_event_holds_up_only_its_key(self, store: Store) -> None:
        a1, b1, _ = await emit(store, "a", "b", "a")
        lease = await relay(store)
        assert await store.outbox.failed(lease, a1, "poison", rest=None)
        assert (await the_event(store, a1)).state == "quarantined"
        await emit(store, "a")
        for _ in range(2):
            assert await waiting(store, lease) == [b1]
            await self.advance(store, 25)
            lease = await store.leases.renew(lease, ttl=30) or lease

    async def test_those_behind_one_that_blocks_nobody_go_on(self, store: Store) -> None:
        a1, a2, a3 = await emit(store, "a", "a", "a")
        lease = await relay(store)
        assert await store.outbox.failed(lease, a1, "poison", rest=None, blocks=False)
        assert await waiting(store, lease) == [a2, a3]
        assert await store.outbox.failed(lease, a2, "busy", rest=5, blocks=False)
        assert await waiting(store, lease) == [a3]
        assert await store.outbox.requeue([a1], actor="ada") == [True]
        assert await waiting(store, lease) == [a1, a3]
        await self.advance(store, 5)
        assert await waiting(store, lease) == [a1, a2, a3]

    async def test_a_block_that_is_given_up_lets_its_key_go_on(self, store: Store) -> None:
        a1, a2 = await emit(store, "a", "a")
        lease = await relay(store)
        assert await store.outbox.failed(lease, a1, "busy", rest=60)
        assert await waiting(store, lease) == []
        assert await store.outbox.failed(lease, a1, "poison", rest=None, blocks=False)
        assert await waiting(store, lease) == [a2]

    async def test_what_was_published_before_it_but_not_stamped_is_given(self, store: Store) -> None:
        """The relay may die between the failure of one and the stamp of those before it."""
        a1, a2, a3, a4 = await emit(store, "a", "a", "a", "a")
        lease = await relay(store)
        assert await store.outbox.failed(lease, a3, "poison", rest=None)
        assert await waiting(store, lease) == [a1, a2]
        assert await store.outbox.failed(lease, a1, "busy", rest=5)
        assert await waiting(store, lease) == []
        await self.advance(store, 5)
        assert await waiting(store, lease) == [a1, a2]
        await store.outbox.stamp(lease, [a1, a2])
        assert await waiting(store, lease) == []
        assert await store.outbox.requeue([a3], actor="ada") == [True]
        assert await waiting(store, lease) == [a3, a4]

    async def test_what_fails_while_those_behind_a_block_go_on(self, store: Store) -> None:
        a1, a2, a3, a4 = await emit(store, "a", "a", "a", "a")
        lease = await relay(store)
        await store.outbox.failed(lease, a1, "busy", rest=5)
        assert await waiting(store, lease) == []
        await self.advance(store, 5)
        assert await waiting(store, lease) == [a1, a2, a3, a4]
        await store.outbox.stamp(lease, [a1])
        await store.outbox.failed(lease, a3, "busy", rest=5)
        assert await waiting(store, lease) == [a2]
        await store.outbox.stamp(lease, [a2])
        assert await waiting(store, lease) == []
        await self.advance(store, 5)
        assert await waiting(store, lease) == [a3, a4]

    async def test_a_failure_behind_one_that_waits_lets_nobody_pass(self, store: Store) -> None:
        a1, a2, a3, a4 = await emit(store, "a", "a", "a", "a")
        lease = await relay(store)
        await store.outbox.failed(lease, a1, "poison", rest=None)
        await store.outbox.failed(lease, a3, "poison", rest=None)
        assert await waiting(store, lease) == []
        await store.outbox.requeue([a1], actor="ada")
        assert await waiting(store, lease) == [a1, a2]
        await store.outbox.stamp(lease, [a1, a2])
        assert await waiting(store, lease) == []
        await store.outbox.drop([a3], actor="ada", reason="broken")
        assert await waiting(store, lease) == [a4]

    async def test_what_is_published_after_all_blocks_nobody(self, store: Store) -> None:
        """The failure was told, and yet the message had arrived."""
        for rest in (None, 60):
            first, second, third = await emit(store, "a", "a", "a")
            lease = await relay(store)
            await store.outbox.failed(lease, first, "no answer", rest=rest)
            assert await waiting(store, lease) == []
            assert await store.outbox.stamp(lease, [first]) is not None
            assert await waiting(store, lease) == [second, third]
            await store.outbox.stamp(lease, [second, third])

    async def test_requeue_publishes_after_all(self, store: Store) -> None:
        a1, a2, b1 = await emit(store, "a", "a", "b")
        lease = await relay(store)
        await store.outbox.failed(lease, a1, "poison", rest=None)
        assert await waiting(store, lease) == [b1]
        assert await store.outbox.requeue([a1, b1, a1, new_id()], actor="ada") == [True, False, False, False]
        found = await the_event(store, a1)
        assert (found.state, found.tries, found.error) == ("waiting", 0, "poison")
        assert await waiting(store, lease) == [a1, a2, b1]
        [entry] = await store.audit.find(subject=a1)
        assert (entry.actor, entry.action) == ("ada", "outbox.requeue")

    async def test_drop_gives_it_up_and_the_rest_goes_on(self, store: Store) -> None:
        a1, a2, free = await emit(store, "a", "a", None)
        lease = await relay(store)
        await store.outbox.failed(lease, a1, "poison", rest=None)
        await store.outbox.failed(lease, free, "poison", rest=None)
        assert await waiting(store, lease) == []
        dropped = await store.outbox.drop([free, a1, a2, a1], actor="ada", reason="broken \ud800")
        assert dropped == [True, True, False, False]
        assert [await store.outbox.get(each) for each in (a1, free)] == [None, None]
        assert await waiting(store, lease) == [a2]
        [entry] = await store.audit.find(subject=a1)
        assert (entry.actor, entry.action) == ("ada", "outbox.drop")
        assert "broken" in (entry.after or "")
        assert await store.outbox.version("a") == 2

    async def test_a_late_failure_of_what_is_published_changes_nothing(self, store: Store) -> None:
        a1, a2 = await emit(store, "a", "a")
        lease = await relay(store)
        await store.outbox.stamp(lease, [a1])
        assert await store.outbox.failed(lease, a1, "late", rest=None)
        assert await store.outbox.failed(lease, new_id(), "unheard of", rest=None)
        assert (await the_event(store, a1)).state == "published"
        assert await waiting(store, lease) == [a2]

    async def test_many_behind_a_block_are_not_in_the_way(self, store: Store) -> None:
        """More than one look sets aside, and more than are given at once."""
        first = await emit(store, "a")
        behind = [answer.id for answer in await store.outbox.emit([event("a") for _ in range(12_000)])]
        others = await emit(store, *(f"b{n}" for n in range(20)))
        lease = await relay(store)
        await store.outbox.failed(lease, first[0], "poison", rest=None)
        assert await waiting(store, lease, 10) == others[:10]
        await store.outbox.stamp(lease, others)
        assert await waiting(store, lease, 10) == []
        await store.outbox.requeue(first, actor="ada")
        given = list[str]()
        while part := await waiting(store, lease, 4_000):
            assert await store.outbox.stamp(lease, part)
            given += part
        assert given == [*first, *behind]
