"""A Chromium, one page at a time, which fails a test on any error in its console; and the sample app on a free port."""

from __future__ import annotations

import fcntl
import os
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright
from sample_server import SampleServer

from tools import chromium

PATIENCE = 10_000  # ms


@pytest.fixture(scope="session")
def chromium_path():
    found = chromium.find()
    if found is None and os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(chromium.MISSING)
    if found is None:
        pytest.skip(chromium.MISSING)
    return found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium_path):
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its sandbox to root
        opened = await playwright.chromium.launch(executable_path=chromium_path, args=arguments)
        yield opened
        await opened.close()


@pytest.fixture(scope="session")
def server():
    started = SampleServer(SAMPLE_FOLLOW="0.2", SAMPLE_ZONE="UTC")
    yield started
    started.stop()


@pytest.fixture
def one_at_a_time(tmp_path_factory, worker_id):
    """The processes of a run share one machine: only one of them has a page open."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder if worker_id == "master" else folder.parent
    with (shared / "chromium.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser, one_at_a_time, server):
    """`async with open_page(javascript=False) as page`: its address is that of the sample app. Console errors fail the test."""

    @asynccontextmanager
    async def opened(*, base=None, allowed=(), phone=False, **options):
        if phone:
            options |= {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
        context = await browser.new_context(base_url=base or server.url, **options)
        context.set_default_timeout(PATIENCE)
        page, heard = await context.new_page(), []
        page.on(
            "console", lambda said: heard.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: heard.append(f"error: {error}"))
        page.on("dialog", lambda dialog: heard.append(f"dialog: {dialog.message}"))
        await page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => "
            "console.error('violation', event.violatedDirective, event.blockedURI, event.sample))"
        )
        yield page
        await context.close()
        unexpected = [each for each in heard if not any(word in each for word in allowed)]
        assert not unexpected, unexpected

    return opened
