"""Versions in the caller's own transaction, with every driver: held until it ends, and seen if and only if it committed."""

from __future__ import annotations

import pytest

from holdfast.testing.conformance.outbox import event

pytestmark = pytest.mark.usefixtures("orders")


async def test_a_version_is_held_and_raised_in_the_callers_transaction(caller, store):
    assert await store.versions.hold("order:Zoë", tx=caller.tx) == 0
    await store.outbox.emit([event("order:Zoë")], tx=caller.tx)
    assert await store.versions.hold("order:Zoë", tx=caller.tx) == 1
    await caller.commit()
    await caller.begin()
    assert await store.outbox.version("order:Zoë") == 1


async def test_what_a_reader_has_seen_commits_with_the_callers_rows(caller, store):
    for end, seen in ((caller.rollback, 0), (caller.commit, 3)):
        assert await store.versions.advance("search", "order:Zoë", 3, tx=caller.tx)
        assert not await store.versions.advance("search", "order:Zoë", 3, tx=caller.tx)
        assert await store.versions.seen("search", "order:Zoë", tx=caller.tx) == 3
        await end()
        await caller.begin()
        assert await store.versions.seen("search", "order:Zoë") == seen
