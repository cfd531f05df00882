"""Many events in one call: all or none, in one statement, each as `emit` would store it."""

from __future__ import annotations

import pytest

from holdfast import Event, Holdfast, Tx, within
from holdfast.errors import NeverAwaited, PayloadError, UsageError
from holdfast.testing import inline


async def test_many_have_versions_by_key_in_the_order_of_the_list(hf):
    placed = hf.event("order.placed", int, unheard=True)
    given = [(placed, 1, "b"), ("order.placed", 2, "a"), (placed, 3), [placed, 4, "b"], (placed, 5, None)]
    async with hf.transaction() as tx:
        emitted = await hf.emit_many(given, tx=tx)
    assert [each.version for each in emitted] == [1, 1, None, 2, None]
    events = [await hf.outbox.get(each.id) for each in emitted]
    assert [(each.data, each.key) for each in events] == [
        ("1", "b"), ("2", "a"), ("3", None), ("4", "b"), ("5", None),
    ]  # fmt: skip
    assert len({each.correlation_id for each in events}) == 1
    assert await hf.emit_many([]) == []


async def test_all_are_stored_or_none(hf):
    placed = hf.event("order.placed", int, unheard=True)
    with pytest.raises(PayloadError):
        await hf.emit_many([(placed, 1), (placed, "two")])
    with pytest.raises(RuntimeError):
        async with hf.transaction() as tx:
            await hf.emit_many([(placed, 1), (placed, 2)], tx=tx)
            raise RuntimeError
    with pytest.raises(NeverAwaited, match="emit_many"):
        async with hf.transaction() as tx:
            hf.emit_many([(placed, 1)], tx=tx)
    for wrong in (placed, (placed,), (placed, 1, "k", 2), "ab"):
        with pytest.raises(UsageError, match=r"\(type, data, key\)"):
            await hf.emit_many([wrong])
    assert await hf.outbox.find() == []


async def test_they_belong_to_the_story_around(hf):
    placed = hf.event("order.placed", int, unheard=True)
    with within(correlation_id="request-1"):
        emitted = await hf.emit_many([(placed, 1), (placed, 2)])
    alone = await hf.emit_many([(placed, 3), (placed, 4)])
    stories = [(await hf.outbox.get(each.id)).correlation_id for each in (*emitted, *alone)]
    assert stories == ["request-1", "request-1", alone[0].id, alone[0].id]


def test_from_sync_code(url):
    hf = Holdfast(url)
    hf.blocking.migrate()
    placed = hf.event("order.placed", int, unheard=True)
    with hf.blocking.transaction() as tx:
        tx.execute("CREATE TABLE seen (id INTEGER)")
        tx.execute_many("INSERT INTO seen VALUES ($1)", [(1,), (2,)])
        hf.blocking.emit_many([(placed, 1, "k")], tx=tx)
    assert [each.version for each in hf.emit_many_sync([(placed, 2, "k"), (placed, 3, "k")])] == [2, 3]
    with hf.blocking.transaction() as tx:
        assert tx.fetch("SELECT id FROM seen WHERE id = ANY($1) ORDER BY id", [1, 2, 3]) == [(1,), (2,)]


async def test_inline_runs_the_handlers_of_each(hf):
    seen = []

    @hf.on("order.placed", group="g")
    async def hear(event: Event, tx: Tx) -> None:
        await tx.execute_many("INSERT INTO seen VALUES ($1)", [(event.data,), (event.data + 10,)])
        seen.append(event.data)

    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE seen (id INTEGER)")
    with inline(hf, raise_dead=True):
        await hf.emit_many([("order.placed", 1, "k"), ("order.placed", 2, "k")])
        assert seen == [1, 2]
    async with hf.transaction() as tx:
        assert await tx.fetch("SELECT id FROM seen ORDER BY id") == [(1,), (2,), (11,), (12,)]
