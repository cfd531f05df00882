"""Sessions of web pages: what is over is not seen, what is ended is ended everywhere, and nobody overwrites another's data."""

from __future__ import annotations

from typing import Any, Protocol

from holdfast.kernel.errors import UsageError
from holdfast.store.ports import Store
from holdfast.store.visit_ports import SharedVisits
from holdfast.store.visit_records import DATA_LIMIT, NewVisit, Visit
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, raises
from holdfast.testing.conformance.names import longest

IDLE, LAST = 60.0, 1000.0


class KeepsVisits(Protocol):
    """All that the shared tests need of a store, so that what is no store can be tested by them too."""

    @property
    def visits(self) -> SharedVisits: ...
    async def now(self) -> float: ...


async def begin(store: KeepsVisits, visit_id: str = "a" * 64, **options: Any) -> str:
    times = {name: options.pop(name, usual) for name, usual in (("idle", IDLE), ("last", LAST))}
    replaces = options.pop("replaces", None)
    await store.visits.begin(NewVisit(id=visit_id, **options), **times, replaces=replaces)
    return visit_id


async def found(store: KeepsVisits, visit_id: str = "a" * 64) -> Visit:
    visit = await store.visits.get(visit_id)
    assert visit is not None, "it should last"
    return visit


class SharedVisitsConformance(Conformance):
    async def test_a_visit_is_there_from_its_beginning(self, store: KeepsVisits) -> None:
        now = await store.now()
        await begin(
            store, principal="ada", tenant="acme", data='{"a":[1,null,"ä"]}', address="192.0.2.1", agent="Fox"
        )
        assert await found(store) == Visit(
            id="a" * 64, principal="ada", tenant="acme", data='{"a":[1,null,"ä"]}', version=1, address="192.0.2.1",
            agent="Fox", created_at=now, seen_at=now, until=now + IDLE, last=now + LAST,
        )  # fmt: skip
        assert await store.visits.get("b" * 64) is None

    async def test_the_longest_names_of_a_visit_are_kept(self, store: KeepsVisits) -> None:
        names = {kind: longest(kind) for kind in ("principal", "tenant", "address")}
        await begin(store, **names, data='{"a":"' + "x" * (DATA_LIMIT - 8) + '"}')
        visit = await found(store)
        assert {kind: getattr(visit, kind) for kind in names} == names
        assert len(visit.data) == DATA_LIMIT

    async def test_a_visit_that_is_too_large_or_has_no_name_is_refused(self, store: KeepsVisits) -> None:
        for wrong in ({"data": "x" * (DATA_LIMIT + 1)}, {"principal": ""}, {"tenant": "a\nb"}):
            with raises(Exception):
                await begin(store, **wrong)
        assert await store.visits.get("a" * 64) is None

    async def test_without_a_sign_of_life_a_visit_is_over(self, store: KeepsVisits) -> None:
        await begin(store, principal="ada")
        await self.advance(store, IDLE)
        assert await store.visits.get("a" * 64) is None
        assert await store.visits.find("ada") == []
        assert not await store.visits.touch("a" * 64, idle=IDLE)
        assert not await store.visits.write("a" * 64, "{}", version=1)
        assert not await store.visits.end("a" * 64)
        assert await store.visits.end_of("ada") == 0

    async def test_signs_of_life_keep_it_until_its_last_moment(self, store: KeepsVisits) -> None:
        await begin(store, last=150.0)
        last = (await found(store)).last
        for _ in range(2):
            await self.advance(store, 50)
            assert await store.visits.touch("a" * 64, idle=IDLE)
        visit = await found(store)
        assert (visit.seen_at, visit.until, visit.last) == (await store.now(), last, last)
        await self.advance(store, 50)
        assert await store.visits.get("a" * 64) is None

    async def test_it_may_last_shorter_than_it_may_be_idle(self, store: KeepsVisits) -> None:
        await begin(store, idle=60.0, last=10.0)
        await self.advance(store, 10)
        assert await store.visits.get("a" * 64) is None

    async def test_data_of_a_visit_is_written_over_what_was_read(self, store: KeepsVisits) -> None:
        await begin(store)
        assert await store.visits.write("a" * 64, '{"n":1}', version=1)
        assert not await store.visits.write("a" * 64, '{"n":2}', version=1)
        visit = await found(store)
        assert (visit.data, visit.version) == ('{"n":1}', 2)
        assert await store.visits.write("a" * 64, '{"n":3}', version=2)

    async def test_another_visit_takes_its_place(self, store: KeepsVisits) -> None:
        await begin(store, data='{"cart":[7]}')
        await begin(store, "b" * 64, principal="ada", data='{"cart":[7]}', replaces="a" * 64)
        assert await store.visits.get("a" * 64) is None
        assert (await found(store, "b" * 64)).principal == "ada"

    async def test_a_visit_that_is_ended_is_over_for_everyone(self, store: KeepsVisits) -> None:
        second = await self.second(store)
        await begin(store, principal="ada")
        assert (await found(second)).principal == "ada"
        assert await second.visits.end("a" * 64)
        assert await store.visits.get("a" * 64) is None
        assert not await store.visits.end("a" * 64)

    async def test_all_of_a_person_are_ended_at_once(self, store: KeepsVisits) -> None:
        for letter, who in (("a", "ada"), ("b", "ada"), ("c", "ada"), ("d", "eve"), ("e", None)):
            await begin(store, letter * 64, principal=who)
        assert await store.visits.end_of("ada", besides="b" * 64) == 2
        assert [visit.id[0] for visit in await store.visits.find("ada")] == ["b"]
        assert await store.visits.end_of("ada") == 1
        assert await store.visits.end_of("ada") == 0
        assert (await found(store, "d" * 64)).principal == "eve"
        assert (await found(store, "e" * 64)).principal is None

    async def test_one_of_a_person_is_ended_by_its_name(self, store: KeepsVisits) -> None:
        await begin(store, "a" * 64, principal="ada")
        await begin(store, "b" * 64, principal="ada")
        assert await store.visits.end_of("eve", name="a" * 16) == 0
        assert await store.visits.end_of("ada", name="a" * 16) == 1
        assert [visit.name for visit in await store.visits.find("ada")] == ["b" * 16]

    async def test_visits_seen_last_come_first(self, store: KeepsVisits) -> None:
        for letter in "abc":
            await begin(store, letter * 64, principal="ada")
            await self.advance(store, 1)
        await store.visits.touch("a" * 64, idle=IDLE)
        assert [visit.id[0] for visit in await store.visits.find("ada")] == ["a", "c", "b"]
        assert [visit.id[0] for visit in await store.visits.find("ada", limit=1)] == ["a"]


