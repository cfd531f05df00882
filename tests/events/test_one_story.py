"""What is stored in one transaction has one story, on both stores."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Holdfast, within
from holdfast.errors import UsageError
from holdfast.testing import drain


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


async def stories(hf):
    """Of all that is stored."""
    jobs = {job.correlation_id for job in await hf.store.jobs.find()}
    return jobs | {event.correlation_id for event in await hf.outbox.find()}


async def test_a_job_an_event_and_a_saga_of_one_transaction(hf, shop):
    greet, trip = shop
    async with hf.transaction() as tx:
        first = await greet.options(tx=tx).enqueue("ada")
        await hf.emit("order.placed", {}, tx=tx)
        await trip.start(tx=tx)
        await greet.options(tx=tx).enqueue_many([{"name": "bob"}, {"name": "eve"}])
    assert await stories(hf) == {first.id}
    assert len(await hf.store.jobs.find(correlation_id=first.id)) == 4


async def test_an_event_may_be_the_first(hf, shop):
    greet, _ = shop
    async with hf.transaction() as tx:
        first = await hf.emit("order.placed", {}, tx=tx)
        await greet.options(tx=tx).enqueue("ada")
    assert await stories(hf) == {first.id}


async def test_each_transaction_has_its_own_and_without_one_there_is_none(hf, shop):
    greet, _ = shop
    for _ in range(2):
        async with hf.transaction() as tx:
            await greet.options(tx=tx).enqueue("ada")
            await greet.options(tx=tx).enqueue("bob")
    await greet.enqueue("eve")
    assert len(await stories(hf)) == 3
    assert None in await stories(hf)


async def test_what_is_given_counts(hf, shop):
    greet, _ = shop
    with within(correlation_id="request-1"):
        async with hf.transaction() as tx:
            await greet.options(tx=tx).enqueue("ada")
            await hf.emit("order.placed", {}, tx=tx)
    assert await stories(hf) == {"request-1"}
    async with hf.transaction() as tx:
        await greet.options(tx=tx, correlation_id="request-2").enqueue("ada")
        await hf.emit("order.placed", {}, tx=tx)
    assert await stories(hf) == {"request-1", "request-2"}


async def test_in_a_job_it_is_the_jobs(hf, shop):
    greet, _ = shop

    @hf.task
    async def ship() -> None:
        async with hf.transaction() as tx:
            await greet.options(tx=tx).enqueue("ada")
            await hf.emit("order.placed", {}, tx=tx)

    handle = await ship.enqueue()
    await drain(hf)
    assert await stories(hf) - {None} == {handle.id}


async def test_in_sync_code(hf, shop):
    greet, _ = shop

    def work():
        with hf.blocking.transaction() as tx:
            greet.options(tx=tx).enqueue_sync("ada")
            hf.blocking.emit("order.placed", {}, tx=tx)

    await asyncio.to_thread(work)
    assert len(await stories(hf)) == 1
    assert None not in await stories(hf)


def test_a_story_has_no_other_parts():
    with pytest.raises(UsageError, match=r"correlation_id.*not corelation_id"), within(corelation_id="x"):
        pass


async def test_on_a_session_of_the_callers_own(postgres_url):
    alchemy = pytest.importorskip("sqlalchemy.ext.asyncio")
    engine = alchemy.create_async_engine(postgres_url.replace("postgresql://", "postgresql+asyncpg://"))
    async with Holdfast(postgres_url) as hf:
        hf.event("order.placed", unheard=True)

        @hf.task
        async def greet(name: str) -> None: ...

        async with alchemy.AsyncSession(engine) as session:
            for _ in range(2):
                async with session.begin():
                    await greet.options(tx=session).enqueue("ada")
                    await hf.emit("order.placed", {}, tx=session)
        async with engine.begin() as connection:
            await greet.options(tx=connection).enqueue("ada")
            await hf.emit("order.placed", {}, tx=connection)
        assert len(await stories(hf)) == 3
    await engine.dispose()
