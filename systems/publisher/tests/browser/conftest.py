"""A Chromium, and the publisher with seeded artists and a simulated DeviantArt behind it. An error in the console fails a test."""

from __future__ import annotations

import fcntl
import os
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright

from tools import chromium
from tools.publisher_site import Site

PATIENCE = 15_000  # ms
ZONE = "Europe/Zurich"


@pytest.fixture(scope="session")
def chromium_path():
    found = chromium.find()
    if found is None and os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(chromium.MISSING)
    if found is None:
        pytest.skip(chromium.MISSING)
    return found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium_open(chromium_path):
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its sandbox to root
        opened = await playwright.chromium.launch(executable_path=chromium_path, args=arguments)
        yield opened
        await opened.close()


@pytest.fixture(scope="session")
def site(chromium_path):
    started = Site(past=30)
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


async def log_in(page, name):
    """By the page of the (simulated) DeviantArt, as people do it."""
    await page.goto("/login")
    await page.get_by_role("button", name="Log in at DeviantArt").click()
    await page.get_by_role("button", name=f"Allow as {name}").click()
    await page.get_by_role("navigation", name="Main", exact=True).or_(page.locator(".dock")).first.wait_for()


@pytest.fixture(scope="session")
def cookies():
    """By artist: one login for all tests that need no own."""
    return {}


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(chromium_open, one_at_a_time, site, cookies):
    """`async with open_page("ada-arc", phone=True) as page`: this artist has logged in."""

    @asynccontextmanager
    async def opened(who="ada-arc", *, allowed=(), phone=False, **options):
        if phone:
            options |= {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
        if who in cookies:
            options["storage_state"] = cookies[who]
        context = await chromium_open.new_context(
            base_url=site.url, timezone_id=ZONE, locale="en-GB", **options
        )
        context.set_default_timeout(PATIENCE)
        page, heard = await context.new_page(), []
        if who is not None and who not in cookies:
            await log_in(page, who)
            cookies[who] = await context.storage_state()
        page.on(
            "console", lambda said: heard.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: heard.append(f"error: {error}"))
        await page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => "
            "console.error('violation', event.violatedDirective, event.blockedURI, event.sample))"
        )
        yield page
        await context.close()
        unexpected = [each for each in heard if not any(word in each for word in allowed)]
        assert not unexpected, unexpected

    return opened