class VisitsConformance(SharedVisitsConformance):
    async def test_it_begins_and_ends_with_the_transaction(self, store: Store) -> None:
        await begin(store, principal="ada")
        with raises(Rollback):
            async with store.transaction() as tx:
                new = NewVisit(id="b" * 64, principal="ada")
                await store.visits.begin(new, idle=IDLE, last=LAST, replaces="a" * 64, tx=tx)
                raise Rollback
        assert [visit.id[0] for visit in await store.visits.find("ada")] == ["a"]
        async with store.transaction() as tx:
            await store.visits.begin(new, idle=IDLE, last=LAST, replaces="a" * 64, tx=tx)
        assert [visit.id[0] for visit in await store.visits.find("ada")] == ["b"]
        with raises(Rollback):
            async with store.transaction() as tx:
                assert await store.visits.end_of("ada", tx=tx) == 1
                raise Rollback
        assert [visit.id[0] for visit in await store.visits.find("ada")] == ["b"]

    async def test_visits_that_are_over_are_forgotten(self, store: Store) -> None:
        for letter, idle in (("a", 10.0), ("b", 20.0), ("c", 60.0)):
            await begin(store, letter * 64, idle=idle)
        await self.advance(store, 30)
        assert await store.visits.prune(limit=1) == 1
        assert await store.visits.prune() == 1
        assert await store.visits.prune() == 0
        assert (await found(store, "c" * 64)).name == "c" * 16

    async def test_a_secret_is_made_once_for_all(self, store: Store) -> None:
        second = await self.second(store)
        assert await store.visits.secret("forms", "first") == "first"
        assert await second.visits.secret("forms", "second") == "first"
        assert await second.visits.secret("links", "third") == "third"

    async def test_only_a_new_visit_is_begun(self, store: Store) -> None:
        with raises(UsageError):
            await store.visits.begin("a", idle=1, last=1)  # type: ignore[arg-type]
