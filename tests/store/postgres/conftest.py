"""Stores on fresh databases."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from holdfast.store.blocks import Blocks
from holdfast.store.postgres.store import PostgresStore


@pytest.fixture(autouse=True)
def one_task_plays_several_callers(monkeypatch):
    """So it holds several transactions of a store at once, and writes beside them. tests/jobs/test_inside_a_transaction.py is about that."""
    monkeypatch.setattr(Blocks, "check_free", lambda _: None)


@pytest.fixture
async def store(postgres_url):
    store = PostgresStore(postgres_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def other(postgres_url):
    """Another client of the same database, such as another process would have."""
    store = PostgresStore(postgres_url)
    await store.open()
    yield store
    await store.close()
