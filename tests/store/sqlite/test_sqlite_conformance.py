"""The SQLite store keeps every promise of docs/store.md."""

from __future__ import annotations

import sys

import pytest

from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.conformance import SqliteHarness, StoreConformance
from holdfast.testing.conformance.machine import MachineConformance


class TestSqlite(StoreConformance):
    @pytest.fixture
    def harness(self, tmp_path):
        return SqliteHarness(tmp_path)


class TestSqliteAtRandom(MachineConformance):
    examples = 80

    @pytest.fixture
    def harness(self, tmp_path):
        return SqliteHarness(tmp_path)


async def test_a_commit_is_never_told_as_a_failure(tmp_path):
    """The thread ends the session while the caller still looks at it: whatever the scheduler does, one answer counts."""
    store = SqliteStore(tmp_path / "jobs.db", synchronous="OFF")
    await store.open()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3000):
            async with store.transaction():
                pass
    finally:
        sys.setswitchinterval(interval)
        await store.close()
