"""Emitting: in the caller's transaction, checked against what was declared, with the story it belongs to."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass

import msgspec
import pytest

from holdfast import Event, Holdfast, Job
from holdfast.kernel.context import within
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.testing import drain


@dataclass
class Order:
    id: int


class Line(msgspec.Struct):
    amount: int


class Basket(msgspec.Struct):
    lines: list[Line]


async def test_an_event_exists_if_and_only_if_the_transaction_commits(hf):
    hf.event("order.placed", Order)
    with pytest.raises(RuntimeError):
        async with hf.transaction() as tx:
            gone = await hf.emit("order.placed", Order(1), key="order:1", tx=tx)
            raise RuntimeError
    async with hf.transaction() as tx:
        kept = await hf.emit("order.placed", Order(1), key="order:1", tx=tx)
    assert await hf.outbox.get(gone.id) is None
    event = await hf.outbox.get(kept.id)
    assert (event.type, event.key, event.version, event.data, event.state) == (
        "order.placed", "order:1", 1, '{"id":1}', "waiting",
    )  # fmt: skip
    assert kept.version == 1


async def test_without_a_transaction_it_is_stored_when_emit_returns(hf):
    placed = hf.event("order.placed", Order, unheard=True)
    versions = [(await hf.emit(placed, Order(n), key="order:1")).version for n in (1, 2, 3)]
    assert versions == [1, 2, 3]
    assert (await hf.emit(placed, Order(4))).version is None


async def test_many_at_once_of_one_key_have_successive_versions(hf):
    placed = hf.event("order.placed", Order)
    emitted = await asyncio.gather(*(hf.emit(placed, Order(n), key="order:1") for n in range(20)))
    assert sorted(each.version for each in emitted) == list(range(1, 21))


async def test_data_that_does_not_fit_is_refused_and_nothing_is_stored(hf):
    placed = hf.event("order.placed", Order)
    with pytest.raises(PayloadError, match=r"order.placed: its data is not what was declared.*id"):
        await hf.emit(placed, {"id": "one"})
    with pytest.raises(PayloadError, match=r"event order.placed.data"):
        await hf.emit(placed, object())
    with pytest.raises(PayloadError, match="too large"):
        await hf.emit("order.placed", {"id": 1, "note": "x" * 260_000})
    assert await hf.outbox.find() == []


async def test_the_deepest_and_largest_data_can_be_delivered(hf):
    """What is taken at the door also fits into the envelope and into the job."""
    deep = 1
    for _ in range(31):
        deep = [deep]
    seen = []
    hf.event("order.placed")

    @hf.on("order.placed", group="g")
    async def hear(event: Event) -> None:
        seen.append(event.data)

    await hf.emit("order.placed", deep, key="'\"" * 200)
    await hf.emit("order.placed", "x" * (256 * 1024 - 8 * 1024 - 20), key="'\"" * 200)
    await drain(hf, raise_dead=True)
    assert seen[0] == deep and len(seen[1]) > 250_000
    with pytest.raises(PayloadError, match="32 levels"):
        await hf.emit("order.placed", [deep])


async def test_what_nobody_declares_and_nobody_hears_is_an_error(hf):
    hf.event("order.placed", Order)
    with pytest.raises(
        UsageError, match=r"Nobody declares the event type 'order.plcaed'.*Declared are: order.placed"
    ):
        await hf.emit("order.plcaed", Order(1))
    with pytest.raises(UsageError, match="no event type"):
        await hf.emit("order.*", Order(1))

    @hf.on("order.*", group="billing")
    async def bill(event: Event) -> None: ...

    assert await hf.emit("order.paid", {"any": "thing"})


async def test_a_type_of_another_program_is_refused(hf):
    strange = Holdfast().event("order.placed", Order)
    with pytest.raises(UsageError, match="of another Holdfast"):
        await hf.emit(strange, Order(1))


def test_a_type_is_declared_once():
    hf = Holdfast()
    hf.event("order.placed", Order)
    hf.event("order.placed", Order)  # its module is imported twice
    with pytest.raises(UsageError, match="declared twice, with data of Order and of int"):
        hf.event("order.placed", int)
    with pytest.raises(UsageError, match="cannot be read from JSON"):
        hf.event("order.lost", threading.Lock)


async def test_a_worker_does_not_start_when_a_declared_type_falls_into_nothing(hf):
    hf.event("order.placed", Order)
    hf.event("order.lost", Order, unheard=True)
    with pytest.raises(UsageError, match=r"hears order.placed\. Add a handler.*unheard=True"):
        async with hf.worker():
            pass

    @hf.on("order.placed", group="billing")
    async def bill(event: Event) -> None: ...

    async with hf.worker():
        pass


async def test_an_event_belongs_to_the_story_of_who_emits_it(hf):
    placed = hf.event("order.placed", Order, unheard=True)

    @hf.task
    async def order(job: Job) -> str:
        return (await hf.emit(placed, Order(1))).id

    with within(correlation_id="request-1", trace="00-1"):
        handle = await order.enqueue()
    [ran] = [each for each in await drain(hf) if each.id == handle.id]
    event = await hf.outbox.get(ran.result)
    assert (event.correlation_id, event.causation_id, event.trace) == ("request-1", handle.id, "00-1")
    alone = await hf.outbox.get((await hf.emit(placed, Order(2))).id)
    assert (alone.correlation_id, alone.causation_id) == (alone.id, None)


async def test_sync_code_emits_too(hf):
    placed = hf.event("order.placed", Order, unheard=True)

    def sell():
        with hf.blocking.transaction() as tx:
            inside = hf.emit_sync(placed, Order(1), key="order:1", tx=tx)
        return inside, hf.blocking.emit("order.placed", Order(2), key="order:1")

    emitted = await asyncio.to_thread(sell)
    assert [each.version for each in emitted] == [1, 2]
    with pytest.raises(UsageError, match="event loop"):
        hf.emit_sync(placed, Order(3))


async def test_a_struct_with_a_mistake_inside_is_found(hf):
    sold = hf.event("basket.sold", Basket, unheard=True)
    await hf.emit(sold, Basket([Line(1)]))
    with pytest.raises(PayloadError, match="lines"):
        await hf.emit(sold, Basket([Line("one")]))
