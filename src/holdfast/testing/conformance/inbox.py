"""The inbox: each group gets each event once, as a job, and its place in the log only goes on."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.kernel.ids import new_id, new_ids
from holdfast.kernel.outcomes import Dead, Done
from holdfast.store.event_records import Cursor, Delivery
from holdfast.store.ports import Store
from holdfast.store.records import Finish
from holdfast.store.states import Held, State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    READY,
    Rollback,
    end,
    held,
    ids,
    job,
    put_many,
    raises,
    state_of,
    take,
    take_one,
    total,
)
from holdfast.testing.conformance.outbox import publish


def delivery(event_id: str | None = None, **options: Any) -> Delivery:
    return Delivery(event_id or new_id(), job(**options))


async def deliver_one(store: Store, group: str = "billing", **options: Any) -> Delivery:
    made = delivery(**options)
    assert await store.inbox.deliver(group, [made]) == [True]
    return made


class InboxConformance(Conformance):
    async def test_a_reader_is_told_events_and_members_at_once(self, store: Store) -> None:
        assert await store.inbox.read("billing", after=0, limit=10) == ([], [])
        await store.groups.announce("billing", "one", '["b"]', ttl=60)
        await store.groups.announce("billing", "two", '["a"]', ttl=60)
        await store.groups.announce("mail", "one", '["c"]', ttl=60)
        made = await publish(store, "k", None, "k")
        events, members = await store.inbox.read("billing", after=0, limit=10)
        assert events == await store.outbox.log()
        assert [each.id for each in events] == made
        assert members == ['["a"]', '["b"]']
        rest, members = await store.inbox.read("billing", after=events[0].position or 0, limit=1)
        assert [each.id for each in rest] == made[1:2]
        assert members == ['["a"]', '["b"]']
        assert await store.inbox.read("nobody", after=0, limit=1) == (events[:1], [])
        assert (await store.inbox.read("billing", after=events[-1].position or 0, limit=5))[0] == []

    async def test_a_lone_delivery_has_its_turn_at_once(self, store: Store) -> None:
        made = [delivery(ordered=key) for key in ("o", "p", "o")]
        await store.inbox.deliver("billing", made)
        first, other, behind = (each.job.id for each in made)
        assert [await state_of(store, each) for each in (first, other, behind)] == [
            READY,
            READY,
            held(Held.ORDERING),
        ]
        later = await deliver_one(store, ordered="o")
        assert await state_of(store, later.job.id) == held(Held.ARRIVED), "who is before it must be looked at"
        assert await store.holds.promote() == 1
        for expected in (first, behind, later.job.id):
            [claim] = [each for each in await take(store, 10) if each.ordered == "o"]
            assert claim.job_id == expected
            await end(store, claim)

    async def test_a_delivery_overtakes_nobody_who_has_just_arrived(self, store: Store) -> None:
        [early] = await put_many(store, 1, ordered="o")
        late = await deliver_one(store, ordered="o")
        assert await state_of(store, late.job.id) == held(Held.ARRIVED)
        await store.holds.promote()
        assert ids(await take(store, 10)) == [early]

    async def test_a_delivery_that_needs_more_than_its_turn_is_looked_at(self, store: Store) -> None:
        needs: list[dict[str, Any]] = [
            {"tenant": "t"},
            {"delay": 5.0},
            {"concurrency": "c", "concurrency_limit": 1},
        ]
        made = [delivery(ordered=f"o{place}", **each) for place, each in enumerate(needs)]
        behind = delivery(ordered="o0")
        await store.inbox.deliver("billing", [*made, behind])
        for each in (*made, behind):
            assert await state_of(store, each.job.id) == held(Held.ARRIVED)

    async def test_many_deliveries_at_once_keep_their_order(self, store: Store) -> None:
        made = [delivery(ordered=f"o{number % 150}") for number in range(450)]
        await store.inbox.deliver("billing", made)
        await store.holds.promote()
        assert set(ids(await take(store, 500))) == {each.job.id for each in made[:150]}

    async def test_a_group_hears_from_now_on_or_from_the_start(self, store: Store) -> None:
        await publish(store, "a", "b")
        now, last = await store.now(), (await store.outbox.lag()).position
        assert await store.inbox.subscribe("new") == Cursor("new", last, now)
        assert await store.inbox.subscribe("all", from_start=True) == Cursor("all", 0, now)
        await publish(store, "a")
        await self.advance(store, 5)
        assert await store.inbox.subscribe("new", from_start=True) == Cursor("new", last, now + 5), (
            "it is known"
        )
        assert await store.inbox.cursors() == [Cursor("all", 0, now), Cursor("new", last, now + 5)]

    async def test_a_group_may_be_forgotten(self, store: Store) -> None:
        await store.inbox.subscribe("old")
        assert await store.inbox.unsubscribe("old", actor="ada")
        assert not await store.inbox.unsubscribe("old", actor="ada")
        assert await store.inbox.cursors() == []
        [entry] = await store.audit.find(subject="group:old")
        assert (entry.actor, entry.action) == ("ada", "group.unsubscribe")

    async def test_a_delivery_is_a_job(self, store: Store) -> None:
        one, two = delivery(), delivery(delay=60)
        assert await store.inbox.deliver("billing", [one, two]) == [True, True]
        assert await state_of(store, one.job.id) == READY
        assert await state_of(store, two.job.id) == held(Held.TIME)

    async def test_a_group_has_each_event_once(self, store: Store) -> None:
        first = await deliver_one(store)
        twin = delivery(first.event_id)
        new = delivery()
        other = await self.second(store)
        assert await other.inbox.deliver("billing", [twin, new, delivery(new.event_id)]) == [
            False,
            True,
            False,
        ]
        assert await total(store) == 2
        assert await store.jobs.get(twin.job.id) is None
        assert await store.inbox.deliver("mail", [delivery(first.event_id)]) == [True]
        assert await total(store) == 3

    async def test_a_call_that_is_made_again_is_told_what_the_first_was(self, store: Store) -> None:
        deliveries = [delivery(), delivery()]
        assert await store.inbox.deliver("billing", deliveries, upto=7) == [True, True]
        assert await store.inbox.deliver("billing", deliveries, upto=7) == [True, True]
        assert await total(store) == 2

    async def test_an_event_id_may_be_any_name(self, store: Store) -> None:
        made = Delivery("Zoë/42", job())
        assert await store.inbox.deliver("billing", [made]) == [True]
        assert await store.inbox.handled("billing", "Zoë/42")

    async def test_a_delivery_is_found_by_its_event(self, store: Store) -> None:
        assert await store.inbox.job_of("/shop 7") is None
        made = [Delivery("/shop 7", job()), Delivery("/shop 8", job())]
        for group, each in zip(("billing", "mail"), made, strict=True):
            await store.inbox.deliver(group, [each])
            await store.inbox.handled("audit", each.event_id)  # without a job
        assert [await store.inbox.job_of(each.event_id) for each in made] == [each.job.id for each in made]
        assert await store.inbox.job_of("/shop 9") is None

    async def test_deliveries_of_one_key_are_handled_in_order(self, store: Store) -> None:
        made = [delivery(ordered="billing:a") for _ in range(3)]
        await store.inbox.deliver("billing", made)
        for each in made:
            await store.holds.promote()
            claim = await take_one(store)
            assert claim.job_id == each.job.id
            assert await take(store) == []
            assert await end(store, claim)

    async def test_a_cursor_goes_on_and_never_back(self, store: Store) -> None:
        await store.inbox.subscribe("billing", from_start=True)
        for upto, expected in ((5, 5), (3, 5), (None, 5), (8, 8)):
            await self.advance(store, 1)
            assert await store.inbox.deliver("billing", [], upto=upto) == []
            [cursor] = await store.inbox.cursors()
            assert cursor.position == expected
        assert cursor.seen_at == await store.now()

    async def test_a_cursor_does_not_pass_over_what_was_not_read(self, store: Store) -> None:
        """Where the log has other events than the reader saw there, a crash has given their positions away."""
        first, second = await publish(store, "a", "b")
        await store.inbox.subscribe("billing", from_start=True)
        made = delivery(second)
        wrong = [(1, [second]), (2, [first]), (3, [second]), (2, ["no id of ours"]), (2, [second, first])]
        for upto, seen in [*wrong, (2, [new_id(), second]), (2, [new_id(), first, second])]:
            assert await store.inbox.deliver("billing", [made], upto=upto, seen=seen) is None
        assert (await total(store), (await store.inbox.cursors())[0].position) == (0, 0)
        for _ in range(2):
            assert await store.inbox.deliver("billing", [made], upto=2, seen=[first, second]) == [True]
        assert (await total(store), (await store.inbox.cursors())[0].position) == (1, 2)

    async def test_a_lost_lease_stores_nothing(self, store: Store) -> None:
        await store.inbox.subscribe("billing", from_start=True)
        lost = await store.leases.acquire("group:billing", owner="c1", ttl=30)
        assert lost is not None
        assert await store.inbox.deliver("billing", [delivery()], upto=1, lease=lost) == [True]
        await self.advance(store, 30)
        assert await store.inbox.deliver("billing", [delivery()], upto=2, lease=lost) is None
        lease = await store.leases.acquire("group:billing", owner="c2", ttl=30)
        assert await store.inbox.deliver("billing", [delivery()], upto=2, lease=lost) is None
        assert (await total(store), (await store.inbox.cursors())[0].position) == (1, 1)
        assert await store.inbox.deliver("billing", [delivery()], upto=2, lease=lease) == [True]

    async def test_an_event_is_handled_once(self, store: Store) -> None:
        made = await deliver_one(store)
        async with store.transaction() as tx:
            assert await store.inbox.handled("billing", made.event_id, tx=tx)
            assert not await store.inbox.handled("billing", made.event_id, tx=tx)
        async with store.transaction() as tx:
            assert not await store.inbox.handled("billing", made.event_id, tx=tx)
            assert await store.inbox.handled("mail", made.event_id, tx=tx), "another group"

    async def test_an_event_is_handled_with_its_transaction_or_not_at_all(self, store: Store) -> None:
        made = await deliver_one(store)
        claim = await take_one(store)
        with raises(Rollback):
            async with store.transaction() as tx:
                assert await store.inbox.handled("billing", made.event_id, tx=tx)
                raise Rollback
        async with store.transaction() as tx:
            assert await store.inbox.handled("billing", made.event_id, tx=tx)
            assert await store.claims.finish([Finish(claim, Done())], tx=tx) == [True]

    async def test_what_was_forgotten_is_handled_all_the_same(self, store: Store) -> None:
        event_id = new_id()
        async with store.transaction() as tx:
            assert await store.inbox.handled("billing", event_id, tx=tx)
        assert not await store.inbox.handled("billing", event_id)
        assert await store.inbox.deliver("billing", [delivery(event_id)]) == [False]

    async def test_a_dead_delivery_that_is_replayed_is_the_same(self, store: Store) -> None:
        made = await deliver_one(store, ordered="billing:a")
        await store.holds.promote()
        await end(store, await take_one(store), Dead("broken"))
        await self.advance(store, 1000)
        assert await store.inbox.prune(keep=1) == 0, "a person may want it again"
        assert await store.inbox.deliver("billing", [delivery(made.event_id)]) == [False]
        [replayed] = await store.dead.replay([made.job.id], actor="ada")
        assert replayed.outcome == "queued"
        await store.holds.promote()
        assert ids(await take(store)) == [made.job.id]
        async with store.transaction() as tx:
            assert await store.inbox.handled("billing", made.event_id, tx=tx)

    async def test_prune_forgets_what_is_handled_or_has_no_job(self, store: Store) -> None:
        done, open_, gone = [await deliver_one(store) for _ in range(3)]
        for _ in range(3):
            claim = await take_one(store)
            if claim.job_id == gone.job.id:
                await end(store, claim)
        await store.inbox.handled("billing", done.event_id)
        await self.advance(store, 100)
        young = await deliver_one(store)
        await store.inbox.handled("billing", young.event_id)
        assert await store.inbox.prune(keep=101) == 0
        assert await store.inbox.prune(keep=100) == 1, "of the job that is over there is a record"
        await store.history.prune(keep=0)
        assert await store.inbox.prune(keep=100) == 1
        again = [delivery(each.event_id) for each in (done, open_, gone, young)]
        assert await store.inbox.deliver("billing", again) == [True, False, True, False]

    async def test_prune_forgets_the_oldest_first_and_not_too_many(self, store: Store) -> None:
        made = [delivery() for _ in range(5)]
        for each in made:
            await store.inbox.deliver("billing", [each])
            await store.inbox.handled("billing", each.event_id)
            await self.advance(store, 1)
        assert await store.inbox.prune(keep=0, limit=3) == 3
        assert await store.inbox.deliver("billing", made[3:]) == [True, True], "it is as before: ours"
        assert await total(store) == 5

    async def test_many_who_deliver_at_once_store_each_event_once(self, store: Store) -> None:
        clients = [store, await self.second(store), await self.second(store)]
        event_ids = [new_id() for _ in range(20)]
        answers = await asyncio.gather(
            *(
                clients[n % 3].inbox.deliver("billing", [delivery(each) for each in event_ids])
                for n in range(9)
            )
        )
        assert [sum(bool(answer and answer[place]) for answer in answers) for place in range(20)] == [1] * 20
        assert await total(store) == 20

    async def test_jobs_of_one_story_are_found_also_when_they_are_over(self, store: Store) -> None:
        made = [delivery(id=each, correlation_id="c1", queue=f"q{n}") for n, each in enumerate(new_ids(3))]
        await store.inbox.deliver("billing", [*made, delivery(correlation_id="c2"), delivery()])
        await end(store, await take_one(store, "q0"))
        await store.jobs.cancel(made[1].job.id, "no")
        found = await store.jobs.find(correlation_id="c1")
        assert [record.id for record in found] == [each.job.id for each in reversed(made)]
        assert {record.state for record in found} == {State.SUCCEEDED, State.CANCELLED, State.QUEUED}
        [one] = await store.jobs.find(correlation_id="c1", queue="q2", limit=1)
        assert one.id == made[2].job.id
        assert await store.jobs.find(correlation_id="c1", before=found[1].id, limit=9) == found[-1:]
        assert await store.jobs.find(correlation_id="c9") == []
