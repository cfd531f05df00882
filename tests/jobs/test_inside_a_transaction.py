"""What forgets `tx=` inside a transaction of its own task is refused, on both stores; so is a transaction in a transaction."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Holdfast, Job
from holdfast.errors import UsageError
from holdfast.store.states import State
from holdfast.testing import drain

REFUSED = r"Pass tx=tx when it takes that \(with a session, tx=session\), else do it after the block"
NESTED = r"tx\.savepoint\(\)"


@pytest.fixture
def shop(hf):
    hf.event("order.placed", unheard=True)

    @hf.task(name="greet")
    async def greet(name: str) -> None:
        pass

    @hf.saga("trip")
    async def trip(saga) -> None:
        pass

    return greet, trip


async def test_what_forgets_it_is_refused_and_nothing_is_stored(hf, shop):
    greet, trip = shop
    async with hf.transaction() as tx:
        for way in (
            lambda: greet.enqueue("ada"),
            lambda: greet.options(delay=5).enqueue("ada"),
            lambda: greet.enqueue_many([{"name": "ada"}, {"name": "bob"}]),
            lambda: hf.emit("order.placed", {}, key="a"),
            lambda: hf.emit("order.placed", {}, key="a", expect=0),
            lambda: trip.start(),
        ):
            with pytest.raises(UsageError, match=REFUSED):
                await way()
        await greet.options(tx=tx).enqueue("bob")
    assert [each.args for each in await hf.store.jobs.find()] == ['{"name":"bob"}']
    await greet.enqueue("eve")
    assert len(await hf.store.jobs.find()) == 2
    assert await hf.outbox.find() == []


async def test_a_transaction_in_a_transaction_is_refused(hf, shop):
    async with hf.transaction() as tx:
        with pytest.raises(UsageError, match=NESTED):
            async with hf.transaction():
                pass
        assert await tx.fetch("SELECT 1") == [(1,)]
    async with hf.transaction():
        pass


async def test_after_a_block_that_failed_all_is_free(hf, shop):
    greet, _ = shop
    for _ in range(2):
        with pytest.raises(RuntimeError):
            async with hf.transaction():
                raise RuntimeError
    await greet.enqueue("ada")


async def test_another_task_is_not_inside(hf, shop):
    """On SQLite it waits for the lock, so it is not waited for here."""
    greet, _ = shop
    async with hf.transaction() as tx:
        other = asyncio.create_task(greet.enqueue("ada"))
        await asyncio.sleep(0)
        await greet.options(tx=tx).enqueue("bob")
    await other
    assert len(await hf.store.jobs.find()) == 2


async def test_another_database_is_not_inside(hf, shop, tmp_path):
    async with Holdfast(f"sqlite:///{tmp_path / 'other.db'}") as other:

        @other.task
        async def call() -> None: ...

        async with hf.transaction():
            await call.enqueue()
            async with other.transaction() as tx:
                await tx.fetch("SELECT 1")
        assert len(await other.store.jobs.find()) == 1


async def test_in_sync_code_too(hf, shop):
    greet, _ = shop

    def work():
        with hf.blocking.transaction() as tx:
            with pytest.raises(UsageError, match=REFUSED):
                greet.enqueue_sync("ada")
            with pytest.raises(UsageError, match=REFUSED):
                hf.blocking.emit("order.placed", {})
            with pytest.raises(UsageError, match=NESTED):
                hf.blocking.transaction().__enter__()
            greet.options(tx=tx).enqueue_sync("bob")
        greet.enqueue_sync("eve")

    await asyncio.to_thread(work)
    assert len(await hf.store.jobs.find()) == 2


async def test_in_a_job_and_in_a_handler(hf, shop):
    greet, _ = shop
    refused = []

    @hf.task
    async def ship(job: Job) -> None:
        async with job.commit() as tx:
            for way in (lambda: greet.enqueue("ada"), lambda: hf.transaction().__aenter__()):
                with pytest.raises(UsageError) as error:
                    await way()
                refused.append(str(error.value))
            await greet.options(tx=tx).enqueue("bob")

    @hf.on("order.placed", group="mail")
    async def hear(event, tx) -> None:
        with pytest.raises(UsageError, match=REFUSED) as error:
            await greet.enqueue("ada")
        refused.append(str(error.value))
        await greet.options(tx=tx).enqueue("bob")

    await ship.enqueue()
    await hf.emit("order.placed", {})
    found = await drain(hf)
    assert len(refused) == 3, refused
    assert {each.state for each in found} == {State.SUCCEEDED}
    assert [each.args for each in await hf.store.jobs.find(task="greet")] == ['{"name":"bob"}'] * 2
