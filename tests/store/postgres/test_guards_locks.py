"""Quota while someone else has a row: the clock is read after the wait, never before."""

from __future__ import annotations

import asyncio

from kit import blocked

from holdfast.store.quota import Want


def wants(*keys):
    return [Want("api", key, 1, 10, 100, 10) for key in keys]


async def test_a_bucket_does_not_drain_while_its_taker_waits_for_another(store, other):
    """Both kinds: one that is there, and one that is made by this call."""
    await store.guards.take(wants("a", "b"))
    async with other.transaction() as tx:
        await tx.execute("SELECT 1 FROM holdfast.bucket WHERE key = 'a' FOR UPDATE")
        waiting = asyncio.create_task(store.guards.take(wants("c", "b", "a")))
        await blocked(other)
        await asyncio.sleep(0.3)
        let_go = await other.now()
    grants = {grant.key: grant for grant in await waiting}
    assert all(grant.at >= let_go for grant in grants.values()), grants
    again = {grant.key: grant for grant in await store.guards.take(wants("c"))}
    allowed = 100 * (again["c"].at - grants["c"].at) + 10
    assert grants["c"].units + again["c"].units <= allowed + 1e-3


async def test_two_who_ask_for_the_same_keys_in_turn_do_not_wait_for_each_other(store, other):
    """A batch that is cut off between its rows by a third: the other batch waits behind the first, in one order."""
    await store.guards.take(wants("a", "b", "c"))
    async with other.transaction() as tx:
        await tx.execute("SELECT 1 FROM holdfast.bucket WHERE key = 'b' FOR UPDATE")
        one = asyncio.create_task(store.guards.take(wants("a", "b", "c")))
        two = asyncio.create_task(store.guards.take(wants("c", "b", "a")))
        await blocked(other, 2)
    assert len(await one) == len(await two) == 3
