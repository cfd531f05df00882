"""A program with its store, on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

from holdfast import Holdfast


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def hf(url):
    async with Holdfast(url) as opened:
        yield opened
