"""Views: rows and checkpoint in one fenced commit, and what a projection could not take."""

from __future__ import annotations

import asyncio

from holdfast.kernel.errors import StoreUnavailable, UsageError
from holdfast.store.ports import Store
from holdfast.store.view_records import SetAside, ViewBatch, ViewRow, behind
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import raises
from holdfast.testing.conformance.lost_answers import lost, once
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


class ViewsConformance(Conformance):
    async def test_a_view_begins_once_where_it_is_told_to(self, store: Store) -> None:
        first = await begin(store, 7)
        assert (first.view, first.generation, first.state) == (VIEW, 1, "serving")
        assert (first.start, first.position, first.history) == (7, 7, False)
        await self.advance(store, 5)
        again = await begin(store, 99, history=True)
        assert (again.generation, again.start, again.position, again.history) == (1, 7, 7, True)
        assert (again.begun_at, again.seen_at) == (first.begun_at, first.seen_at + 5)
        assert await store.views.checkpoints() == [again]

    async def test_of_many_who_begin_a_view_at_once_one_makes_it(self, store: Store) -> None:
        other = await self.second(store)
        found = await asyncio.gather(*(begin(each, 0) for each in [store, other] * 5))
        assert {each.generation for each in found} == {1}

    async def test_checkpoints_are_by_view_and_generation(self, store: Store) -> None:
        for view in ("b", "ä", "B"):
            await store.views.begin(view, start=0)
        await store.views.begin_rebuild("b", start=0, actor="ada")
        found = [(each.view, each.generation) for each in await store.views.checkpoints()]
        assert found == [("B", 1), ("b", 1), ("b", 2), ("ä", 1)]
        assert [each.view for each in await store.views.checkpoints(view="b")] == ["b", "b"]
        assert len(await store.views.checkpoints(limit=2)) == 2

    async def test_rows_and_checkpoint_are_kept_together(self, store: Store) -> None:
        lease = await begun(store)
        new = row("a", 3, '{"n":1}', source="order:1", version=2)
        assert await store.views.apply(lease, batch(new, row("b", 2), upto=5))
        assert (await serving(store)).position == 5
        now = await store.now()
        assert await got(store, "a") == ViewRow(
            key="a", data='{"n":1}', source="order:1", version=2, position=3, updated_at=now
        )
        assert await store.views.get(VIEW, "c") is None
        assert await store.views.get("other", "a") is None

    async def test_a_batch_without_rows_moves_the_checkpoint(self, store: Store) -> None:
        lease = await begun(store)
        await self.advance(store, 5)
        assert await store.views.apply(lease, batch(upto=9))
        found = await serving(store)
        assert (found.position, found.seen_at) == (9, await store.now())

    async def test_a_batch_that_was_made_from_another_checkpoint_is_refused(self, store: Store) -> None:
        lease = await begun(store)
        assert await store.views.apply(lease, batch(row("a", 1), upto=2))
        for after in (0, 1, 3):
            assert not await store.views.apply(lease, batch(row("a", 7), after=after, upto=7))
        assert (await serving(store)).position == 2
        assert (await got(store, "a")).position == 1

    async def test_a_checkpoint_does_not_pass_over_what_was_not_read(self, store: Store) -> None:
        """Where the log has other events than the reader saw there, a crash has given their positions away."""
        lease, (first, second) = await begun(store), await publish(store, "a", "b")
        for upto, seen in (
            (1, (second,)),
            (2, (first,)),
            (3, (second,)),
            (2, ("no id of ours",)),
            (2, (second, first)),
        ):
            assert not await store.views.apply(lease, batch(row("a", 1), upto=upto, seen=seen))
        assert ((await serving(store)).position, await store.views.get(VIEW, "a")) == (0, None)
        for _ in range(2):
            assert await store.views.apply(lease, batch(row("a", 1), upto=2, seen=(first, second)))
        assert (await serving(store)).position == 2

    async def test_a_lost_lease_writes_nothing(self, store: Store) -> None:
        zombie = await begun(store)
        await self.advance(store, 30)
        assert not await store.views.apply(zombie, batch(row("a", 1))), "it has ended"
        other = await self.second(store)
        holder = await lead(other, "w2")
        assert not await store.views.apply(zombie, batch(row("a", 1))), "another holds it"
        assert await other.views.apply(holder, batch(row("b", 1)))
        assert await keys(store) == ["b"]

    async def test_of_two_who_apply_one_batch_one_does(self, store: Store) -> None:
        lease = await begun(store)
        other = await self.second(store)
        clients = [store, other] * 3
        batches = [batch(row(f"k{place}", 1), upto=1) for place in range(len(clients))]
        for place, client in enumerate(clients):  # each says that it comes from the beginning
            assert await client.views.apply(lease, batches[place]) is True
        assert await keys(store) == ["k0"], "the others were told that the same lease has done it"

    async def test_no_row_goes_back(self, store: Store) -> None:
        lease = await begun(store)
        assert await store.views.apply(lease, batch(row("a", 5, '"new"'), upto=5))
        late = batch(row("a", 4, '"old"'), row("b", 4), after=5)
        assert await store.views.apply(lease, late)
        assert [(await got(store, key)).position for key in ("a", "b")] == [5, 4]
        assert (await got(store, "a")).data == '"new"'

    async def test_a_deleted_row_is_remembered_and_not_found(self, store: Store) -> None:
        lease = await begun(store)
        assert await store.views.apply(lease, batch(row("a", 1), row("b", 2)))
        gone = row("a", 3, None, source="order:1", version=4)
        assert await store.views.apply(lease, batch(gone, after=2))
        found = await got(store, "a")
        assert (found.data, found.version, found.position) == (None, 4, 3)
        assert await keys(store) == ["b"]

    async def test_find_goes_by_key_and_page(self, store: Store) -> None:
        lease = await begun(store)
        names = ["B", "a", "a:1", "a:2", "aa", "b", "ä", "\U0001f98a"]
        assert await store.views.apply(lease, batch(*(row(key, 1) for key in names)))
        assert await keys(store) == names
        assert await keys(store, limit=3) == names[:3]
        assert await keys(store, after="a:1", limit=2) == ["a:2", "aa"]
        assert await keys(store, prefix="a") == ["a", "a:1", "a:2", "aa"]
        assert await keys(store, prefix="a:", after="a:1") == ["a:2"]
        assert await keys(store, prefix="a:", after="z") == []
        assert await keys(store, prefix="\U0001f98a") == ["\U0001f98a"]
        assert await store.views.find("other") == []

    async def test_load_gives_the_rows_of_one_generation(self, store: Store) -> None:
        lease = await begun(store)
        assert await store.views.apply(lease, batch(row("a", 1, '"one"'), row("b", 2, None)))
        await store.views.begin_rebuild(VIEW, start=0, actor="ada")
        assert await store.views.apply(lease, batch(row("a", 1, '"two"'), generation=2))
        first = await store.views.load(VIEW, 1, ["c", "b", "a"])
        assert [(each.key, each.data) for each in first.rows] == [("a", '"one"'), ("b", None)]
        second = await store.views.load(VIEW, 2, ["a", "b"])
        assert [(each.key, each.data) for each in second.rows] == [("a", '"two"')]
        assert await store.views.load(VIEW, 1, []) == await store.views.load(VIEW, 9, ["a"])

    # --- what a projection could not take ---

    async def test_what_is_set_aside_holds_its_key(self, store: Store) -> None:
        lease = await begun(store)
        events = (aside(1), aside(2, "b"), aside(4, None))
        assert await store.views.apply(lease, batch(upto=4, aside=events))
        found = await store.views.aside(VIEW)
        assert [(each.position, each.key, each.tries) for each in found] == [
            (1, "a", 1),
            (2, "b", 1),
            (4, None, 1),
        ]
        assert [each.event_id for each in found] == [each.event_id for each in events]
        assert (found[0].error, found[0].event, found[0].at) == (
            "ValueError: no",
            '{"id":1}',
            await store.now(),
        )
        assert (await store.views.load(VIEW, 1, ["a", "b", "c"])).held == {"a", "b"}
        assert [each.position for each in await store.views.aside(VIEW, after=1, limit=1)] == [2]
        assert [each.position for each in await store.views.aside(VIEW, key="b")] == [2]
        assert await store.views.aside(VIEW, generation=2) == []
        assert await store.views.count_aside(VIEW, limit=10) == 3
        assert await store.views.count_aside(VIEW, generation=1, limit=2) == 2
        assert await store.views.count_aside(VIEW, generation=2, limit=10) == 0
        assert await store.views.count_aside("nobody", limit=10) == 0

    async def test_another_try_is_counted_or_settles_it(self, store: Store) -> None:
        lease = await begun(store)
        first = aside(1)
        assert await store.views.apply(lease, batch(upto=3, aside=(first, aside(2, "b"))))
        await self.advance(store, 5)
        again = SetAside(position=1, event_id=first.event_id, event=first.event, error="again", key="a")
        assert await store.views.apply(
            lease, batch(row("b", 2), after=3, upto=3, aside=(again,), settled=(2,))
        )
        (found,) = await store.views.aside(VIEW)
        assert (found.position, found.error, found.tries) == (1, "again", 2)
        assert found.tried_at == found.at + 5
        assert await keys(store) == ["b"]

    async def test_any_error_can_be_told(self, store: Store) -> None:
        lease = await begun(store)
        assert await store.views.apply(lease, batch(upto=1, aside=(aside(1, error="half \ud83e \0" * 5000),)))
        (found,) = await store.views.aside(VIEW)
        assert 0 < len(found.error) <= 2000

    # --- lost answers ---

    async def test_a_batch_whose_answer_was_lost_was_applied_once(self, store: Store) -> None:
        lease = await begun(store)
        with once("store.after_commit", lost()):
            assert await store.views.apply(lease, batch(row("a", 1), upto=2))
        assert not await store.views.apply(lease, batch(row("a", 7), after=1, upto=7))
        with once("store.after_commit", lost()):
            assert await store.views.apply(lease, batch(after=2, upto=2, aside=(aside(1, "b"),)))
        assert len(await store.views.aside(VIEW)) == 1
        with once("store.after_commit", lost()):
            assert (await begin(store, 0)).position == 2

    async def test_a_batch_is_kept_whole_or_not_at_all(self, store: Store) -> None:
        lease = await begun(store)
        whole = batch(row("a", 1), upto=2, aside=(aside(2, "b"),))
        with once("store.before_commit", StoreUnavailable("the disk is gone")), raises(StoreUnavailable):
            await store.views.apply(lease, whole)
        assert (await serving(store)).position == 0
        assert await keys(store) == []
        assert await store.views.aside(VIEW) == []
        assert await store.views.apply(lease, whole)

    async def test_what_a_batch_cannot_be(self, store: Store) -> None:
        for wrong in (
            {"after": 3, "upto": 2},
            {"rows": (row("a", 1), row("a", 2))},
            {"aside": (aside(1), aside(1, "b"))},
            {"rows": ("a",)},
            {"settled": ("x",)},
            {"generation": 0},
            {"view": ""},
            {"upto": 2**63},
            {"seen": (7,)},
        ):
            with raises(UsageError):
                ViewBatch(**{"view": VIEW, "generation": 1, "after": 0, "upto": 5, **wrong})  # type: ignore[arg-type]
        for source, version in (("s", None), (None, 1), ("s", -1)):
            with raises(UsageError):
                row("a", 1, source=source, version=version)

    async def test_what_is_behind_a_prefix(self, store: Store) -> None:
        assert behind("") is None
        assert behind("a") == "b"
        assert behind("a\U0010ffff") == "b"
        assert behind("\U0010ffff") is None
        assert behind("a\ud7ff") == "a\ue000"
