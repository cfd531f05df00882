"""What sagas wait for: each is woken by that, in one commit with who waits, and by nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from holdfast.kernel.ids import new_id
from holdfast.store.event_records import NewEvent
from holdfast.store.ports import Store
from holdfast.store.records import Claim, Lease
from holdfast.store.saga_records import (
    Heard,
    Move,
    Rest,
    SagaState,
    Wait,
    Written,
)
from holdfast.store.states import Held
from holdfast.store.steps import Progress
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    READY,
    Rollback,
    end,
    held,
    raises,
    take,
    take_one,
)
from holdfast.testing.conformance.saga_kit import (
    DAY,
    DONE,
    UNDOING,
    UNDONE,
    WAITING,
    begun,
    new,
    saga,
    started,
    state_and_job,
)


class SagaWaitsConformance(Conformance):
    async def test_one_that_is_undone_waits_for_nothing(self, store: Store) -> None:
        """What it waited for when it was cancelled is not looked through for each event."""
        claim = await started(store, "a")
        await store.sagas.listen(claim, begun("wait/1"), Wait(kind="event", name="order.paid"))
        await store.sagas.write(claim, move=UNDOING)
        assert await store.sagas.write(claim, move=UNDONE) == Written(True, True, None)
        async with store.transaction() as tx:
            assert await tx.fetch(f"SELECT step FROM {self.bench.tables}saga_wait") == []  # noqa: S608  its own name

    # --- signals ---

    async def test_a_signal_that_came_early_is_taken_once(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.signal("a", "go", '"first"')
        await store.sagas.signal("a", "go", '"second"')
        wait = Wait(kind="signal", name="go")
        assert await store.sagas.listen(claim, begun("w1"), wait) == Heard('{"value":"first"}')
        assert await store.sagas.listen(claim, begun("w1"), wait) == Heard('{"value":"first"}')
        assert await store.sagas.listen(claim, begun("w2", 1), wait) == Heard('{"value":"second"}')
        assert await store.sagas.listen(claim, begun("w3", 2), wait) == Heard(None)
        found = await store.sagas.signals("a")
        assert [(each.name, each.value, each.taken_by) for each in found] == [
            ("go", '"first"', "w1"),
            ("go", '"second"', "w2"),
        ]
        kept = {each.name: (each.progress, each.result) for each in await store.steps.load(claim.job_id, 0)}
        assert kept["w1"] == (Progress.DONE, '{"value":"first"}')
        assert kept["w3"] == (Progress.BEGUN, None)

    async def test_a_signal_wakes_only_who_waits_for_it(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.listen(claim, begun("w"), Wait(kind="signal", name="go"))
        await store.sagas.write(claim, move=WAITING, rest=Rest())
        assert (await store.sagas.signal("a", "other")).outcome == "accepted"
        assert await state_and_job(store, "a") == (SagaState.WAITING, held(Held.WAITING))
        assert (await store.sagas.signal("a", "go", "7")).outcome == "accepted"
        assert await state_and_job(store, "a") == (SagaState.RUNNING, READY)
        again = await take_one(store)
        heard = await store.sagas.listen(again, begun("w"), Wait(kind="signal", name="go"))
        assert heard == Heard('{"value":7}')

    async def test_a_signal_between_the_look_and_the_rest_is_not_slept_through(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.listen(claim, begun("w"), Wait(kind="signal", name="go"))
        await store.sagas.signal("a", "go")
        await store.sagas.write(claim, move=WAITING, rest=Rest(DAY))
        assert (await state_and_job(store, "a"))[1] == READY
        again = await take_one(store)
        await store.sagas.write(again, move=WAITING, rest=Rest(DAY))
        assert await state_and_job(store, "a") == (SagaState.WAITING, held(Held.TIME))

    async def test_a_signal_in_a_transaction_comes_with_its_commit(self, store: Store) -> None:
        claim = await started(store, "a")
        with raises(Rollback):
            async with store.transaction() as tx:
                await store.sagas.signal("a", "go", tx=tx)
                raise Rollback
        assert await store.sagas.signals("a") == []
        async with store.transaction() as tx:
            await store.sagas.signal("a", "go", tx=tx)
        assert len(await store.sagas.signals("a")) == 1
        assert claim.attempt == 1

    async def test_a_wait_whose_time_is_over_says_so_and_keeps_to_it(self, store: Store) -> None:
        claim = await started(store, "a")
        wait, last = Wait(kind="signal", name="go"), Wait(kind="signal", name="go", give_up=True)
        assert await store.sagas.listen(claim, begun("w"), wait) == Heard(None)
        assert await store.sagas.listen(claim, begun("w"), last) == Heard('{"timed_out":true}')
        await store.sagas.write(claim, move=WAITING, rest=Rest(DAY))
        await store.sagas.signal("a", "go")
        assert await state_and_job(store, "a") == (SagaState.WAITING, held(Held.TIME))

    async def test_no_signal_reaches_what_is_over_or_missing(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=DONE)
        assert (await store.sagas.signal("a", "go")).outcome == "over"
        assert (await store.sagas.signal("b", "go")).outcome == "missing"

    # --- other sagas ---

    async def test_the_end_of_a_saga_wakes_who_waits_for_it(self, store: Store) -> None:
        parent = await started(store, "parent")
        [child] = await store.sagas.start([new("child", parent="parent")])
        wait = Wait(kind="saga", name="child")
        assert await store.sagas.listen(parent, begun("w"), wait) == Heard(None)
        await store.sagas.write(parent, move=WAITING, rest=Rest())
        carrier = await take_one(store)
        assert carrier.job_id == child.job_id
        assert await store.sagas.write(carrier, move=DONE) == Written(True, True, None)
        assert await state_and_job(store, "parent") == (SagaState.RUNNING, READY)
        again = await take_one(store)
        heard = await store.sagas.listen(again, begun("w"), wait)
        assert heard == Heard('{"state":"done","error":null,"value":1}')

    async def test_the_end_of_a_saga_that_is_over_is_heard_at_once(self, store: Store) -> None:
        child = await started(store, "child")
        await store.sagas.write(child, move=UNDOING)
        await store.sagas.write(
            child, move=Move(state=SagaState.NEEDS_OPERATOR, undoing=True, error="an undo failed")
        )
        assert (await saga(store, "child")).error == "an undo failed"
        await store.sagas.write(child, move=UNDONE)
        await end(store, child)
        parent = await started(store, "parent")
        heard = await store.sagas.listen(parent, begun("w"), Wait(kind="saga", name="child"))
        assert heard == Heard('{"state":"undone","error":"it failed","value":null}')

    async def test_an_end_and_a_look_at_once_are_never_both_in_vain(self, store: Store) -> None:
        other = await self.second(store)
        for number in range(10):
            parent = await started(store, f"parent:{number}")
            child = await started(store, f"child:{number}")
            wait = Wait(kind="saga", name=f"child:{number}")
            heard, _ = await asyncio.gather(
                store.sagas.listen(parent, begun("w"), wait), other.sagas.write(child, move=DONE)
            )
            await store.sagas.write(parent, move=WAITING, rest=Rest())
            ready = (await state_and_job(store, f"parent:{number}"))[1] == READY
            assert ready or (heard is not None and heard.result is not None)
            await end(store, child)
            for claim in await take(store):
                await end(store, claim)

    # --- events ---

    async def test_an_event_wakes_only_who_waits_for_it(self, store: Store) -> None:
        lease = await self._reader(store)
        waits = {"one": "k:1", "other": "k:2", "any": None}
        for name, key in waits.items():
            claim = await started(store, name)
            wait = Wait(kind="event", name="paid", key=key)
            assert await store.sagas.listen(claim, begun("w"), wait) == Heard(None)
            await store.sagas.write(claim, move=WAITING, rest=Rest())
        await self._publish(store, "paid", "k:3", "shipped", "k:1")
        assert await store.sagas.hear(lease) == 2
        assert await self._woken(store, waits) == ["any"]
        await self._publish(store, "paid", "k:1")
        assert await store.sagas.hear(lease) == 1
        assert await self._woken(store, waits) == ["one", "any"]
        assert await store.sagas.hear(lease) == 0

    async def test_many_who_wait_for_one_event_are_woken_in_portions(self, store: Store) -> None:
        lease = await self._reader(store)
        names = [f"s:{number}" for number in range(5)]
        await self._waits_for(store, "other", "shipped")
        for name in names:
            await self._waits_for(store, name, "paid")
        await self._publish(store, "paid", "k:1")
        assert await store.sagas.hear(lease, portion=2) == 1
        assert await self._woken(store, names) == names[:2]
        await self._publish(store, "shipped", "k:1")
        assert [await store.sagas.hear(lease, portion=2) for _ in range(2)] == [1, 1]
        assert await self._woken(store, [*names, "other"]) == names
        assert [await store.sagas.hear(lease, portion=2) for _ in range(2)] == [1, 0]
        assert await self._woken(store, ["other"]) == ["other"]

    async def _waits_for(self, store: Store, name: str, event: str) -> None:
        claim = await started(store, name)
        assert await store.sagas.listen(claim, begun("w"), Wait(kind="event", name=event)) is not None
        await store.sagas.write(claim, move=WAITING, rest=Rest())

    async def test_an_event_since_the_saga_began_is_heard_at_once(self, store: Store) -> None:
        await self._publish(store, "paid", "k:1")
        await self.advance(store, 1)
        claim = await started(store, "a")
        wait = Wait(kind="event", name="paid", key="k:1")
        for each in (wait, Wait(kind="event", name="paid")):
            assert await store.sagas.listen(claim, begun("w"), each) == Heard(None)
        await self._publish(store, "paid", "k:1")
        await self._publish(store, "paid", "k:1")
        first = await self._heard(store, claim, "w", wait)
        second = await self._heard(store, claim, "w2", replace(wait, after=first["position"]))
        assert (first["value"]["version"], second["value"]["version"]) == (2, 3)
        any_key = await self._heard(store, claim, "w3", Wait(kind="event", name="paid"))
        assert any_key["position"] == first["position"]
        assert first["value"]["data"] == {"of": "k:1"}

    async def test_an_event_counts_from_when_the_saga_began_whatever_the_clock_says(
        self, store: Store
    ) -> None:
        """It was set back: what comes now has an earlier time than the beginning."""
        await self._publish(store, "paid", "k:1")
        lease = await self._reader(store)
        waiting = await started(store, "waiting")
        claim = await started(store, "a")
        await self.advance(store, -3600)
        await self._hears_only_the_second(store, lease, waiting, claim)

    async def test_of_a_saga_of_an_earlier_version_the_clock_says_which_events_count(
        self, store: Store
    ) -> None:
        await self._publish(store, "paid", "k:1")
        await self.advance(store, 1)
        lease, claim, waiting = (
            await self._reader(store), await started(store, "a"), await started(store, "waiting")
        )  # fmt: skip
        async with store.transaction() as tx:
            await tx.execute(f"UPDATE {self.bench.tables}saga SET event_seq = -1, event_position = 0")  # noqa: S608  as above
        await self._hears_only_the_second(store, lease, waiting, claim)

    async def _hears_only_the_second(self, store: Store, lease: Lease, waiting: Claim, claim: Claim) -> None:
        """Neither a look nor the reader finds what was published before the sagas began."""
        for wait in (Wait(kind="event", name="paid"), Wait(kind="event", name="paid", key="k:1")):
            assert await store.sagas.listen(waiting, begun(f"w/{wait.key}"), wait) == Heard(None)
        await store.sagas.write(waiting, move=WAITING, rest=Rest())
        await self._publish(store, "paid", "k:1")
        for wait in (Wait(kind="event", name="paid"), Wait(kind="event", name="paid", key="k:1")):
            heard = await store.sagas.listen(claim, begun(f"w/{wait.key}"), wait)
            assert heard is not None
            assert json.loads(heard.result or "{}")["value"]["version"] == 2
        await store.sagas.hear(lease)
        assert await self._woken(store, ["waiting"]) == ["waiting"]

    async def test_an_event_and_a_look_at_once_are_never_both_in_vain(self, store: Store) -> None:
        other = await self.second(store)
        lease = await self._reader(store)
        for number in range(10):
            claim = await started(store, f"s:{number}")
            wait = Wait(kind="event", name="paid", key=f"k:{number}")
            heard, _ = await asyncio.gather(
                store.sagas.listen(claim, begun("w"), wait), self._publish_and_hear(other, lease, number)
            )
            await store.sagas.write(claim, move=WAITING, rest=Rest())
            ready = (await state_and_job(store, f"s:{number}"))[1] == READY
            assert ready or (heard is not None and heard.result is not None)
            for each in await take(store):
                await end(store, each)

    async def test_who_lost_the_lease_wakes_nobody(self, store: Store) -> None:
        lease = await self._reader(store)
        claim = await started(store, "a")
        await store.sagas.listen(claim, begun("w"), Wait(kind="event", name="paid"))
        await store.sagas.write(claim, move=WAITING, rest=Rest())
        await self._publish(store, "paid", "k:1")
        await store.leases.release(lease)
        assert await store.sagas.hear(lease) is None
        assert (await saga(store, "a")).state is SagaState.WAITING

    async def _reader(self, store: Store) -> Lease:
        lease = await store.leases.acquire("reader", owner="w1", ttl=1000)
        assert lease is not None
        assert await store.sagas.hear(lease) == 0  # it begins at the end of the log
        return lease

    async def _publish(self, store: Store, *of: str) -> None:
        """Events of these types and keys, one after the other."""
        events = [
            NewEvent(id=new_id(), type=kind, key=key, data=f'{{"of":"{key}"}}')
            for kind, key in zip(of[::2], of[1::2], strict=True)
        ]
        await store.outbox.emit(events)
        lease = await store.leases.acquire("relay", owner="w1", ttl=1000)
        assert lease is not None
        await store.outbox.stamp(lease, [event.id for event in events])

    async def _publish_and_hear(self, store: Store, lease: Lease, number: int) -> None:
        await self._publish(store, "paid", f"k:{number}")
        await store.sagas.hear(lease)

    async def _heard(self, store: Store, claim: Claim, name: str, wait: Wait) -> Any:
        heard = await store.sagas.listen(claim, begun(name), wait)
        assert heard is not None
        assert heard.result is not None
        return json.loads(heard.result)

    async def _woken(self, store: Store, names: Iterable[str]) -> list[str]:
        return [name for name in names if (await saga(store, name)).state is SagaState.RUNNING]
