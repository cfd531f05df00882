"""The app behind visitors who keep cookies, without a server between."""

from __future__ import annotations

import sys
from pathlib import Path

import admissions_kit as kit
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `import admissions_visitors` works here

from admissions.core import settings
from admissions.web.app import app, begin
from admissions_visitors import Visitor


@pytest.fixture
async def site(any_portal):
    """The app as it is once it has begun, on both stores."""
    await begin()
    return app


@pytest.fixture
async def quick_site(portal):
    """The app on SQLite alone: for what no store decides."""
    await begin()
    return app


@pytest.fixture
async def term(any_portal):
    return await kit.term()


@pytest.fixture
async def anh(site):
    async with Visitor(site) as opened:
        yield await opened.log_in("anh@example.org")


@pytest.fixture
async def binh(site):
    """Somebody else who applies."""
    async with Visitor(site) as opened:
        yield await opened.log_in("binh@example.org")


@pytest.fixture
async def officer(site):
    async with Visitor(site) as opened:
        yield await opened.log_in("ada@uni.example", "officer")


@pytest.fixture
def kept(any_portal):
    """How many files have come since: what was refused is gone at once, before any sweep."""
    before = files()
    return lambda: len(files() - before)


def files():
    return {each for each in Path(settings.files).rglob("*") if each.is_file()}
