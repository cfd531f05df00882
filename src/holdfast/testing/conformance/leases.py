"""Leases by name: one holder at a time, and a newer token for every holder."""

from __future__ import annotations

from holdfast.store.ports import Store
from holdfast.store.records import Lease
from holdfast.testing.conformance.harness import Conformance


async def acquire(store: Store, owner: str = "w1", name: str = "leader") -> Lease:
    lease = await store.leases.acquire(name, owner=owner, ttl=30)
    assert lease is not None, f"{name} should be free"
    return lease


class LeasesConformance(Conformance):
    async def test_a_free_lease_is_taken(self, store: Store) -> None:
        assert await store.leases.get("leader") is None
        lease = await acquire(store)
        assert (lease.name, lease.owner, lease.until) == ("leader", "w1", await store.now() + 30)
        assert await store.leases.get("leader") == lease

    async def test_another_owner_waits_until_the_lease_has_ended(self, store: Store) -> None:
        first = await acquire(store)
        second = await self.second(store)
        await self.advance(store, 29)
        assert await second.leases.acquire("leader", owner="w2", ttl=30) is None
        await self.advance(store, 1)
        taken = await acquire(second, "w2")
        assert taken.token > first.token
        assert await store.leases.get("leader") == taken

    async def test_leases_of_other_names_are_free(self, store: Store) -> None:
        await acquire(store)
        await acquire(store, "w2", "other")

    async def test_the_same_owner_gets_a_new_token_and_its_old_one_is_void(self, store: Store) -> None:
        first = await acquire(store)
        again = await acquire(store)
        assert again.token > first.token
        assert await store.leases.renew(first, ttl=30) is None
        assert not await store.leases.release(first)
        assert await store.leases.get("leader") == again

    async def test_renew_holds_on(self, store: Store) -> None:
        lease = await acquire(store)
        await self.advance(store, 20)
        renewed = await store.leases.renew(lease, ttl=30)
        assert renewed is not None
        assert (renewed.token, renewed.owner, renewed.until) == (lease.token, "w1", await store.now() + 30)
        await self.advance(store, 29)
        assert await store.leases.acquire("leader", owner="w2", ttl=30) is None

    async def test_a_lease_that_has_ended_cannot_be_renewed(self, store: Store) -> None:
        lease = await acquire(store)
        await self.advance(store, 30)
        assert await store.leases.renew(lease, ttl=30) is None
        assert await store.leases.get("leader") is None

    async def test_a_lost_lease_can_be_neither_renewed_nor_released(self, store: Store) -> None:
        lost = await acquire(store)
        await self.advance(store, 30)
        holder = await acquire(store, "w2")
        assert await store.leases.renew(lost, ttl=30) is None
        assert not await store.leases.release(lost)
        assert await store.leases.get("leader") == holder

    async def test_a_released_lease_is_free_and_tokens_still_grow(self, store: Store) -> None:
        lease = await acquire(store)
        assert await store.leases.release(lease)
        assert not await store.leases.release(lease)
        assert await store.leases.get("leader") is None
        assert (await acquire(store, "w2")).token > lease.token

    async def test_tokens_of_leases_grow_across_a_raised_epoch(self, store: Store) -> None:
        lease = await acquire(store)
        epoch = await store.raise_epoch()
        assert lease.token < epoch * 2**40 <= (await acquire(store, "w1", "other")).token

    async def test_steal_ends_a_lease_and_leaves_an_audit_row(self, store: Store) -> None:
        lost = await acquire(store)
        assert await store.leases.steal("leader", actor="ada", reason="it hangs")
        assert await store.leases.get("leader") is None
        assert await store.leases.renew(lost, ttl=30) is None
        assert not await store.leases.release(lost)
        assert (await acquire(store, "w2")).token > lost.token
        (row,) = await store.audit.find(subject="lease:leader")
        assert (row.actor, row.action) == ("ada", "lease.stolen")
        assert "it hangs" in f"{row.before} {row.after}"
        assert "w1" in f"{row.before} {row.after}"

    async def test_a_lease_is_stolen_for_any_reason(self, store: Store) -> None:
        await acquire(store)
        assert await store.leases.steal("leader", actor="ada", reason="bytes \0 and half \ud83e a fox")
        assert len(await store.audit.find(subject="lease:leader")) == 1

    async def test_stealing_what_nobody_holds_is_false_and_leaves_no_row(self, store: Store) -> None:
        assert not await store.leases.steal("leader", actor="ada", reason="why not")
        await acquire(store)
        await self.advance(store, 30)
        assert not await store.leases.steal("leader", actor="ada", reason="too late")
        assert await store.audit.find() == []

    async def test_prune_forgets_what_has_ended(self, store: Store) -> None:
        for name in ("one", "two", "three"):
            await acquire(store, name=name)
        await self.advance(store, 30)
        held = await acquire(store, name="three")
        assert await store.leases.prune(limit=1) == 1
        assert await store.leases.prune() == 1
        assert await store.leases.prune() == 0
        assert await store.leases.get("three") == held

    async def test_find_gives_those_that_are_held_now_by_name(self, store: Store) -> None:
        assert await store.leases.find() == []
        await acquire(store, name="gone")
        await self.advance(store, 30)
        held = [await acquire(store, owner, name) for owner, name in (("w2", "b"), ("w1", "ä"), ("w1", "B"))]
        await store.leases.release(await acquire(store, name="released"))
        assert await store.leases.find() == [held[2], held[0], held[1]]
        assert await store.leases.find(limit=2) == [held[2], held[0]]

    async def test_a_lease_of_any_name_is_stolen(self, store: Store) -> None:
        name = "n" * 500
        await acquire(store, name=name)
        assert await store.leases.steal(name, actor="ada", reason="why")
        assert [row.subject for row in await store.audit.find()] == [f"lease:{name}"]
