"""Flags: what was decided last counts, each decision is in the audit trail, and a change is known by a number."""

from __future__ import annotations

from typing import Any

from holdfast.store.flag_records import FlagRecord
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, raises
from holdfast.testing.conformance.names import longest


async def set_flag(store: Store, name: str = "fast", value: bool = True, **options: Any) -> None:
    await store.flags.set(name, value, **{"actor": "ada", "reason": "why", **options})


class FlagsConformance(Conformance):
    async def test_a_flag_that_is_set_is_there_for_everyone(self, store: Store) -> None:
        assert (await store.flags.all()).flags == ()
        await set_flag(store)
        now = await store.now()
        second = await self.second(store)
        assert (await second.flags.all()).flags == (FlagRecord("fast", None, True, "why", "ada", now),)

    async def test_what_was_decided_last_counts(self, store: Store) -> None:
        await set_flag(store)
        await self.advance(store, 5)
        await set_flag(store, value=False, actor="eve", reason="")
        assert (await store.flags.all()).flags == (
            FlagRecord("fast", None, False, "", "eve", await store.now()),
        )

    async def test_a_tenant_has_a_flag_of_its_own(self, store: Store) -> None:
        await set_flag(store, tenant="acme")
        await set_flag(store, value=False)
        await set_flag(store, "b")
        shown = [(each.name, each.tenant, each.value) for each in (await store.flags.all()).flags]
        assert shown == [("b", None, True), ("fast", None, False), ("fast", "acme", True)]

    async def test_a_decision_is_taken_back(self, store: Store) -> None:
        await set_flag(store)
        await set_flag(store, tenant="acme")
        assert await store.flags.unset("fast", tenant="acme", actor="ada", reason="")
        assert not await store.flags.unset("fast", tenant="acme", actor="ada", reason="")
        assert [each.tenant for each in (await store.flags.all()).flags] == [None]

    async def test_the_version_of_flags_grows_with_each_change(self, store: Store) -> None:
        seen = [await store.flags.version()]
        await set_flag(store)
        seen.append(await store.flags.version())
        await store.flags.unset("none", actor="ada", reason="")
        assert await store.flags.version() == seen[-1]
        await store.flags.unset("fast", actor="ada", reason="")
        seen.append(await store.flags.version())
        assert seen == sorted(set(seen))
        assert (await store.flags.all()).version == seen[-1]

    async def test_a_flag_changes_with_the_transaction(self, store: Store) -> None:
        before = await store.flags.version()
        with raises(Rollback):
            async with store.transaction() as tx:
                await set_flag(store, tx=tx)
                raise Rollback
        assert (await store.flags.version(), (await store.flags.all()).flags) == (before, ())
        async with store.transaction() as tx:
            await set_flag(store, tx=tx)
            assert not await store.flags.unset("none", actor="ada", reason="", tx=tx)
        assert len((await store.flags.all()).flags) == 1

    async def test_each_decision_about_a_flag_is_audited(self, store: Store) -> None:
        await set_flag(store, tenant="acme")
        await store.flags.unset("fast", tenant="acme", actor="eve", reason="enough")
        found = await store.audit.find(subject="flag:fast")
        assert [(each.actor, each.action, each.before, each.after) for each in found] == [
            ("eve", "flag.unset", '{"tenant":"acme","value":true}', '{"tenant":"acme","reason":"enough"}'),
            ("ada", "flag.set", '{"tenant":"acme"}', '{"tenant":"acme","value":true,"reason":"why"}'),
        ]

    async def test_the_longest_names_of_flags_are_kept(self, store: Store) -> None:
        await set_flag(store, longest("flag"), tenant=longest("tenant"))
        [found] = (await store.flags.all()).flags
        assert (found.name, found.tenant) == (longest("flag"), longest("tenant"))
