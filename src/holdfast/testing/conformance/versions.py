"""Versions that are compared: what a writer expects is held until its end, and what a reader has seen only grows."""

from __future__ import annotations

import asyncio

from holdfast.kernel.ids import new_id
from holdfast.store.event_records import NewEvent
from holdfast.store.ports import Store
from holdfast.store.view_records import DAY
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, raises


def changed(key: str = "order:1") -> NewEvent:
    return NewEvent(id=new_id(), type="order.changed", key=key)


class VersionsConformance(Conformance):
    async def test_a_version_that_is_held_is_the_newest(self, store: Store) -> None:
        async with store.transaction() as tx:
            assert await store.versions.hold("order:1", tx=tx) == 0
        await store.outbox.emit([changed(), changed()])
        async with store.transaction() as tx:
            assert await store.versions.hold("order:1", tx=tx) == 2
            await store.outbox.emit([changed()], tx=tx)
            assert await store.versions.hold("order:1", tx=tx) == 3
            assert await store.versions.hold("order:2", tx=tx) == 0
        assert await store.outbox.version("order:1") == 3
        assert await store.outbox.version("order:2") == 0

    async def test_of_many_who_expect_a_version_one_is_right(self, store: Store) -> None:
        clients = [store, await self.second(store)]

        async def change(client: Store, expected: int) -> bool:
            async with client.transaction() as tx:
                if await client.versions.hold("order:1", tx=tx) != expected:
                    return False
                await client.outbox.emit([changed()], tx=tx)
            return True

        for expected in (0, 1):
            changes = await asyncio.gather(*(change(client, expected) for client in clients * 2))
            assert sorted(changes) == [False, False, False, True]
        assert await store.outbox.version("order:1") == 2

    async def test_what_a_reader_has_seen_only_grows(self, store: Store) -> None:
        assert await store.versions.seen("search", "order:1") == 0
        for version, is_new in ((2, True), (2, False), (1, False), (5, True), (4, False)):
            assert await store.versions.advance("search", "order:1", version) is is_new
        assert await store.versions.seen("search", "order:1") == 5
        assert await store.versions.advance("mail", "order:1", 1)
        assert await store.versions.advance("search", "order:2", 1)

    async def test_what_a_reader_has_seen_goes_with_its_transaction(self, store: Store) -> None:
        with raises(Rollback):
            async with store.transaction() as tx:
                assert await store.versions.advance("search", "order:1", 2, tx=tx)
                assert await store.versions.seen("search", "order:1", tx=tx) == 2
                raise Rollback
        assert await store.versions.seen("search", "order:1") == 0

    async def test_prune_forgets_what_was_seen_long_ago(self, store: Store) -> None:
        for key in ("a", "b", "c"):
            await store.versions.advance("search", key, 1)
        await self.advance(store, 11 * DAY)
        await store.versions.advance("search", "c", 2)
        assert await store.versions.prune(keep=12 * DAY) == 0
        assert await store.versions.prune(keep=9 * DAY, limit=1) == 1
        assert await store.versions.prune(keep=9 * DAY) == 1
        assert [await store.versions.seen("search", key) for key in ("a", "b", "c")] == [0, 0, 2]
