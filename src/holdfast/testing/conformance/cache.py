"""Values of cached functions: one loader at a time, nothing too old, and nothing from before an invalidation."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.errors import CommitUnknown
from holdfast.store.cache_records import VALUE_LIMIT, Entry, Load, Why
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance, KeepsValues
from holdfast.testing.conformance.kit import Rollback, raises
from holdfast.testing.conformance.lost_answers import lost, once

LEASE = 10.0


async def begin(store: KeepsValues, key: str = "k", **options: Any) -> Load:
    """The right to load it; it must be granted."""
    load = await store.cache.begin(key, **{"tags": (), "lease": LEASE, **options})
    assert isinstance(load, Load), f"nobody should be in the way of loading {key!r}: {load}"
    return load


async def refused(store: KeepsValues, key: str = "k", **options: Any) -> Entry:
    """What is there instead of the right to load it."""
    entry = await store.cache.begin(key, **{"tags": (), "lease": LEASE, **options})
    assert isinstance(entry, Entry), f"the right to load {key!r} should be refused"
    return entry


async def put(
    store: KeepsValues, load: Load, value: str = "1", *, fresh: float = 60.0, stale: float = 600.0
) -> bool:
    return await store.cache.put(load, value, fresh=fresh, stale=stale)


async def keep(store: KeepsValues, value: str = "1", key: str = "k", **options: Any) -> None:
    assert await put(store, await begin(store, key, **options), value)


async def look(store: KeepsValues, key: str = "k") -> Entry:
    [entry] = await store.cache.get([key])
    return entry


async def value(store: KeepsValues, key: str = "k") -> str | None:
    return (await look(store, key)).value


class SharedCacheConformance(Conformance):
    # --- values and their age ---

    async def test_what_was_put_is_there_for_everyone(self, store: KeepsValues) -> None:
        assert await look(store) == Entry()
        await keep(store, '{"a":[1,null,"ä\U0001f98a"]}')
        second = await self.second(store)
        assert await look(second) == Entry('{"a":[1,null,"ä\U0001f98a"]}', 0.0, 60.0, 600.0)

    async def test_null_is_a_value(self, store: KeepsValues) -> None:
        await keep(store, "null")
        assert await value(store) == "null"

    async def test_a_value_ages_from_fresh_to_stale_to_nothing(self, store: KeepsValues) -> None:
        await keep(store)
        await self.advance(store, 59)
        assert await look(store) == Entry("1", 59.0, 1.0, 541.0)
        assert (await look(store)).is_fresh
        await self.advance(store, 1)
        assert await look(store) == Entry("1", 60.0, 0.0, 540.0)
        assert not (await look(store)).is_fresh
        await self.advance(store, 539)
        assert await look(store) == Entry("1", 599.0, 0.0, 1.0)
        await self.advance(store, 1)
        assert await look(store) == Entry()

    async def test_nothing_is_fresh_for_longer_than_it_is_served(self, store: KeepsValues) -> None:
        assert await put(store, await begin(store), fresh=60, stale=10)
        assert await look(store) == Entry("1", 0.0, 10.0, 10.0)

    async def test_a_value_from_the_future_is_not_served(self, store: KeepsValues) -> None:
        """The clock was set back: nobody can tell how old it is."""
        await keep(store)
        await self.advance(store, -5)
        assert await look(store) == Entry()
        await keep(store, "2")
        assert await value(store) == "2"

    async def test_a_right_to_load_from_the_future_is_over(self, store: KeepsValues) -> None:
        """The clock was set back, and who has the right may be dead: nobody waits for it until the clock is there again."""
        late = await begin(store)
        await self.advance(store, -3600)
        await keep(store, "2")
        assert not await put(store, late, "1")
        assert await value(store) == "2"

    async def test_a_process_with_a_wrong_clock_sees_the_same_age(self, store: KeepsValues) -> None:
        skew = getattr(self.bench.world, "skew", None)
        if skew is None:
            return
        await keep(store)
        for wrong in (-86_400.0, 86_400.0 * 2):
            skew(wrong)
            assert await look(store) == Entry("1", 0.0, 60.0, 600.0)
        await keep(store, "2", "b")
        assert await look(store, "b") == Entry("2", 0.0, 60.0, 600.0)

    async def test_many_keys_are_answered_in_their_order(self, store: KeepsValues) -> None:
        await keep(store, "1", "a")
        await keep(store, "2", "b")
        found = await store.cache.get(["b", "none", "a", "b"])
        assert [entry.value for entry in found] == ["2", None, "1", "2"]
        assert await store.cache.get([]) == []

    async def test_a_large_value_is_kept_as_it_is(self, store: KeepsValues) -> None:
        text = f'"{"x" * (VALUE_LIMIT - 2)}"'
        await keep(store, text)
        assert await value(store) == text

    # --- who loads ---

    async def test_one_loads_and_the_others_are_told(self, store: KeepsValues) -> None:
        load = await begin(store)
        assert (load.key, load.until) == ("k", await store.now() + LEASE)
        second = await self.second(store)
        for why in (Why.MISSING, Why.STALE):
            assert await refused(second, why=why) == Entry(is_loading=True)
        assert (await look(second)).is_loading
        await begin(second, "other")
        assert await put(store, load)
        assert not (await look(second)).is_loading

    async def test_nobody_loads_what_is_fresh(self, store: KeepsValues) -> None:
        await keep(store)
        for why in (Why.MISSING, Why.STALE):
            assert await refused(store, why=why) == Entry("1", 0.0, 60.0, 600.0)
        await self.advance(store, 60)
        await begin(store, why=Why.STALE)
        assert await look(store) == Entry("1", 60.0, 0.0, 540.0, is_loading=True)

    async def test_after_the_lease_another_loads_and_the_first_is_refused(self, store: KeepsValues) -> None:
        dead = await begin(store)
        await self.advance(store, LEASE - 1)
        await refused(store)
        await self.advance(store, 1)
        assert not (await look(store)).is_loading
        second = await self.second(store)
        load = await begin(second)
        assert load.token != dead.token
        assert not await put(store, dead, "old")
        assert not await store.cache.renew(dead, lease=LEASE)
        assert not await store.cache.abandon(dead)
        assert await put(second, load, "new")
        assert not await put(store, dead, "old")
        assert await value(store) == "new"

    async def test_a_value_that_comes_after_the_lease_is_refused(self, store: KeepsValues) -> None:
        """It may be of any age: whoever has it was away."""
        load = await begin(store)
        await self.advance(store, LEASE)
        assert not await put(store, load)
        assert await value(store) is None

    async def test_a_load_is_put_once(self, store: KeepsValues) -> None:
        load = await begin(store)
        assert await put(store, load)
        assert not await put(store, load, "2")
        assert await value(store) == "1"

    async def test_a_load_is_held_by_renewing_it(self, store: KeepsValues) -> None:
        load = await begin(store)
        await self.advance(store, LEASE - 1)
        assert await store.cache.renew(load, lease=LEASE)
        await self.advance(store, LEASE - 1)
        await refused(store)
        assert await put(store, load)
        assert not await store.cache.renew(load, lease=LEASE)

    async def test_a_load_that_has_ended_cannot_be_renewed(self, store: KeepsValues) -> None:
        load = await begin(store)
        await self.advance(store, LEASE)
        assert not await store.cache.renew(load, lease=LEASE)

    async def test_what_was_abandoned_is_loaded_by_another_at_once(self, store: KeepsValues) -> None:
        load = await begin(store)
        assert await store.cache.abandon(load)
        assert not await store.cache.abandon(load)
        assert not await put(store, load)
        await begin(store)

    async def test_after_a_failure_a_refresh_waits_and_who_needs_it_does_not(
        self, store: KeepsValues
    ) -> None:
        await keep(store)
        await self.advance(store, 60)
        assert await store.cache.abandon(await begin(store, why=Why.STALE), rest=5)
        assert await look(store) == Entry("1", 60.0, 0.0, 540.0, is_resting=True)
        assert (await refused(store, why=Why.STALE)).value == "1"
        assert await store.cache.abandon(await begin(store, why=Why.MISSING), rest=5)
        await self.advance(store, 5)
        assert not (await look(store)).is_resting
        assert await put(store, await begin(store, why=Why.STALE))
        assert not (await look(store)).is_resting

    async def test_a_value_survives_loads_that_fail(self, store: KeepsValues) -> None:
        await keep(store)
        await self.advance(store, 599)
        await begin(store)
        assert await look(store) == Entry("1", 599.0, 0.0, 1.0, is_loading=True)
        await self.advance(store, 1)
        assert await look(store) == Entry(is_loading=True)

    async def test_a_forced_load_takes_the_right_from_whoever_has_it(self, store: KeepsValues) -> None:
        await keep(store)
        first = await begin(store, why=Why.FORCED)
        second = await begin(store, why=Why.FORCED)
        assert not await put(store, first, "2")
        assert await value(store) == "1"
        assert await put(store, second, "3")
        assert await value(store) == "3"

    # --- invalidation ---

    async def test_what_is_invalidated_is_gone_and_loaded_anew(self, store: KeepsValues) -> None:
        await keep(store, "1", "a")
        await keep(store, "2", "b")
        second = await self.second(store)
        await second.cache.invalidate(["a", "never"])
        assert [entry.value for entry in await store.cache.get(["a", "b"])] == [None, "2"]
        await keep(store, "3", "a")
        assert await value(store, "a") == "3"
        await store.cache.invalidate([])

    async def test_a_load_does_not_overwrite_its_invalidation(self, store: KeepsValues) -> None:
        old = await begin(store)
        await store.cache.invalidate(["k"])
        assert not await put(store, old, "old")
        new = await begin(store)
        assert not await put(store, old, "old")
        assert await put(store, new, "new")
        assert await value(store) == "new"

    async def test_a_tag_invalidates_every_key_that_has_it(self, store: KeepsValues) -> None:
        await keep(store, "1", "a", tags=("user:7", "all"))
        await keep(store, "2", "b", tags=("user:8", "all"))
        await keep(store, "3", "c")
        second = await self.second(store)
        await second.cache.invalidate_tags(["user:7", "never"])
        assert [entry.value for entry in await store.cache.get(["a", "b", "c"])] == [None, "2", "3"]
        await keep(store, "4", "a", tags=("user:7", "all"))
        assert await value(store, "a") == "4"
        await store.cache.invalidate_tags(["all"])
        assert [entry.value for entry in await store.cache.get(["a", "b", "c"])] == [None, None, "3"]
        await store.cache.invalidate_tags([])

    async def test_a_load_does_not_overwrite_the_invalidation_of_its_tag(self, store: KeepsValues) -> None:
        old = await begin(store, tags=("t", "u"))
        await store.cache.invalidate_tags(["u"])
        assert not await put(store, old, "old")
        assert await value(store) is None
        await store.cache.abandon(old)  # it may have its right still, and nothing to keep
        new = await begin(store, tags=("t", "u"))
        assert not await put(store, old, "old")
        assert await put(store, new, "new")
        assert await value(store) == "new"

    async def test_a_tag_that_was_never_seen_is_invalidated_for_who_comes_then(
        self, store: KeepsValues
    ) -> None:
        await store.cache.invalidate_tags(["t"])
        await keep(store, tags=("t",))
        assert await value(store) == "1"
        await store.cache.invalidate_tags(["t"])
        await store.cache.invalidate_tags(["t"])
        assert await value(store) is None

    async def test_what_a_tag_invalidated_is_missing_and_not_stale(self, store: KeepsValues) -> None:
        await keep(store, tags=("t",))
        await store.cache.invalidate_tags(["t"])
        assert await refused_or_begun(store) == "begun"
        assert await look(store) == Entry(is_loading=True)

    async def test_the_newest_tags_of_a_key_count(self, store: KeepsValues) -> None:
        await keep(store, "1", tags=("old",))
        assert await put(store, await begin(store, tags=("new",), why=Why.FORCED), "2")
        await store.cache.invalidate_tags(["old"])
        assert await value(store) == "2"
        await store.cache.invalidate_tags(["new"])
        assert await value(store) is None

    async def test_tags_last_as_long_as_their_values(self, store: KeepsValues) -> None:
        year = 365 * 86_400.0
        assert await put(store, await begin(store, tags=("t",)), fresh=year, stale=year)
        await self.advance(store, 86_400 * 3)
        await self._prune_values(store)
        assert await value(store) == "1"
        await store.cache.invalidate_tags(["t"])
        assert await value(store) is None

    async def _prune_values(self, store: Any) -> None:
        """Where something must be told to forget."""
        if hasattr(store.cache, "prune"):
            await store.cache.prune()


async def refused_or_begun(store: KeepsValues) -> str:
    answer = await store.cache.begin("k", tags=("t",), lease=LEASE, why=Why.STALE)
    return "begun" if isinstance(answer, Load) else "refused"


class CacheConformance(SharedCacheConformance):
    """For a store: its transactions, and what it forgets."""

    async def test_an_invalidation_counts_when_its_transaction_commits(self, store: Store) -> None:
        await keep(store, tags=("t",))
        async with store.transaction() as tx:
            await store.cache.invalidate_tags(["t", "unseen"], tx=tx)
            assert await value(store) == "1"
        assert await value(store) is None
        await keep(store, tags=("t",))
        with raises(Rollback):
            async with store.transaction() as tx:
                await store.cache.invalidate_tags(["t"], tx=tx)
                raise Rollback
        assert await value(store) == "1"

    async def test_what_was_loaded_before_the_commit_does_not_count_after_it(self, store: Store) -> None:
        load = await begin(store, tags=("t",))
        async with store.transaction() as tx:
            await store.cache.invalidate_tags(["t"], tx=tx)
        assert not await put(store, load)
        assert await value(store) is None

    async def test_an_invalidation_whose_answer_was_lost_is_made(self, store: Store) -> None:
        for by_key in (True, False):
            await keep(store, tags=("t",))
            load = await begin(store, "loading", tags=("t",))
            with once("store.after_commit", lost()):
                assert await store.cache.renew(load, lease=LEASE)
            with once("store.after_commit", lost()):
                if by_key:
                    await store.cache.invalidate(["k", "loading"])
                else:
                    await store.cache.invalidate_tags(["t"])
            assert await value(store) is None
            assert not await put(store, load)
            await store.cache.abandon(load)

    async def test_a_value_whose_answer_was_lost_is_kept_or_not(self, store: Store) -> None:
        """Whoever loaded it goes on with it; nobody is told what is not true."""
        load = await begin(store)
        with once("store.after_commit", lost()), raises(CommitUnknown):
            await put(store, load)
        assert await value(store) == "1"
        assert not await put(store, load, "2")

    async def test_prune_forgets_values_that_may_not_be_served(self, store: Store) -> None:
        await keep(store, key="a")
        await keep(store, key="b")
        loading = await begin(store, "c")
        assert await store.cache.prune() == 0
        await self.advance(store, LEASE - 1)
        assert await store.cache.renew(loading, lease=1000)
        await self.advance(store, 600 - LEASE + 1)
        assert await store.cache.prune(limit=1) == 1
        assert await store.cache.prune() == 1
        assert await store.cache.prune() == 0
        assert await put(store, loading)

    async def test_prune_forgets_tags_that_nothing_has(self, store: Store) -> None:
        await keep(store, tags=("a", "b"))
        await self.advance(store, 86_400 * 2)
        assert await store.cache.prune() == 3
        assert await store.cache.prune() == 0

    async def test_what_has_failed_is_forgotten_too(self, store: Store) -> None:
        assert await store.cache.abandon(await begin(store), rest=5)
        assert await store.cache.prune() == 0
        await self.advance(store, 5)
        assert await store.cache.prune() == 1

    async def test_find_lists_what_may_be_served_or_is_loaded(self, store: Store) -> None:
        assert await store.cache.find() == []
        await keep(store, '"äö"', "b", tags=("t", "u"))
        await begin(store, "a")
        await keep(store, "1", "B")
        await self.advance(store, 1)
        assert await store.cache.abandon(await begin(store, "failed"))
        await keep(store, "1", "gone", tags=("gone",))
        await store.cache.invalidate_tags(["gone"])
        found = await store.cache.find()
        assert [(each.key, each.size, each.tags, each.is_loading) for each in found] == [
            ("B", 1, (), False),
            ("a", None, (), True),
            ("b", 4, ("t", "u"), False),
        ]
        assert (found[2].age, found[2].fresh_for, found[2].stale_for) == (1.0, 59.0, 599.0)
        assert await store.cache.find(limit=1) == found[:1]
        assert await store.cache.find(after="B", limit=1) == found[1:2]
