"""Rows of blobs: one for each name, states that change only as asked, and moves that a late one cannot undo."""

from __future__ import annotations

import hashlib

from holdfast.store.blob_records import BlobRow, BlobState, NewBlob, Usage
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback

HASH = hashlib.sha256(b"x").hexdigest()
KEPT, DELETED, QUARANTINED = BlobState.KEPT, BlobState.DELETED, BlobState.QUARANTINED


def blob(name: str, place: str | None = None, size: int = 1) -> NewBlob:
    return NewBlob(
        name=name, object=place or f"staging/{name}", size=size, sha256=HASH, content_type="text/plain; charset=utf-8"
    )  # fmt: skip


async def added(store: Store, name: str, place: str | None = None) -> BlobRow:
    row = await store.blobs.add(blob(name, place))
    assert row is not None, f"{name} should be free"
    return row


class BlobRowsConformance(Conformance):
    async def test_a_blob_is_added_once(self, store: Store) -> None:
        row = await added(store, "acme/a")
        assert (row.state, row.settled, row.size, row.sha256) == (KEPT, False, 1, HASH)
        assert row.content_type == "text/plain; charset=utf-8"
        assert row.created_at == row.changed_at == await store.now()
        assert await store.blobs.get("acme/a") == row
        assert await store.blobs.add(blob("acme/a", "staging/other")) is None
        assert await store.blobs.add(blob("acme/b", "staging/acme/a")) is None, "an object has one row"
        assert await store.blobs.get("acme/b") is None

    async def test_a_blob_is_added_with_the_transaction(self, store: Store) -> None:
        try:
            async with store.transaction() as tx:
                assert await store.blobs.add(blob("acme/a"), tx=tx) is not None
                raise Rollback  # noqa: TRY301
        except Rollback:
            pass
        assert await store.blobs.get("acme/a") is None
        async with store.transaction() as tx:
            await store.blobs.add(blob("acme/a"), tx=tx)
            changed = await store.blobs.change("acme/a", DELETED, of=[KEPT], tx=tx)
            assert changed is not None
        assert await store.blobs.get("acme/a") == changed

    async def test_blobs_are_found_by_their_beginnings_in_pages(self, store: Store) -> None:
        made = ["acme/A", "acme/a", "acme/a-b", "acme/a.b", "acme/a/b", "acme/b", "acmeb/x", "zeta/a"]
        for name in reversed(made):
            await added(store, name)
        assert [row.name for row in await store.blobs.find()] == made
        assert [row.name for row in await store.blobs.find(prefix="acme/")] == made[:6]
        assert [row.name for row in await store.blobs.find(prefix="acme/a", limit=2)] == [
            "acme/a",
            "acme/a-b",
        ]
        assert [row.name for row in await store.blobs.find(prefix="acme/", after="acme/a.b")] == [
            "acme/a/b",
            "acme/b",
        ]
        await store.blobs.change("acme/b", QUARANTINED, of=[KEPT])
        assert [row.name for row in await store.blobs.find(state=QUARANTINED)] == ["acme/b"]
        assert [row.name for row in await store.blobs.find(prefix="acmeb/", state=QUARANTINED)] == []

    async def test_usage_counts_what_is_not_deleted(self, store: Store) -> None:
        for name, size in (("acme/a", 5), ("acme/b", 2**40), ("other/a", 9)):
            await store.blobs.add(blob(name, size=size))
        assert await store.blobs.usage(prefix="acme/") == Usage(2, 2**40 + 5)
        await store.blobs.change("acme/b", DELETED, of=[KEPT])
        assert await store.blobs.usage(prefix="acme/") == Usage(1, 5)
        assert await store.blobs.usage(prefix="nobody/") == Usage(0, 0)

    async def test_usage_within_a_transaction_counts_its_own(self, store: Store) -> None:
        await added(store, "acme/a")
        async with store.transaction() as tx:
            await store.blobs.add(blob("acme/b"), tx=tx)
            assert await store.blobs.usage(prefix="acme/", tx=tx) == Usage(2, 2)
        assert await store.blobs.usage(prefix="acme/") == Usage(2, 2)

    async def test_a_state_changes_only_from_those_that_are_named(self, store: Store) -> None:
        await added(store, "acme/a")
        await self.advance(store, 10)
        assert await store.blobs.change("acme/a", KEPT, of=[DELETED, QUARANTINED]) is None
        row = await store.blobs.change("acme/a", QUARANTINED, of=[KEPT, DELETED], reason="a virus")
        assert row is not None
        assert (row.state, row.reason, row.settled) == (QUARANTINED, "a virus", False)
        assert row.changed_at == row.created_at + 10
        assert await store.blobs.change("acme/nobody", KEPT, of=list(BlobState)) is None

    async def test_a_late_mover_changes_nothing(self, store: Store) -> None:
        await added(store, "acme/a", "staging/1.0")
        second = await self.second(store)
        assert await second.blobs.move("acme/a", source="staging/1.0", target="kept/1.1")
        assert not await store.blobs.move("acme/a", source="staging/1.0", target="kept/1.1")
        row = await store.blobs.get("acme/a")
        assert row is not None
        assert row.object == "kept/1.1"

    async def test_settled_is_only_what_nobody_has_changed_meanwhile(self, store: Store) -> None:
        first = await added(store, "acme/a")
        await store.blobs.move("acme/a", source=first.object, target="kept/1")
        assert not await store.blobs.settle(first)
        row = await store.blobs.get("acme/a")
        assert row is not None
        await store.blobs.change("acme/a", QUARANTINED, of=[KEPT])
        assert not await store.blobs.settle(row)
        again = await store.blobs.get("acme/a")
        assert again is not None
        assert await store.blobs.settle(again)
        assert await store.blobs.unsettled(older=0) == []

    async def test_what_is_not_settled_is_found_when_it_waits_too_long(self, store: Store) -> None:
        await added(store, "acme/a")
        await self.advance(store, 100)
        await added(store, "acme/b")
        assert [row.name for row in await store.blobs.unsettled(older=100)] == ["acme/a"]
        assert [row.name for row in await store.blobs.unsettled(older=0)] == ["acme/a", "acme/b"]
        assert len(await store.blobs.unsettled(older=0, limit=1)) == 1

    async def test_objects_that_belong_to_a_row_are_known(self, store: Store) -> None:
        await added(store, "acme/a", "kept/1")
        await added(store, "acme/b", "kept/2")
        await store.blobs.change("acme/b", DELETED, of=[KEPT])
        assert await store.blobs.known(["kept/1", "kept/2", "kept/3"]) == {"kept/1", "kept/2"}
        assert await store.blobs.known([]) == set()

    async def test_a_deleted_one_is_purged_unless_it_was_restored(self, store: Store) -> None:
        await added(store, "acme/a")
        await store.blobs.change("acme/a", DELETED, of=[KEPT])
        await self.advance(store, 99)
        assert await store.blobs.purge(keep=100) == []
        assert await store.blobs.change("acme/a", KEPT, of=[DELETED]) is not None
        await self.advance(store, 1)
        assert await store.blobs.purge(keep=100) == []
        row = await store.blobs.change("acme/a", DELETED, of=[KEPT])
        assert row is not None
        assert not await store.blobs.forget(row), "its object is still there"
        await self.advance(store, 100)
        (purged,) = await store.blobs.purge(keep=100)
        assert (purged.name, purged.state) == ("acme/a", BlobState.PURGING)
        assert await store.blobs.change("acme/a", KEPT, of=[DELETED]) is None
        assert await store.blobs.purge(keep=100) == [purged], "until its row is gone"
        assert await store.blobs.forget(purged)
        assert await store.blobs.get("acme/a") is None
        assert not await store.blobs.forget(purged)
        await added(store, "acme/a", "staging/again")
