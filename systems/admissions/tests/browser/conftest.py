"""A Chromium, and the portal with seeded applications and a simulated Stripe behind it. An error in the console fails a test."""

from __future__ import annotations

import asyncio
import email
import email.policy
import fcntl
import os
import re
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

from tools import chromium
from tools.admissions_site import Site

PATIENCE = 20_000  # ms
PASSWORD = "correct horse battery"
expect.set_options(timeout=PATIENCE)


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
def portal_site(chromium_path):
    started = Site(many=30)
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


async def log_in(page, mail):
    await page.goto("/login")
    await page.locator("#field-mail").fill(mail)
    await page.locator("#field-password").fill(PASSWORD)
    await page.locator("main button.main").click()
    await page.locator(".menu").wait_for()


@pytest.fixture(scope="session")
def cookies():
    """By mail address: one login for all tests that need no own."""
    return {}


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(chromium_open, one_at_a_time, portal_site, cookies):
    """`async with open_page("anh@example.org", phone=True) as page`: this person has logged in; None: nobody."""

    @asynccontextmanager
    async def opened(who="anh@example.org", *, allowed=(), phone=False, own_login=False, **options):
        if phone:
            options |= {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
        if who in cookies and not own_login:
            options["storage_state"] = cookies[who]
        options = {"locale": "en-GB"} | options
        context = await chromium_open.new_context(base_url=portal_site.url, **options)
        context.set_default_timeout(PATIENCE)
        page, heard = await context.new_page(), []
        if who is not None and (own_login or who not in cookies):
            await log_in(page, who)
            if not own_login:
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


@pytest.fixture
def mail_to(portal_site):
    """`await mail_to("x@example.org", "Confirm")`: the text of the newest mail to this address with one of these in its subject."""

    def find(address, subjects):
        files = sorted(portal_site.mails.rglob("*.eml"), key=lambda each: each.stat().st_mtime, reverse=True)
        for file in files:
            mail = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
            if address in str(mail["to"]) and any(each in str(mail["subject"]) for each in subjects):
                return mail.get_content()
        return None

    async def waited(address, *subjects):
        for _ in range(400):
            if (found := find(address, subjects)) is not None:
                return found
            await asyncio.sleep(0.05)
        raise AssertionError(f"no mail to {address} with {subjects!r}")

    return waited


@pytest.fixture
def link_in():
    return lambda text: re.search(r"https?://[^/\s]+(/\S+)", text)[1]
