"""Guards in a store: beside what a fleet shares, what a person decides, what is listed, pruned, and lost on the way."""

from __future__ import annotations

import asyncio
import json

from holdfast.kernel.errors import CommitUnknown, UsageError
from holdfast.store.breakers import NODES_SHOWN
from holdfast.store.ports import Store
from holdfast.store.quota import Return
from holdfast.testing.conformance.breakers import (
    CLOSED,
    HALF_OPEN,
    OPEN,
    BreakersConformance,
    permit,
    said,
    tell,
)
from holdfast.testing.conformance.kit import raises
from holdfast.testing.conformance.lost_answers import lost, once
from holdfast.testing.conformance.names import longest
from holdfast.testing.conformance.quota import QuotaConformance, ask, units


class GuardsConformance(QuotaConformance, BreakersConformance):
    async def test_what_was_only_asked_for_leaves_no_guard(self, store: Store) -> None:
        assert not await store.guards.open_fleet("api", generation=1, open_for=30)
        assert not await store.guards.close_fleet("api", generation=0)
        assert await store.guards.find() == []

    async def test_a_person_holds_a_breaker_and_lets_it_go(self, store: Store) -> None:
        now = await store.now()
        await store.guards.hold("api", OPEN, actor="ada")
        await self.advance(store, 5)
        await store.guards.hold("api", OPEN, actor="bob")
        held = (await tell(store)).held
        assert held is not None
        assert (held.state, held.by, held.at) == (OPEN, "ada", now), "it was held already"
        await store.guards.hold("api", CLOSED, actor="bob")
        assert await store.guards.let_go("api", actor="cyd")
        assert not await store.guards.let_go("api", actor="cyd")
        assert (await tell(store)).held is None
        rows = [(row.actor, row.action) for row in await store.audit.find(subject="guard:api")]
        assert rows == [("cyd", "guard.let_go"), ("bob", "guard.held"), ("ada", "guard.held")]
        (_, second, first) = await store.audit.find(subject="guard:api")
        assert (first.before, json.loads(first.after or "")) == (None, {"held": "open"})
        assert json.loads(second.before or "") == {"held": "open", "by": "ada", "at": now}

    async def test_half_open_is_nothing_to_hold(self, store: Store) -> None:
        with raises(UsageError, "half_open"):
            await store.guards.hold("api", HALF_OPEN, actor="ada")
        assert not await store.guards.let_go("api", actor="ada")
        assert await store.audit.find() == []

    async def test_reset_begins_anew_and_nobody_brings_the_old_state_back(self, store: Store) -> None:
        await store.guards.open_fleet("api", generation=0, open_for=30)
        await store.guards.hold("api", CLOSED, actor="ada")
        probe = await permit(store)
        seen = await store.guards.slow("api", "k", rate=0.5, pause=60)
        await store.guards.slow("api", "only counted", rate=None, in_row=4)
        await tell(store, "n2", OPEN)
        assert await store.guards.reset("api", actor="bob")
        told = await tell(store)
        assert (told.generation, told.reset, told.opened_until, told.others) == (2, 2, None, ())
        assert told.held is not None, "that is for let_go"
        assert not await store.guards.open_fleet("api", generation=1, open_for=30)
        late = await store.guards.slow("api", "k", rate=0.25, version=seen.version, in_row=2)
        assert (late.rate, late.paused, late.in_row) == (None, 0, 0)
        assert (await store.guards.calm("api", "only counted", in_row=0)).in_row == 0
        assert await units(store) == 8
        assert probe is not None
        assert not await store.guards.probed(probe)
        assert await permit(store, "n2") is not None
        row = (await store.audit.find(subject="guard:api"))[0]
        assert (row.actor, row.action, json.loads(row.before or "")["keys"]) == ("bob", "guard.reset", 2)

    async def test_a_look_at_one_guard_and_one_key(self, store: Store) -> None:
        empty = await store.guards.look("api", "k")
        assert (empty.known, empty.nodes, empty.held, empty.opened_at, empty.rate) == (
            False, 0, None, None, None,
        )  # fmt: skip
        await tell(store, "n1", OPEN, calls=7, failures=4)
        await tell(store, "n2", CLOSED, calls=5, failures=1)
        await store.guards.slow("api", "k", rate=0.5, pause=60, in_row=2)
        await store.guards.open_fleet("api", generation=0, open_for=30)
        await store.guards.hold("api", CLOSED, actor="ada")
        seen = await store.guards.look("api", "k")
        assert (seen.known, seen.nodes, seen.nodes_open, seen.calls, seen.failures) == (True, 2, 1, 7, 4)
        assert (seen.rate, seen.paused, seen.in_row) == (0.5, 60, 2)
        assert seen.opened_at == seen.now
        assert seen.opened_until == seen.now + 30
        assert seen.held is not None
        assert seen.held.by == "ada"
        await self.advance(store, 31)
        over = await store.guards.look("api", "other")
        assert over.opened_until is None
        assert (over.opened_at, over.rate, over.paused) == (seen.opened_at, None, 0)

    async def test_what_nobody_knows_is_not_reset(self, store: Store) -> None:
        assert not await store.guards.reset("api", actor="ada")
        assert await store.audit.find() == []
        await tell(store)
        assert await store.guards.reset("api", actor="ada")

    async def test_a_listing_has_everything_to_show(self, store: Store) -> None:
        await store.guards.report("n1", [said("b", OPEN, calls=5, failures=4)], ttl=5)
        await store.guards.report("n2", [said("b")], ttl=5)
        await store.guards.hold("c", OPEN, actor="ada")
        for number in range(7):
            await ask(store, f"k{number}", name="a")
            await store.guards.slow("a", f"k{number}", rate=8 - number)
        await store.guards.slow("a", "k1", rate=None, pause=30)
        await ask(store, "free", name="a")
        await permit(store, lease=5)
        await store.guards.open_fleet("api", generation=0, open_for=30)
        a, api, b, c = await store.guards.find()
        assert [each.name for each in (a, api, b, c)] == ["a", "api", "b", "c"]
        assert (a.keys, a.slowed, [pace.key for pace in a.slowest]) == (8, 7, ["k6", "k5", "k4", "k3", "k2"])
        assert (a.paused, [(pace.key, pace.rate, pace.paused) for pace in a.longest]) == (1, [("k1", 7, 30)])
        assert (api.probes, api.generation, api.opened_until) == (1, 1, await store.now() + 30)
        assert (b.nodes_number, [(node.node, node.state, node.failures) for node in b.nodes]) == (
            2,
            [("n1", OPEN, 4), ("n2", CLOSED, 0)],
        )
        assert c.held is not None
        assert c.held.by == "ada"
        assert [each.name for each in await store.guards.find(limit=2)] == ["a", "api"]
        await self.advance(store, 30)
        a, api, b, _ = await store.guards.find()
        assert (a.paused, a.longest, api.probes, api.opened_until, b.nodes_number) == (0, (), 0, None, 0)

    async def test_a_listing_is_bounded(self, store: Store) -> None:
        for number in range(NODES_SHOWN + 3):
            await tell(store, f"n{number:03}")
        (found,) = await store.guards.find()
        assert (found.nodes_number, len(found.nodes)) == (NODES_SHOWN + 3, NODES_SHOWN)

    async def test_prune_forgets_nodes_and_permits_that_are_gone(self, store: Store) -> None:
        await tell(store, "n1")
        await tell(store, "n2")
        await permit(store)
        assert await store.guards.prune() == 0
        await self.advance(store, 90)
        await tell(store, "n2")
        assert await store.guards.prune(limit=1) == 1
        assert await store.guards.prune() == 1
        assert await store.guards.prune() == 0
        assert [other.node for other in (await tell(store)).others] == ["n2"]

    async def test_the_longest_names_are_kept(self, store: Store) -> None:
        name, key, node = longest("guard"), longest("key"), longest("node")
        assert await units(store, key, name=name) == 8
        await store.guards.report(node, [said(name)], ttl=5)
        assert await store.guards.probe(name, node, permits=1, lease=5) is not None
        await store.guards.hold(name, OPEN, actor=longest("actor"))
        assert await store.guards.reset(name, actor="ada")
        assert [found.name for found in await store.guards.find()] == [name]

    async def test_quota_whose_answer_was_lost_is_used_by_nobody(self, store: Store) -> None:
        with once("store.after_commit", lost()):
            grant = await ask(store, most=2)
        assert grant.units == 2
        assert await units(store) == 4, "what the first try took is gone"
        with once("store.after_commit", lost()), raises(CommitUnknown):
            await store.guards.give_back([Return(grant, 2)])
        assert await units(store) == 2, "it was given back, and not twice"

    async def test_what_is_as_good_twice_is_said_again_after_a_lost_answer(self, store: Store) -> None:
        with once("store.after_commit", lost()):
            pace = await store.guards.slow("api", "k", rate=0.5, pause=30)
        assert (pace.rate, pace.paused) == (0.5, 30)
        with once("store.after_commit", lost()):
            await store.guards.hold("api", OPEN, actor="ada")
        assert len(await store.audit.find()) == 1
        with once("store.after_commit", lost()):
            await tell(store, "n2", OPEN)
        assert len((await tell(store)).others) == 1
        with once("store.after_commit", lost()):
            assert await store.guards.prune() == 0

    async def test_an_opening_or_a_permit_whose_answer_was_lost_is_unknown(self, store: Store) -> None:
        with once("store.after_commit", lost()), raises(CommitUnknown):
            await store.guards.open_fleet("api", generation=0, open_for=30)
        assert (await tell(store)).generation == 1
        with once("store.after_commit", lost()), raises(CommitUnknown):
            await permit(store)
        assert await permit(store) is None, "it ends by itself"
        await self.advance(store, 30)
        assert await permit(store) is not None

    async def test_reports_and_resets_at_once_end(self, store: Store) -> None:
        clients = [store, await self.second(store), await self.second(store)]
        guards = [said(f"g{number}") for number in range(8)]
        reports = [
            clients[n % 3].guards.report(f"n{n}", guards if n % 2 else guards[::-1], ttl=5) for n in range(18)
        ]
        resets = [clients[n % 3].guards.reset(f"g{n}", actor="ada") for n in range(8)]
        await asyncio.gather(*reports, *resets)
        assert len(await store.guards.find()) == 8
