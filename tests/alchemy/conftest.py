"""A store with the tables of the models, on both databases."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from models import Base


@pytest.fixture
async def shop(hf):
    """An open Holdfast with the models' tables; `hf.greet` is a task."""

    @hf.task(name="greet")
    async def greet(name: str) -> None: ...

    hf.greet = greet
    hf.event("order.placed", dict, unheard=True)
    async with hf.sqlalchemy().begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield hf
    await hf.sqlalchemy().dispose()
    async with hf.sqlalchemy().begin() as connection:
        await connection.run_sync(Base.metadata.drop_all)


@pytest.fixture
def names():
    """The names of all orders."""

    async def names(hf):
        async with hf.session() as session:
            return list(await session.scalars(sa.text("SELECT name FROM orders ORDER BY name")))

    return names


@pytest.fixture
def queued():
    """How many jobs are queued."""

    async def queued(hf):
        return sum(count.number for count in await hf.queues.count())

    return queued
