"""Optimistic versions: who has not seen the newest version changes nothing, and who reads passes over what is stale."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.kernel.errors import UsageError, VersionConflict


@pytest.fixture
async def shop(hf):
    hf.event("order.changed", unheard=True)
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS orders (state TEXT)")
        await tx.execute("DELETE FROM orders")
    return hf


async def orders(hf):
    async with hf.transaction() as tx:
        return [state for (state,) in await tx.fetch("SELECT state FROM orders")]


async def test_an_event_is_emitted_by_who_has_seen_the_newest_version(shop):
    assert (await shop.emit("order.changed", key="order:1", expect=0)).version == 1
    assert (await shop.emit("order.changed", key="order:1", expect=1)).version == 2
    for stale in (0, 1, 3):
        with pytest.raises(VersionConflict, match=f"has version 2, and {stale} was expected") as conflict:
            await shop.emit("order.changed", key="order:1", expect=stale)
        assert (conflict.value.key, conflict.value.expected, conflict.value.found) == ("order:1", stale, 2)
    assert await shop.versions.current("order:1") == 2
    assert len(await shop.store.outbox.find(key="order:1")) == 2


async def test_a_conflict_that_is_handled_has_stored_nothing(shop):
    await shop.emit("order.changed", key="order:1")
    async with shop.transaction() as tx:
        with pytest.raises(VersionConflict):
            await shop.emit("order.changed", key="order:1", expect=0, tx=tx)
        await tx.execute("INSERT INTO orders (state) VALUES ('kept')")
    assert await orders(shop) == ["kept"]
    assert await shop.versions.current("order:1") == 1


async def test_rows_change_with_the_version_that_was_seen(shop):
    """A compare and swap over any rows: whoever comes second has to look again."""
    seen = await shop.versions.current("order:1")

    async def change(state):
        async with shop.transaction() as tx:
            await shop.versions.expect("order:1", seen, tx=tx)
            await tx.execute("INSERT INTO orders (state) VALUES ($1)", state)
            await shop.emit("order.changed", {"state": state}, key="order:1", tx=tx)

    ends = await asyncio.gather(*(change(f"s{number}") for number in range(5)), return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["NoneType"] + ["VersionConflict"] * 4
    assert len(await orders(shop)) == 1
    assert await shop.versions.current("order:1") == 1


async def test_from_sync_code(shop):
    def sync():
        first = shop.emit_sync("order.changed", key="order:1", expect=0)
        with pytest.raises(VersionConflict):
            shop.emit_sync("order.changed", key="order:1", expect=0)
        with shop.blocking.transaction() as tx:
            return first, shop.emit_sync("order.changed", key="order:1", expect=1, tx=tx)

    first, second = await asyncio.to_thread(sync)
    assert (first.version, second.version) == (1, 2)


async def test_versions_are_compared_from_sync_code(shop):
    await shop.emit("order.changed", key="order:1")

    def sync():
        seen = shop.versions.current_sync("order:1")
        with shop.blocking.transaction() as tx:
            shop.versions.expect_sync("order:1", seen, tx=tx)
            shop.emit_sync("order.changed", key="order:1", tx=tx)
            with pytest.raises(VersionConflict):
                shop.versions.expect_sync("order:1", seen, tx=tx)
            return [shop.versions.advance_sync("search", "order:1", number, tx=tx) for number in (2, 1, 3)]

    assert await asyncio.to_thread(sync) == [True, False, True]
    assert await shop.versions.current("order:1") == 2
    assert not await shop.versions.advance("search", "order:1", 3)


async def test_versions_are_those_of_a_key(shop):
    with pytest.raises(UsageError, match="give the event one"):
        await shop.emit("order.changed", expect=0)
    with pytest.raises(UsageError, match="expect must be from 0"):
        await shop.emit("order.changed", key="order:1", expect=-1)
    with pytest.raises(UsageError, match="until a transaction ends"):
        await shop.versions.expect("order:1", 0, tx=None)
    assert await shop.store.outbox.find() == []


async def test_a_reader_passes_over_what_is_stale(shop):
    """Brokers give messages twice and out of order: what counts is the newest version that was written down."""
    written = []
    for version in (1, 3, 2, 3, 4, 1):
        async with shop.transaction() as tx:
            if await shop.versions.advance("search", "order:1", version, tx=tx):
                written.append(version)
    assert written == [1, 3, 4]
