"""What this process counts begins anew for each test."""

from __future__ import annotations

import pytest

from holdfast.jobs.counting import count_by
from holdfast.observe.metrics import scrape
from holdfast.observe.metrics.ledger import ledger


@pytest.fixture
def counting(monkeypatch):
    ledger.forked()
    ledger.folder = None
    collectors = scrape._collectors[:]
    yield
    scrape.stop()
    count_by(None)
    ledger.forked()
    ledger.folder = None
    scrape._collectors[:] = collectors
