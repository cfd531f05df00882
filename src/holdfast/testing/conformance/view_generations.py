"""Generations of a view: built anew beside the one that serves, and what is kept and forgotten for them."""

from __future__ import annotations

from holdfast.store.event_records import READER_KEPT
from holdfast.store.ports import Store
from holdfast.store.view_records import BURIED
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.outbox import publish
from holdfast.testing.conformance.view_kit import (
    VIEW,
    aside,
    batch,
    begin,
    begun,
    got,
    keys,
    lead,
    row,
    serving,
)


class ViewGenerationsConformance(Conformance):
    async def test_the_old_generation_serves_until_the_switch(self, store: Store) -> None:
        lease = await begun(store)
        assert await store.views.apply(lease, batch(row("a", 1, '"old"'), row("gone", 2)))
        building = await store.views.begin_rebuild(VIEW, start=0, actor="ada")
        assert building is not None
        assert (building.generation, building.state, building.position) == (2, "building", 0)
        assert await store.views.apply(lease, batch(row("a", 1, '"new"'), generation=2, upto=2))
        assert (await got(store, "a")).data == '"old"'
        assert await store.views.switch(lease, VIEW, 2)
        assert (await got(store, "a")).data == '"new"'
        assert await keys(store) == ["a"]
        assert (await serving(store)).generation == 2
        assert not await store.views.apply(lease, batch(after=2, upto=3)), "the first generation is over"
        (entry,) = await store.audit.find(subject=f"view:{VIEW}")
        assert (entry.actor, entry.action) == ("ada", "view.rebuild")

    async def test_a_generation_that_has_not_read_as_far_does_not_serve(self, store: Store) -> None:
        lease = await begun(store)
        assert await store.views.apply(lease, batch(upto=2))
        await store.views.begin_rebuild(VIEW, start=0, actor="ada")
        assert await store.views.apply(lease, batch(generation=2, upto=1))
        assert not await store.views.switch(lease, VIEW, 2)
        assert await store.views.apply(lease, batch(generation=2, after=1, upto=2))
        assert not await store.views.switch(lease, VIEW, 1)
        assert not await store.views.switch(lease, VIEW, 3)
        assert await store.views.switch(lease, VIEW, 2)
        assert not await store.views.switch(lease, VIEW, 2), "it serves already"

    async def test_a_generation_in_which_a_row_would_go_back_does_not_serve(self, store: Store) -> None:
        lease = await begun(store)
        assert await store.views.apply(lease, batch(row("a", 1), upto=2, aside=(aside(2, "b"),)))
        await store.views.begin_rebuild(VIEW, start=0, actor="ada")
        waits = (aside(1), aside(2, "b"))
        assert await store.views.apply(lease, batch(generation=2, upto=3, aside=(*waits, aside(3, "c"))))
        assert not await store.views.switch(lease, VIEW, 2), "the old one has taken the first"
        assert await store.views.apply(lease, batch(row("a", 1), generation=2, after=3, settled=(1,), upto=3))
        assert await store.views.switch(lease, VIEW, 2), "of the others it knows no more"
        assert [each.position for each in await store.views.aside(VIEW)] == [2, 3]

    async def test_a_lost_lease_switches_nothing(self, store: Store) -> None:
        zombie = await begun(store)
        await store.views.begin_rebuild(VIEW, start=0, actor="ada")
        await self.advance(store, 30)
        assert not await store.views.switch(zombie, VIEW, 2)
        holder = await lead(store, "w2")
        assert not await store.views.switch(zombie, VIEW, 2)
        assert await store.views.switch(holder, VIEW, 2)

    async def test_another_rebuild_gives_up_the_one_before(self, store: Store) -> None:
        lease = await begun(store)
        await store.views.begin_rebuild(VIEW, start=0, actor="ada")
        assert await store.views.apply(lease, batch(row("a", 1), generation=2))
        third = await store.views.begin_rebuild(VIEW, start=0, actor="ada")
        assert third is not None
        assert third.generation == 3
        assert not await store.views.apply(lease, batch(after=1, upto=2, generation=2))
        assert [each.generation for each in await store.views.checkpoints()] == [1, 3]
        assert await store.views.begin_rebuild("other", start=0, actor="ada") is None

    async def test_prune_forgets_generations_that_are_over(self, store: Store) -> None:
        lease = await begun(store)
        old = [row(f"k{number}", 1) for number in range(5)]
        assert await store.views.apply(lease, batch(*old, upto=2, aside=(aside(2),)))
        await store.views.begin_rebuild(VIEW, start=0, actor="ada")
        assert await store.views.apply(lease, batch(row("a", 1), generation=2, upto=2))
        assert await store.views.prune() == 0
        assert await store.views.switch(lease, VIEW, 2)
        assert await store.views.prune(limit=4) == 4
        assert await store.views.prune(limit=4) == 2
        assert await store.views.prune(limit=4) == 0
        assert await store.views.load(VIEW, 1, ["k4"]) == await store.views.load(VIEW, 9, ["k4"])
        assert await keys(store) == ["a"]

    async def test_prune_forgets_rows_that_were_deleted_long_ago(self, store: Store) -> None:
        lease = await begun(store)
        assert await store.views.apply(lease, batch(row("a", 1, None), row("b", 1)))
        await self.advance(store, BURIED - 1)
        assert await store.views.prune() == 0
        await self.advance(store, 61)
        assert await store.views.prune() == 1
        assert await store.views.get(VIEW, "a") is None
        assert await keys(store) == ["b"]

    async def test_a_deleted_row_that_comes_back_is_not_forgotten(self, store: Store) -> None:
        lease = await begun(store)
        assert await store.views.apply(lease, batch(row("a", 1, None)))
        assert await store.views.apply(lease, batch(row("a", 2), after=1))
        await self.advance(store, BURIED + 61)
        assert await store.views.prune() == 0
        assert await keys(store) == ["a"]

    async def test_a_view_that_is_forgotten_begins_anew(self, store: Store) -> None:
        lease = await begun(store)
        assert await store.views.apply(lease, batch(row("a", 1)))
        assert await store.views.forget(VIEW, actor="ada")
        assert not await store.views.forget(VIEW, actor="ada")
        assert await store.views.checkpoints() == []
        assert await keys(store) == []
        assert not await store.views.apply(lease, batch(after=1, upto=2))
        again = await begin(store, 3)
        assert (again.generation, again.position) == (2, 3)
        assert await store.views.prune() == 1
        assert [each.action for each in await store.audit.find(subject=f"view:{VIEW}")] == ["view.forget"]

    # --- what is kept for views ---

    async def test_events_are_kept_until_every_view_has_read_them(self, store: Store) -> None:
        lease = await begun(store)
        await publish(store, "a", "b", "c")
        await self.advance(store, 1)
        assert await store.outbox.prune(keep=0) == 0
        assert await store.views.apply(lease, batch(upto=2))
        assert await store.outbox.prune(keep=0) == 2
        await store.views.begin_rebuild(VIEW, start=2, actor="ada")
        assert await store.views.apply(lease, batch(after=2, upto=3))
        assert await store.outbox.prune(keep=0) == 0, "the one that is built has not read it"
        assert await store.views.apply(lease, batch(after=2, upto=3, generation=2))
        assert await store.outbox.prune(keep=0) == 1

    async def test_nobody_begins_where_events_are_gone(self, store: Store) -> None:
        """They were pruned after somebody had looked where the log begins: a gap that nobody could fill."""
        await publish(store, "a", "b", "c")
        await self.advance(store, 1)
        assert await store.outbox.prune(keep=0, limit=2) == 2
        assert await store.views.begin(VIEW, start=1) is None
        assert await store.views.checkpoints() == []
        assert (await begin(store, 2)).start == 2
        assert await store.views.begin_rebuild(VIEW, start=0, actor="ada") is None
        assert len(await store.views.checkpoints()) == 1
        lease = await lead(store)
        assert await store.views.apply(lease, batch(after=2, upto=3))
        assert await store.outbox.prune(keep=0) == 1
        assert await store.views.begin_rebuild(VIEW, start=2, actor="ada") is None
        built = await store.views.begin_rebuild(VIEW, start=3, actor="ada")
        assert built is not None, "nothing is left, and nothing is missing"

    async def test_events_are_kept_for_a_view_with_history(self, store: Store) -> None:
        await publish(store, "a", "b", "c")
        await self.advance(store, 1)
        await store.views.begin(VIEW, start=1, history=True)
        lease = await lead(store)
        assert await store.views.apply(lease, batch(after=1, upto=3))
        assert await store.outbox.prune(keep=0) == 1, "what is before its start"
        assert await store.outbox.prune(keep=0) == 0
        await store.views.begin(VIEW, start=1, history=False)
        assert await store.outbox.prune(keep=0) == 2

    async def test_a_view_that_nobody_runs_keeps_nothing(self, store: Store) -> None:
        await store.views.begin(VIEW, start=0, history=True)
        await store.views.begin("forgotten", start=0)
        await publish(store, "a")
        await self.advance(store, READER_KEPT - 1)
        assert await store.outbox.prune(keep=0) == 0
        assert await store.views.forget("forgotten", actor="ada")
        assert await store.outbox.prune(keep=0) == 0
        await self.advance(store, 1)
        assert await store.outbox.prune(keep=0) == 1
