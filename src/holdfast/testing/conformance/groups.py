"""Groups: who runs for them and what that hears, and how many of their jobs wait."""

from __future__ import annotations

from holdfast.kernel.ids import new_id
from holdfast.store.event_records import BEHIND, GroupLag
from holdfast.store.ports import Store
from holdfast.store.records import NewJob
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.outbox import event, publish


class GroupsConformance(Conformance):
    async def test_what_members_say_is_known_to_all_of_their_group(self, store: Store) -> None:
        await store.groups.announce("billing", "one", '["a"]', ttl=60)
        await store.groups.announce("billing", "two", '["b"]', ttl=60)
        await store.groups.announce("billing", "three", '["a"]', ttl=60)
        await store.groups.announce("mail", "one", '["c"]', ttl=60)
        assert await store.groups.announced("billing") == ['["a"]', '["b"]']
        assert await store.groups.announced("nobody") == []

    async def test_the_newest_word_of_a_member_counts(self, store: Store) -> None:
        await store.groups.announce("billing", "one", '["a"]', ttl=60)
        await store.groups.announce("billing", "one", '["b"]', ttl=60)
        assert await store.groups.announced("billing") == ['["b"]']

    async def test_who_leaves_or_is_silent_for_too_long_is_not_counted(self, store: Store) -> None:
        await store.groups.announce("billing", "leaves", '["a"]', ttl=60)
        await store.groups.announce("billing", "dies", '["b"]', ttl=60)
        await store.groups.announce("billing", "leaves", None, ttl=60)
        assert await store.groups.announced("billing") == ['["b"]']
        await self.advance(store, 61)
        assert await store.groups.announced("billing") == []
        await store.groups.announce("billing", "next", '["c"]', ttl=60)
        await store.groups.announce("billing", "dies", '["b"]', ttl=60)  # it was only slow
        assert await store.groups.announced("billing") == ['["b"]', '["c"]']

    async def test_what_waits_is_counted_up_to_a_limit(self, store: Store) -> None:
        assert await store.groups.waiting(["a", "b"], limit=5) == 0
        for task, ordered in (("a", None), ("a", None), ("b", None), ("other", None), ("a", "k")):
            job = NewJob(id=new_id(), task=task, ordered=ordered, queue="q", max_waiting=1_000)
            await store.jobs.enqueue([job])
        assert await store.groups.waiting(["a", "b"], limit=10) == 4
        assert await store.groups.waiting(["a", "b"], limit=2) == 2
        assert await store.groups.waiting([], limit=2) == 0
        await store.claims.claim({"q": 10}, lease=30, worker="w")
        assert await store.groups.waiting(["a", "b"], limit=10) == 1  # the one that promote has not looked at

    async def test_what_waits_behind_another_of_its_key_takes_little_room(self, store: Store) -> None:
        jobs = [
            NewJob(id=new_id(), task="a", ordered="k", queue="q", max_waiting=10_000)
            for _ in range(BEHIND + 1)
        ]
        await store.jobs.enqueue(jobs)
        assert await store.groups.waiting(["a"], limit=20) == 20  # nobody has looked at them yet
        while await store.holds.promote():
            pass
        assert await store.groups.waiting(["a"], limit=20) == 2

    async def test_what_is_before_a_group_is_counted_by_type(self, store: Store) -> None:
        assert await store.groups.lag("billing", ["a"], limit=5) == GroupLag({}, None, 0)
        await publish(store, "k")
        await store.inbox.subscribe("billing")
        assert await store.groups.lag("billing", ["a"], limit=5) == GroupLag({}, {}, 0)
        await publish(store, "k", None, "k")
        await store.outbox.emit([event("k"), event(None, type="order.paid"), event("l")])
        jobs = [NewJob(id=new_id(), task=task, queue="q", max_waiting=1_000) for task in ("a", "a", "b", "c")]
        await store.jobs.enqueue(jobs)
        found = await store.groups.lag("billing", ["a", "b", "a"], limit=10)
        assert found == GroupLag({"order.placed": 2, "order.paid": 1}, {"order.placed": 3}, 3)
        found = await store.groups.lag("billing", ["a", "b"], limit=2)
        assert found == GroupLag({"order.placed": 1, "order.paid": 1}, {"order.placed": 2}, 2)
        assert (await store.groups.lag("billing", [], limit=2)).queued == 0
