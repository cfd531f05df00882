"""Quota of a fleet: in any time T no more than rate * T + burst, whoever asks and whatever the clock does."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.store.ports import Store
from holdfast.store.quota import FINEST, TERMS_KEPT, Grant, Return, Want
from holdfast.testing.conformance.harness import Conformance, SharesGuards
from holdfast.testing.conformance.kit import raises


def want(key: str = "k", **options: Any) -> Want:
    """Of a bucket of 8 units, 2 a second: as many as there are."""
    return Want(**{"name": "api", "key": key, "least": 1, "most": 8, "rate": 2, "burst": 8, **options})


async def ask(store: SharesGuards, key: str = "k", **options: Any) -> Grant:
    (grant,) = await store.guards.take([want(key, **options)])
    return grant


async def units(store: SharesGuards, key: str = "k", **options: Any) -> float:
    return (await ask(store, key, **options)).units


class SharedQuotaConformance(Conformance):
    async def test_a_new_bucket_is_full_and_fills_again_at_its_rate(self, store: SharesGuards) -> None:
        now = await store.now()
        grant = await ask(store)
        assert (grant.name, grant.key, grant.units, grant.rate, grant.paused) == ("api", "k", 8, 2, 0)
        assert grant.at == now
        assert await units(store) == 0
        await self.advance(store, 1.5)
        assert await units(store) == 3
        await self.advance(store, 3600)
        assert await units(store) == 8, "no more than it holds"

    async def test_between_least_and_most_are_granted_or_none(self, store: SharesGuards) -> None:
        assert await units(store, most=5) == 5
        assert await units(store, least=4) == 0, "3 are there"
        assert await units(store, least=2) == 3
        await self.advance(store, 0.25)
        assert await units(store) == 0
        assert await units(store, least=0.25, most=0.25) == 0.25, "a part of a unit is one too"

    async def test_wait_says_when_the_least_can_be_had(self, store: SharesGuards) -> None:
        await units(store)
        grant = await ask(store, least=3)
        assert grant.wait == 1.5 + FINEST
        await self.advance(store, 1.4)
        assert (await ask(store, least=3)).units == 0
        await self.advance(store, 0.1 + 2 * FINEST)
        assert (await ask(store, least=3)).units >= 3
        assert (await ask(store, "other", most=1)).wait == 0, "more can be had at once"

    async def test_what_is_ahead_is_told_and_not_taken(self, store: SharesGuards) -> None:
        """8 units, 2 a second: all of `k` are gone, half of `half`."""
        await store.guards.take([want(), want("half", most=4)])
        ahead = partial(store.guards.ahead, "api", ["k", "half", "nobody's"])
        assert await ahead(seconds=0) == [0, 4, inf]
        assert await ahead(seconds=1.5) == [3, 7, inf]
        assert await ahead(seconds=1.5) == [3, 7, inf], "nothing was taken"
        await self.advance(store, 1)
        assert await ahead(seconds=1.5) == [5, 8, inf], "no more than it holds"
        assert await units(store) == 2
        assert await store.guards.ahead("other", ["k"], seconds=0) == [inf]
        assert await store.guards.ahead("api", [], seconds=0) == []

    async def test_nothing_is_ahead_before_the_end_of_a_pause(self, store: SharesGuards) -> None:
        await units(store)
        for key in ("k", "never asked for"):
            await store.guards.slow("api", key, rate=None, pause=5)
            assert await store.guards.ahead("api", [key], seconds=4) == [0]
            assert (await store.guards.ahead("api", [key], seconds=6))[0] >= 8

    async def test_every_key_and_every_limiter_has_its_own_bucket(self, store: SharesGuards) -> None:
        wants = [want("b"), want("a"), want("a", name="other"), want("")]
        grants = await store.guards.take(wants)
        assert [(grant.name, grant.key, grant.units) for grant in grants] == [
            ("api", "b", 8),
            ("api", "a", 8),
            ("other", "a", 8),
            ("api", "", 8),
        ]
        assert [grant.units for grant in await store.guards.take(wants)] == [0] * 4

    async def test_all_clients_share_a_bucket(self, store: SharesGuards) -> None:
        other = await self.second(store)
        assert await units(store, most=5) == 5
        assert await units(other) == 3
        assert await units(store) == 0

    async def test_nothing_is_asked_for_and_nothing_is_answered(self, store: SharesGuards) -> None:
        assert await store.guards.take([]) == []
        await store.guards.give_back([])

    async def test_a_key_is_asked_for_once_in_a_call(self, store: SharesGuards) -> None:
        with raises(UsageError, "'api'", "twice"):
            await store.guards.take([want(), want()])
        assert await units(store) == 8

    async def test_what_was_spent_is_not_forgotten_when_the_rate_changes(self, store: SharesGuards) -> None:
        large: dict[str, Any] = {"most": 100, "burst": 100}
        await units(store, **large)
        await self.advance(store, TERMS_KEPT)
        assert await units(store, rate=0.5, least=50, **large) == 0, "a debt in units stays one"
        await self.advance(store, 2)
        assert await units(store, rate=100, **large) == 11, "the time before was at the rate of then"
        await self.advance(store, 0.03)
        assert abs(await units(store, rate=100, **large) - 3) < 0.01

    async def test_a_smaller_burst_waits_for_what_a_larger_one_took(self, store: SharesGuards) -> None:
        await units(store, most=100, burst=100)
        await self.advance(store, TERMS_KEPT)
        assert await units(store) == 0
        await self.advance(store, 41.5)
        assert await units(store) == 1

    async def test_of_two_who_ask_with_less_and_with_more_both_get_something(
        self, store: SharesGuards
    ) -> None:
        """Two versions of a program: the larger rate and burst count for all while anybody asks with them."""
        await units(store, rate=10, most=100, burst=100)
        got = dict.fromkeys((8, 100), 0.0)
        for turn in range(40):
            await self.advance(store, 0.25)
            for burst in (8, 100) if turn % 2 else (100, 8):
                got[burst] += await units(store, rate=10 if burst == 100 else 2, most=2, burst=burst)
        assert got[8] > 20, "not only when the other has left it something"
        assert got[8] + got[100] <= 10 * 10
        assert (await ask(store, rate=10, burst=100)).rate == (await ask(store)).rate == 10
        await self.advance(store, TERMS_KEPT)
        assert (await ask(store)).rate == 2, "nobody asks with more any longer"

    async def test_who_asks_with_less_gets_no_more_at_once_than_he_may(self, store: SharesGuards) -> None:
        await units(store, most=1, rate=10, burst=100)
        assert await units(store, most=50) == 8

    async def test_a_clock_that_is_set_back_neither_grants_more_nor_waits_for_itself(
        self, store: SharesGuards
    ) -> None:
        await units(store, most=7)
        await self.advance(store, -3600)
        grant = await ask(store)
        assert grant.units == 1
        assert await ask(store) == await ask(store)
        assert (await ask(store)).wait < 1
        await self.advance(store, 1)
        assert await units(store) == 2

    async def test_a_clock_that_jumps_ahead_gives_one_burst_at_most(self, store: SharesGuards) -> None:
        await units(store)
        await self.advance(store, 3600)
        assert await units(store) == 8
        await self.advance(store, -3600)
        assert await units(store) == 0

    async def test_what_is_given_back_can_be_had_again(self, store: SharesGuards) -> None:
        grant = await ask(store)
        await store.guards.give_back([Return(grant, 3)])
        assert await units(store) == 3
        assert await units(store) == 0

    async def test_no_more_is_given_back_than_the_bucket_holds(self, store: SharesGuards) -> None:
        grant = await ask(store, most=4)
        await store.guards.give_back([Return(grant, 4)])
        await store.guards.give_back([Return(grant, 4)])
        assert await units(store) == 8

    async def test_units_that_have_drained_are_not_given_back_once_more(self, store: SharesGuards) -> None:
        old = await ask(store)
        await self.advance(store, 3)
        assert await units(store) == 6
        await store.guards.give_back([Return(old, 8)])
        assert await units(store) == 2, "6 of the 8 had made room by then"

    async def test_several_grants_of_a_key_are_given_back_at_once(self, store: SharesGuards) -> None:
        grants = [await ask(store, most=2) for _ in range(3)]
        await store.guards.give_back([*(Return(grant, 1) for grant in grants), Return(grants[0], 1)])
        assert await units(store) == 6

    async def test_more_than_was_granted_is_not_given_back(self, store: SharesGuards) -> None:
        grant = await ask(store, most=2)
        with raises(UsageError, "3 units", "a grant of 2"):
            Return(grant, 3)

    async def test_what_can_never_be_had_is_refused(self, store: SharesGuards) -> None:
        with raises(UsageError, "least is 9", "burst is 8"):
            want(least=9, most=9)
        with raises(UsageError, "least is 3", "most is 2"):
            want(least=3, most=2)

    async def test_a_slower_rate_counts_for_everyone(self, store: SharesGuards) -> None:
        first = await ask(store)
        pace = await store.guards.slow("api", "k", rate=0.5, version=first.version)
        assert (pace.rate, pace.paused) == (0.5, 0)
        assert pace.version > first.version
        other = await self.second(store)
        await self.advance(store, 4)
        grant = await ask(other)
        assert (grant.units, grant.rate, grant.version) == (2, 0.5, pace.version)
        await self.advance(store, TERMS_KEPT)
        assert (await ask(store, rate=0.25)).rate == 0.25, "who wants less gets less"
        assert (await ask(store, "other")).rate == 2

    async def test_nodes_that_are_told_the_same_slow_down_once(self, store: SharesGuards) -> None:
        seen = (await ask(store)).version
        first = await store.guards.slow("api", "k", rate=1, version=seen)
        late = await store.guards.slow("api", "k", rate=0.5, version=seen)
        assert late == first, "it was lowered since then"
        again = await store.guards.slow("api", "k", rate=0.5, version=first.version)
        assert again.rate == 0.5
        assert await store.guards.slow("api", "k", rate=0.75, version=again.version) == again, "not slower"

    async def test_a_rate_is_raised_by_who_knows_the_newest(self, store: SharesGuards) -> None:
        slow = await store.guards.slow("api", "k", rate=0.5)
        faster = await store.guards.sped("api", "k", rate=0.75, version=slow.version)
        assert (faster.rate, faster.version > slow.version) == (0.75, True)
        assert await store.guards.sped("api", "k", rate=1.5, version=slow.version) == faster
        assert await store.guards.sped("api", "k", rate=0.25, version=faster.version) == faster, "not faster"
        lowered = await store.guards.slow("api", "k", rate=0.5, version=slow.version)
        assert lowered.rate == 0.5, "it was only raised since then"
        free = await store.guards.sped("api", "k", rate=None, version=lowered.version)
        assert free.rate is None
        assert (await ask(store)).rate == 2

    async def test_what_nobody_has_lowered_is_not_raised(self, store: SharesGuards) -> None:
        assert (await store.guards.sped("api", "k", rate=5, version=0)).version == 0
        grant = await ask(store)
        pace = await store.guards.sped("api", "k", rate=5, version=grant.version)
        assert (pace.rate, pace.version) == (None, 0)

    async def test_nothing_is_granted_during_a_pause(self, store: SharesGuards) -> None:
        assert (await store.guards.slow("api", "k", rate=None, pause=30)).paused == 30
        grant = await ask(store)
        assert (grant.units, grant.paused, grant.wait) == (0, 30, 30 + FINEST)
        assert (await store.guards.slow("api", "k", rate=None, pause=10)).paused == 30, "the later end counts"
        await self.advance(store, 25)
        assert (await store.guards.slow("api", "k", rate=None, pause=10)).paused == 10
        await self.advance(store, 10)
        assert await units(store) == 8

    async def test_pauses_in_a_row_are_counted_until_there_is_an_answer(self, store: SharesGuards) -> None:
        first = await store.guards.slow("api", "k", rate=None, pause=10, in_row=1)
        assert (first.in_row, first.rate, first.paused) == (1, None, 10)
        again = await store.guards.slow("api", "k", rate=None, pause=10, in_row=1)
        assert again.in_row == 1, "nodes that are told the same count once"
        assert (await ask(store)).in_row == 1
        await self.advance(store, 11)
        assert (await store.guards.slow("api", "k", rate=None, pause=20, in_row=2)).in_row == 2
        assert (await store.guards.slow("api", "k", rate=None, pause=5)).in_row == 2, (
            "it was told for how long"
        )
        assert (await store.guards.calm("api", "k", in_row=1)).in_row == 2, "there was another since"
        calm = await store.guards.calm("api", "k", in_row=2)
        assert (calm.in_row, calm.paused) == (0, 20), "the pause stays"
        assert (await ask(store)).in_row == 0
        assert (await store.guards.calm("api", "nobody", in_row=1)).in_row == 0

    async def test_who_saw_a_count_before_the_rate_was_lowered_counts_nothing(
        self, store: SharesGuards
    ) -> None:
        seen = (await ask(store)).version
        lowered = await store.guards.slow("api", "k", rate=1, version=seen, in_row=1)
        assert (await store.guards.slow("api", "k", rate=None, version=seen, in_row=2)).in_row == 1
        assert (await store.guards.slow("api", "k", rate=None, version=lowered.version, in_row=2)).in_row == 2

    async def test_a_pause_lasts_a_day_at_most(self, store: SharesGuards) -> None:
        assert (await store.guards.slow("api", "k", rate=None, pause=1e9)).paused == 86_400
        assert (await store.guards.slow("api", "k", rate=1, pause=0)).paused == 86_400

    async def test_a_pause_goes_back_with_the_clock(self, store: SharesGuards) -> None:
        await store.guards.slow("api", "k", rate=None, pause=30)
        await self.advance(store, 10)
        assert (await ask(store)).paused == 20
        await self.advance(store, -3600)
        assert (await ask(store)).paused == 20
        await self.advance(store, 20)
        assert await units(store) == 8


class QuotaConformance(SharedQuotaConformance):
    """And what is forgotten, when a store is told to."""

    async def test_how_often_it_was_too_much_is_kept_for_a_week(self, store: Store) -> None:
        await store.guards.slow("api", "k", rate=None, pause=1, in_row=3)
        await self.advance(store, 6 * 86_400)
        await store.guards.prune()
        assert (await ask(store)).in_row == 3
        await store.guards.calm("api", "k", in_row=3)
        await self.advance(store, 3660)
        assert await store.guards.prune() == 1

    async def test_giving_back_to_a_forgotten_bucket_makes_none(self, store: Store) -> None:
        grant = await ask(store)
        await self.advance(store, 3660)
        assert await store.guards.prune() == 1
        await store.guards.give_back([Return(grant, 8)])
        assert await store.guards.find() == []
        await units(store)
        await store.guards.give_back([Return(grant, 8)])
        assert await units(store) == 0, "it was another bucket that this came from"

    async def test_prune_forgets_full_buckets_that_nobody_asks_for(self, store: Store) -> None:
        await store.guards.take([want("a"), want("b"), want("busy"), want("slow")])
        await ask(store, "huge", rate=0.001, burst=8)
        await store.guards.slow("api", "slow", rate=1)
        await store.guards.slow("api", "paused", rate=None, pause=7300)
        await self.advance(store, 3500)
        await ask(store, "busy")
        assert await store.guards.prune() == 0
        await self.advance(store, 160)
        assert await store.guards.prune(limit=1) == 1
        assert await store.guards.prune() == 1, "busy, slow, huge and paused are needed"
        await self.advance(store, 3600)
        assert await store.guards.prune() == 1
        await self.advance(store, 3600)
        assert await store.guards.prune() == 2
        await self.advance(store, 7 * 86_400)
        assert await store.guards.prune() == 1
        assert await store.guards.find() == []
