"""The app behind a browser that keeps cookies, without a server between."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `import visitors` works here

from publisher.core import settings
from publisher.outside.deviantart import DeviantArt
from publisher.web.app import app
from visitors import Browser


@pytest.fixture
async def site(any_hf):
    """The app, on both stores; its client of DeviantArt is open."""
    async with DeviantArt.open(settings.deviantart_url, settings.call_timeout_s) as opened:
        app.state.site = opened
        yield app


@pytest.fixture
async def browser(site):
    async with Browser(site) as opened:
        yield opened


@pytest.fixture
async def ada_in(browser):
    """A browser in which ada-arc has logged in, by DeviantArt's own page."""
    await browser.log_in("ada-arc")
    return browser


@pytest.fixture
async def bob_in(site):
    async with Browser(site) as opened:
        await opened.log_in("bo-linnet")
        yield opened
