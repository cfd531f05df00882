"""The SQLite store keeps its promises about events."""

from __future__ import annotations

import pytest

from holdfast.testing.conformance import SqliteHarness
from holdfast.testing.conformance.inbox import InboxConformance
from holdfast.testing.conformance.outbox import OutboxConformance
from holdfast.testing.conformance.relaying import RelayingConformance
from holdfast.testing.conformance.strays import StraysConformance


class TestSqliteEvents(OutboxConformance, RelayingConformance, InboxConformance, StraysConformance):
    @pytest.fixture
    def harness(self, tmp_path):
        return SqliteHarness(tmp_path)
