"""A fleet of real processes on either store."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from faultkit import Fleet

from holdfast import Holdfast
from tools.wire import Wire


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def fleet(url, tmp_path):
    async with Holdfast(url) as hf:
        fleet = Fleet(hf, url, tmp_path)
        await fleet.prepare()
        yield fleet
        fleet.end_all()


@pytest.fixture
async def wire(postgres_url):
    """Another way to the fleet's database, which the test can cut. Use it with `on_postgres`."""
    async with Wire(postgres_url).open() as wire:
        yield wire
