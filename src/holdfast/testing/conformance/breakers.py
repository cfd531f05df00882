"""Breakers of a fleet: what nodes hear of each other, when all open, and who may probe."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.store.breakers import BreakerReport, BreakerState, FleetBreaker, Probe
from holdfast.store.quota import Grant, Return
from holdfast.testing.conformance.harness import Conformance, SharesGuards
from holdfast.testing.conformance.kit import raises
from holdfast.testing.conformance.names import longest
from holdfast.testing.conformance.quota import SharedQuotaConformance, ask, units, want

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


def said(guard: str = "api", state: BreakerState = CLOSED, **numbers: Any) -> BreakerReport:
    return BreakerReport(guard, state, **numbers)


async def tell(
    store: SharesGuards, node: str = "n1", state: BreakerState = CLOSED, **numbers: Any
) -> FleetBreaker:
    (told,) = await store.guards.report(node, [said(state=state, **numbers)], ttl=5)
    return told


async def permit(
    store: SharesGuards, node: str = "n1", *, permits: int = 1, lease: float = 30
) -> Probe | None:
    return await store.guards.probe("api", node, permits=permits, lease=lease)


class BreakersConformance(Conformance):
    counts = True  # generations go up by one; else by more, as where a number may be forgotten

    def is_generation(self, found: int, number: int) -> bool:
        return found == number if self.counts else found >= number

    async def test_a_node_hears_what_the_others_said(self, store: SharesGuards) -> None:
        said = {"generation": 3, "open_for": 20, "calls": 10, "failures": 9, "slow": 1, "paused": 0.25}
        assert await tell(store, "n2", OPEN, **said) == FleetBreaker(guard="api")
        now = await store.now()
        (heard,) = (await tell(await self.second(store), "n1")).others
        assert (heard.node, heard.state, heard.at) == ("n2", OPEN, now)
        assert {kind: getattr(heard, kind) for kind in said} == said
        assert [each.node for each in (await tell(store, "n3")).others] == ["n1", "n2"]

    async def test_what_a_node_said_is_forgotten_when_it_is_not_heard_of(self, store: SharesGuards) -> None:
        await tell(store, "n2", OPEN)
        await self.advance(store, 4)
        assert len((await tell(store)).others) == 1
        await self.advance(store, 1)
        assert (await tell(store)).others == ()

    async def test_a_node_says_of_many_guards_and_hears_of_these(self, store: SharesGuards) -> None:
        await store.guards.report("n2", [said("b", OPEN), said("a", HALF_OPEN), said("c")], ttl=5)
        told = await store.guards.report("n1", [said("c"), said("a"), said("d")], ttl=5)
        assert [each.guard for each in told] == ["c", "a", "d"]
        assert [[other.state for other in each.others] for each in told] == [[CLOSED], [HALF_OPEN], []]
        assert await store.guards.report("n1", [], ttl=5) == []

    async def test_a_node_names_a_guard_once(self, store: SharesGuards) -> None:
        with raises(UsageError, "'api'", "twice"):
            await store.guards.report("n1", [said(), said(state=OPEN)], ttl=5)

    async def test_after_the_clock_was_set_back_only_new_words_count(self, store: SharesGuards) -> None:
        await tell(store, "n2", OPEN)
        await self.advance(store, -3600)
        assert (await tell(store)).others == ()
        await tell(store, "n2")
        assert [other.state for other in (await tell(store)).others] == [CLOSED]

    async def test_a_fleet_opens_once_for_each_generation(self, store: SharesGuards) -> None:
        assert await store.guards.open_fleet("api", generation=0, open_for=30)
        assert not await store.guards.open_fleet("api", generation=0, open_for=60), "repeated"
        told = await tell(store)
        opened = told.generation
        assert self.is_generation(opened, 1)
        assert (told.opened_until, told.open_for) == (await store.now() + 30, 30)
        await self.advance(store, 10)
        assert (await tell(store)).open_for == 20
        await self.advance(store, 20)
        told = await tell(store)
        assert (told.generation, told.opened_until, told.open_for) == (opened, None, 0)
        assert not await store.guards.open_fleet("api", generation=0, open_for=30), "late"
        assert (await tell(store)).opened_until is None
        assert await store.guards.open_fleet("api", generation=opened, open_for=30)
        assert (await tell(store)).generation > opened

    async def test_what_was_closed_is_not_opened_by_a_late_call(self, store: SharesGuards) -> None:
        await store.guards.open_fleet("api", generation=0, open_for=30)
        opened = (await tell(store)).generation
        assert not await store.guards.close_fleet("api", generation=0)
        assert await store.guards.close_fleet("api", generation=opened)
        told = await tell(store)
        assert told.generation > opened
        assert self.is_generation(told.generation, 2)
        assert told.opened_until is None
        for late in (0, opened):
            assert not await store.guards.open_fleet("api", generation=late, open_for=30)
            assert not await store.guards.close_fleet("api", generation=late)
        assert (await tell(store)).opened_until is None

    async def test_a_guard_that_nobody_knows_has_generation_0(self, store: SharesGuards) -> None:
        assert not await store.guards.open_fleet("api", generation=1, open_for=30)
        assert not await store.guards.close_fleet("api", generation=0)
        assert await tell(store) == FleetBreaker(guard="api")

    async def test_a_fleet_is_not_open_for_ever_when_the_clock_is_set_back(self, store: SharesGuards) -> None:
        await store.guards.open_fleet("api", generation=0, open_for=30)
        await self.advance(store, -3600)
        assert (await tell(store)).opened_until is None

    async def test_so_many_permits_are_out_and_no_more(self, store: SharesGuards) -> None:
        first = await permit(store, permits=2)
        assert first is not None
        assert (first.guard, first.node, first.until) == ("api", "n1", await store.now() + 30)
        assert await permit(await self.second(store), "n2", permits=2) is not None
        assert await permit(store, "n3", permits=2) is None
        assert await store.guards.probed(first)
        assert not await store.guards.probed(first)
        assert await permit(store, "n3", permits=2) is not None
        assert await permit(store, "n4", permits=1) is None, "also when there were more before"
        assert await store.guards.probe("other", "n1", permits=1, lease=30) is not None

    async def test_a_permit_that_was_not_given_back_ends(self, store: SharesGuards) -> None:
        lost = await permit(store)
        assert lost is not None
        await self.advance(store, 29)
        assert await permit(store, "n2") is None
        await self.advance(store, 1)
        held = await permit(store, "n2")
        assert held is not None
        assert held.token > lost.token
        assert not await store.guards.probed(lost)
        assert await permit(store, "n3") is None, "the late one frees nothing"

    async def test_permits_go_back_with_the_clock(self, store: SharesGuards) -> None:
        await permit(store)
        await self.advance(store, -3600)
        assert await permit(store, "n2") is None
        await self.advance(store, 29)
        assert await permit(store, "n2") is None
        await self.advance(store, 1)
        assert await permit(store, "n2") is not None

    async def test_of_takes_at_once_no_more_is_granted_than_there_is(self, store: SharesGuards) -> None:
        """Through several clients, in both orders, with returns and changed rates in between."""
        clients = [store, await self.second(store), await self.second(store)]
        keys = [f"k{number}" for number in range(4)]
        used: defaultdict[str, float] = defaultdict(float)

        async def node(number: int) -> None:
            client = clients[number % 3]
            for turn in range(6):
                ordered = keys if (number + turn) % 2 else keys[::-1]
                grants = await client.guards.take([want(key, most=1 + turn % 3) for key in ordered])
                back = [Return(grant, grant.units / 2) for grant in grants if grant.units and turn % 3 == 1]
                await client.guards.give_back(back)
                for grant in grants:
                    used[grant.key] += grant.units
                for item in back:
                    used[item.grant.key] -= item.units
                await client.guards.slow("api", keys[turn % 4], rate=1 + number, version=grants[0].version)

        await asyncio.gather(*(node(number) for number in range(9)))
        for key in keys:  # half a unit may be left, which nobody was content with
            used[key] += await units(store, key, least=0.25)
        assert all(abs(used[key] - 8) < 1e-6 for key in keys), dict(used)

    async def test_of_a_new_bucket_at_once_one_burst_is_granted(self, store: SharesGuards) -> None:
        clients = [store, await self.second(store), await self.second(store)]
        grants: list[Grant] = await asyncio.gather(*(ask(clients[n % 3], most=1) for n in range(30)))
        assert sum(grant.units for grant in grants) == 8

    async def test_of_probes_at_once_only_the_permitted_are_out(self, store: SharesGuards) -> None:
        clients = [store, await self.second(store), await self.second(store)]
        permits = await asyncio.gather(*(permit(clients[n % 3], f"n{n}", permits=3) for n in range(20)))
        out = [each for each in permits if each is not None]
        assert len(out) == len({each.token for each in out}) == 3

    async def test_of_openings_at_once_one_counts(self, store: SharesGuards) -> None:
        clients = [store, await self.second(store), await self.second(store)]
        opened = await asyncio.gather(
            *(clients[n % 3].guards.open_fleet("api", generation=0, open_for=30) for n in range(20))
        )
        assert sum(opened) == 1
        assert self.is_generation((await tell(store)).generation, 1)

    async def test_the_longest_names_are_shared(self, store: SharesGuards) -> None:
        name, key, node = longest("guard"), longest("key"), longest("node")
        grant = await ask(store, key, name=name)
        assert grant.units == 8
        await store.guards.give_back([Return(grant, 8)])
        assert (await store.guards.slow(name, key, rate=1)).rate == 1
        assert await units(store, key, name=name) == 8
        await store.guards.report(node, [said(name)], ttl=5)
        (told,) = await store.guards.report("n2", [said(name)], ttl=5)
        assert [other.node for other in told.others] == [node]
        probe = await store.guards.probe(name, node, permits=1, lease=5)
        assert probe is not None
        assert await store.guards.probed(probe)

    async def test_names_are_not_mixed_up(self, store: SharesGuards) -> None:
        assert await units(store, "b:c", name="a") == 8
        assert await units(store, "c", name="a:b") == 8
        assert await units(store, "", name="a:b:c") == 8


class SharedGuardsConformance(SharedQuotaConformance, BreakersConformance):
    """For what keeps only the part of `store.guards` that a fleet shares; what people decide is elsewhere."""
