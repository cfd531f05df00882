"""Stores on fresh databases."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from holdfast.store.postgres.store import PostgresStore


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
