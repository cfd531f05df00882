"""Alerts: what holds is seen by its causes, what programs say counts from its moment on, and one alert is open for each cause."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.errors import StoreError
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Unknown
from holdfast.store.alert_records import CAUSES, AlertRecord, Looked
from holdfast.store.ports import Store
from holdfast.testing.conformance.dead import die
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, end, put, raises, take_one
from holdfast.testing.conformance.names import longest
from holdfast.testing.conformance.outbox import emit, relay


def alert(**changes: Any) -> AlertRecord:
    said = {
        "id": new_id(),
        "kind": "dead",
        "cause": "mail.send",
        "number": 3,
        "opened_at": 5.0,
        "told_at": 5.0,
    }
    return AlertRecord(**{**said, "told_number": 3, **changes})


async def looked(store: Store, patience: float = 60.0) -> list[tuple[str, str, int]]:
    found = await store.alerts.look(patience=patience)
    assert found.cut == frozenset()
    return sorted((each.kind, each.cause, each.number) for each in found.seen)


async def leave_unknown(store: Store, *, look: float | None = None, **options: Any) -> str:
    job_id = await put(store, **options)
    claim = await take_one(store)
    assert await end(store, claim, Unknown("who knows", look=look))
    return job_id


class AlertsConformance(Conformance):
    async def test_where_nothing_is_wrong_nothing_is_seen(self, store: Store) -> None:
        await put(store)
        assert await store.alerts.look(patience=60) == Looked(())
        assert await store.alerts.standing() == await store.alerts.find() == []

    async def test_dead_jobs_are_counted_by_their_task(self, store: Store) -> None:
        for task in ("a", "b", "b", "c"):
            await die(store, task=task)
        assert await looked(store) == [("dead", "a", 1), ("dead", "b", 2), ("dead", "c", 1)]
        first = [each.id for each in await store.jobs.find(task="b")]
        await store.dead.replay(first, actor="ada")
        assert await looked(store) == [("dead", "a", 1), ("dead", "c", 1)]

    async def test_unknown_jobs_are_counted_once_nobody_looks_for_them(self, store: Store) -> None:
        await leave_unknown(store, task="a")
        await leave_unknown(store, task="b", look=5)
        assert await looked(store) == [("unknown", "a", 1)]
        await self.advance(store, 61)
        assert await looked(store) == [("unknown", "a", 1), ("unknown", "b", 1)]

    async def test_quarantined_events_are_counted_by_their_type(self, store: Store) -> None:
        ids = await emit(store, "a", "b", None)
        lease = await relay(store)
        for each in ids[:2]:
            assert await store.outbox.failed(lease, each, "no", rest=None)
        found = await looked(store)
        assert [(kind, number) for kind, _, number in found] == [("quarantined", 2)]
        await store.outbox.drop(ids[:2], actor="ada", reason="")
        assert await looked(store) == []

    async def test_what_a_program_says_holds_until_it_takes_it_back(self, store: Store) -> None:
        for _ in range(2):
            await store.alerts.say("login", "user:7")
        await store.alerts.say("login", "user:8")
        assert await looked(store) == [("login", "user:7", 2), ("login", "user:8", 1)]
        assert await store.alerts.unsay("login", "user:7")
        assert not await store.alerts.unsay("login", "user:7")
        assert await looked(store) == [("login", "user:8", 1)]

    async def test_what_is_said_is_part_of_the_callers_transaction(self, store: Store) -> None:
        with raises(Rollback):
            async with store.transaction() as tx:
                await store.alerts.say("login", "a", tx=tx)
                raise Rollback
        assert await looked(store) == []
        async with store.transaction() as tx:
            await store.alerts.say("login", "a", tx=tx)
            await store.alerts.say("login", "b", tx=tx)
            assert await store.alerts.unsay("login", "b", tx=tx)
        assert await looked(store) == [("login", "a", 1)]

    async def test_what_expires_is_seen_from_its_notice_on(self, store: Store) -> None:
        now = await store.now()
        await store.alerts.say("expiring", "a", due=now + 10, expires=now + 20)
        assert await looked(store) == []
        await self.advance(store, 10)
        assert await looked(store) == [("expiring", "a", 1)]
        await self.advance(store, 10)
        assert await looked(store) == [("expiring", "a", 2)]
        await store.alerts.say("expiring", "a", due=now + 30, expires=now + 40)
        assert await looked(store) == []

    async def test_more_causes_than_are_looked_at_are_told_to_be_cut(self, store: Store) -> None:
        async with store.transaction() as tx:
            for number in range(CAUSES + 1):
                await store.alerts.say("login", f"user:{number}", tx=tx)
        found = await store.alerts.look(patience=60)
        assert len(found.seen) == CAUSES
        assert found.cut == {None, "expiring"}

    async def test_an_alert_is_kept_as_it_was_written_last(self, store: Store) -> None:
        first = alert()
        await store.alerts.write([first])
        later = alert(id=first.id, number=9, told_at=8.0, told_number=9, quiet_since=9.0)
        await store.alerts.write([later])
        assert await store.alerts.standing() == [later] == await store.alerts.find()
        over = alert(id=first.id, number=9, told_at=8.0, told_number=9, quiet_since=9.0, ended_at=10.0)
        await store.alerts.write([over])
        assert await store.alerts.standing() == []
        assert await store.alerts.find() == [over]

    async def test_one_alert_is_open_for_each_cause(self, store: Store) -> None:
        await store.alerts.write([alert(ended_at=6.0), alert(ended_at=6.0), alert()])
        with raises(StoreError):
            await store.alerts.write([alert()])
        with raises(StoreError):
            await store.alerts.write([alert(cause="other"), alert()])
        assert len(await store.alerts.find()) == 3

    async def test_open_alerts_come_first_and_each_newest_first(self, store: Store) -> None:
        rows = [
            alert(cause="a", opened_at=1.0, ended_at=7.0), alert(cause="b", opened_at=2.0, ended_at=9.0),
            alert(cause="c", opened_at=3.0), alert(cause="d", opened_at=4.0),
        ]  # fmt: skip
        await store.alerts.write(rows)
        assert [each.cause for each in await store.alerts.find()] == ["d", "c", "b", "a"]
        assert [each.cause for each in await store.alerts.find(limit=3)] == ["d", "c", "b"]
        assert [each.cause for each in await store.alerts.standing() or ()] == ["c", "d"]

    async def test_only_the_holder_of_the_lease_goes_on(self, store: Store) -> None:
        lease = await store.leases.acquire("alerts", owner="w1", ttl=5)
        assert lease is not None
        async with store.transaction() as tx:
            assert await store.alerts.standing(lease, tx=tx) == []
            await store.alerts.write([alert()], tx=tx)
        await self.advance(store, 6)
        assert await store.leases.acquire("alerts", owner="w2", ttl=5) is not None
        async with store.transaction() as tx:
            assert await store.alerts.standing(lease, tx=tx) is None
        assert await store.alerts.standing(lease) is None

    async def test_alerts_that_are_over_are_forgotten_after_a_while(self, store: Store) -> None:
        now = await store.now()
        await store.alerts.write([alert(ended_at=now - 10), alert(ended_at=now - 30), alert()])
        assert await store.alerts.prune(keep=20) == 1
        assert len(await store.alerts.find()) == 2
        assert await store.alerts.prune(keep=0, limit=5) == 1
        assert len(await store.alerts.find()) == 1

    async def test_the_longest_names_of_alerts_are_kept(self, store: Store) -> None:
        kind, cause = longest("kind"), longest("cause")
        await store.alerts.say(kind, cause)
        await store.alerts.write([alert(kind=kind, cause=cause)])
        assert await looked(store) == [(kind, cause, 1)]
        assert [(each.kind, each.cause) for each in await store.alerts.find()] == [(kind, cause)]
