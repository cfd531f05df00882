"""Events, two at once: transactions are held open half-way, and the other one is seen to wait, or to pass."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from kit import blocked, job

from holdfast.store.event_records import Delivery, Emitted
from holdfast.store.postgres import relaying
from holdfast.testing.conformance.outbox import emit, event, relay, the_event


class Undo(Exception):
    """Raised in a block to roll its transaction back."""


def running(coroutine):
    return asyncio.get_running_loop().create_task(coroutine)


async def waiting(store, lease):
    return [each.id for each in await store.outbox.waiting(lease, limit=100)]


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("number", [1, 2])
async def test_the_second_emit_of_a_key_waits_for_the_first(store, other, commits, number):
    await emit(store, "a")
    mine, theirs = event("a"), [event("a") for _ in range(number)]
    second = None
    with contextlib.suppress(Undo):
        async with store.transaction() as tx:
            assert await store.outbox.emit([mine], tx=tx) == [Emitted(mine.id, 2)]
            second = running(other.outbox.emit(theirs))
            await blocked(store)
            if not commits:
                raise Undo
    first = 3 if commits else 2
    assert [answer.version for answer in await second] == [*range(first, first + number)]
    found = [await the_event(store, each.id) for each in ([mine, *theirs] if commits else theirs)]
    assert [each.seq for each in found] == sorted(each.seq for each in found)


async def test_the_first_two_emits_of_a_new_key_have_versions_in_the_order_of_their_commits(store, other):
    one, two = event("new"), event("new")

    async def emit_second():
        async with other.transaction() as tx:
            return await other.outbox.emit([two], tx=tx)

    async with store.transaction() as tx:
        await store.outbox.emit([one], tx=tx)
        second = running(emit_second())
        await blocked(store)
        assert await waiting(store, await relay(store)) == []
    assert await second == [Emitted(two.id, 2)]
    assert await waiting(store, await relay(store)) == [one.id, two.id]


async def test_emits_of_other_keys_do_not_wait(store, other):
    async with store.transaction() as tx:
        await store.outbox.emit([event("a"), event(None)], tx=tx)
        answers = await asyncio.gather(*(other.outbox.emit([event(key)]) for key in ("b", "c", None)))
        assert [answer[0].version for answer in answers] == [1, 1, None]


async def test_who_waits_for_a_key_holds_up_nobody_else(store, other):
    """One of those who emit at once meets a key that an open transaction has."""
    await emit(store, "a")
    async with store.transaction() as tx:
        await store.outbox.emit([event("a")], tx=tx)
        held_up = running(other.outbox.emit([event("a")]))
        await asyncio.gather(*(other.outbox.emit([event(f"k{n}")]) for n in range(50)))
        assert not held_up.done()
    assert [answer.version for answer in await held_up] == [3]


async def test_two_emits_of_several_keys_do_not_deadlock(store, other):
    keys = [f"k{n}" for n in range(20)]

    async def emit_all(client, ordered):
        for _ in range(20):
            async with client.transaction() as tx:
                await client.outbox.emit([event(key) for key in ordered], tx=tx)

    await asyncio.gather(emit_all(store, keys), emit_all(other, keys[::-1]))
    assert [await store.outbox.version(key) for key in keys] == [40] * 20


async def test_an_event_that_commits_late_is_not_missed(store, other):
    """Its number is smaller than those that were published meanwhile."""
    lease = await relay(other)
    late, late_too = event("a"), event(None)
    async with store.transaction() as tx:
        await store.outbox.emit([late, late_too], tx=tx)
        others = await emit(other, "b", "c", None)
        assert await waiting(other, lease) == others
        assert await other.outbox.stamp(lease, others) == [1, 2, 3]
        assert await waiting(other, lease) == []
    assert await waiting(other, lease) == [late.id, late_too.id]
    assert await other.outbox.stamp(lease, [late.id, late_too.id]) == [4, 5]
    assert (await the_event(store, late.id)).seq < (await the_event(store, others[0])).seq


async def test_positions_are_visible_in_their_order(store, other):
    """Whoever stamps second waits for the first, so nobody sees a position before a smaller one."""
    ids, lease = await emit(store, "a", "b", "c"), await relay(store)
    async with store.transaction() as tx:
        assert await tx.run(relaying.stamp(lease, ids[:1])) == [1]
        second = running(other.outbox.stamp(lease, ids[1:]))
        await blocked(store)
        assert await other.outbox.log() == []
    assert await second == [2, 3]
    assert [each.id for each in await store.outbox.log()] == ids


async def test_a_position_that_another_drew_meanwhile_is_kept(store, other):
    ids, lease = await emit(store, "a", "b"), await relay(store)
    async with store.transaction() as tx:
        assert await tx.run(relaying.stamp(lease, ids)) == [1, 2]
        second = running(other.outbox.stamp(lease, ids))
        await blocked(store)
    assert await second == [1, 2]
    assert [each.position for each in await store.outbox.log()] == [1, 2]


async def test_nobody_takes_the_lease_while_its_holder_stamps(store, other):
    ids, lease = await emit(store, "a", "b"), await relay(store, "r1")
    async with store.transaction() as tx:
        assert await tx.run(relaying.stamp(lease, ids[:1])) == [1]
        taking = running(other.leases.steal("holdfast:relay", actor="ada", reason="stuck"))
        await blocked(store)
    assert await taking
    newer = await relay(other, "r2")
    assert await store.outbox.stamp(lease, ids[1:]) is None
    assert await other.outbox.stamp(newer, ids[1:]) == [2]


async def test_a_stale_holder_that_waited_for_the_lease_stamps_nothing(store, other):
    ids, lease = await emit(store, "a"), await relay(store, "r1")
    async with other.transaction() as tx:
        await tx.execute("UPDATE holdfast.lease SET token = token + 1 WHERE name = 'holdfast:relay'")
        late = running(store.outbox.stamp(lease, ids))
        await blocked(other)
    assert await late is None
    assert (await the_event(store, ids[0])).state == "waiting"


async def test_what_arrives_behind_a_block_while_it_is_made_waits_too(store, other):
    """The emit began before the failure was written and commits after it."""
    [first] = await emit(store, "a")
    lease, behind = await relay(store), event("a")
    async with other.transaction() as tx:
        await other.outbox.emit([behind], tx=tx)
        assert await store.outbox.failed(lease, first, "poison", rest=None)
        assert await waiting(store, lease) == []
    assert await waiting(store, lease) == []
    assert await store.outbox.requeue([first], actor="ada") == [True]
    assert await waiting(store, lease) == [first, behind.id]


async def test_a_drop_and_a_look_at_the_same_time(store, other):
    first, second = await emit(store, "a", "a")
    lease = await relay(store)
    await store.outbox.failed(lease, first, "poison", rest=None)
    assert await waiting(store, lease) == []
    async with other.transaction() as tx:
        assert await tx.run(relaying.drop([first], actor="ada", reason="broken")) == [True]
        assert await waiting(store, lease) == []
    assert await waiting(store, lease) == [second]


@pytest.mark.parametrize("commits", [True, False])
async def test_the_second_delivery_of_an_event_waits_for_the_first(store, other, commits):
    mine, theirs = Delivery("e", job()), Delivery("e", job())
    second = None
    with contextlib.suppress(Undo):
        async with store.transaction() as tx:
            await tx.execute(
                "INSERT INTO holdfast.inbox (group_name, event_id, job_id, at) VALUES ('g', 'e', $1::uuid, holdfast.now())",
                mine.job.id,
            )
            second = running(other.inbox.deliver("g", [theirs]))
            await blocked(store)
            if not commits:
                raise Undo
    assert await second == [not commits]
    assert (await store.jobs.get(theirs.job.id) is None) is commits


@pytest.mark.parametrize("commits", [True, False])
async def test_of_two_who_handle_an_event_the_second_waits(store, other, commits):
    await store.inbox.deliver("g", [Delivery("e", job())])
    second = None
    with contextlib.suppress(Undo):
        async with store.transaction() as tx:
            assert await store.inbox.handled("g", "e", tx=tx)
            second = running(other.inbox.handled("g", "e"))
            await blocked(store)
            if not commits:
                raise Undo
    assert await second is not commits


async def test_a_repeated_emit_waits_for_its_first_try(store, other):
    """The connection of the first try was lost, but its commit is still on the way."""
    for key in ("a", None):
        new = event(key)
        async with store.transaction() as tx:
            [first] = await store.outbox.emit([new], tx=tx)
            again = running(other.outbox.emit([new], again=True))
            await blocked(store)
        assert await again == [first]
        assert len(await store.outbox.find(key=key, limit=10)) >= 1
    assert await store.outbox.version("a") == 1
    assert len(await store.outbox.find()) == 2


async def test_the_same_id_emitted_twice_at_once_is_stored_once(store, other):
    for key in ("a", None):
        new = event(key)
        answers = await asyncio.gather(*(client.outbox.emit([new]) for client in [store, other] * 5))
        assert all(answer == answers[0] for answer in answers)
    assert await store.outbox.version("a") == 1
    assert len(await store.outbox.find()) == 2
