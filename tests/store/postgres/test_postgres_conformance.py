"""The PostgreSQL store keeps every promise of docs/store.md, on the newest server and on an older one."""

from __future__ import annotations

import pytest
from harness import PostgresHarness

from holdfast.testing.conformance import StoreConformance
from holdfast.testing.conformance.machine import MachineConformance


class TestPostgres(StoreConformance):
    @pytest.fixture
    def harness(self, databases):
        return PostgresHarness(databases)


class TestPostgresAtRandom(MachineConformance):
    examples = 20

    @pytest.fixture
    def harness(self, databases):
        return PostgresHarness(databases)


class TestOlderPostgres(StoreConformance):
    @pytest.fixture
    def harness(self, older_databases):
        return PostgresHarness(older_databases)
