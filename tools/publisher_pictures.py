"""Make the pictures of systems/publisher/README.md: pages with seeded data, in light, in dark and on a phone."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from tools import chromium
from tools.publisher_site import Site

FOLDER = Path(__file__).resolve().parent.parent / "systems/publisher/pictures"
LIGHT: dict[str, Any] = {"color_scheme": "light", "viewport": {"width": 1280, "height": 800}}
DARK: dict[str, Any] = {**LIGHT, "color_scheme": "dark"}
PHONE: dict[str, Any] = {
    "color_scheme": "light", "viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True,
}  # fmt: skip
# A picture that is lazy is loaded when it is seen; here it is loaded now.
ALL_THERE = """Promise.all([...document.images].map((each) => {
  each.loading = "eager";
  return each.complete || new Promise((done) => (each.onload = each.onerror = done));
}))"""
# Name, address (or the title of a post on that page), and how it is looked at.
SHOTS = (
    ("calendar", "/calendar", "", LIGHT),
    ("calendar-dark", "/calendar", "", DARK),
    ("today", "/", "", LIGHT),
    ("unknown", "/posts?show=needs", "Salt lantern", LIGHT),
    ("draft", "/drafts", "Rooftop bees", LIGHT),
    ("drafts", "/drafts", "", LIGHT),
    ("automation", "/automations", "Weekday evenings", LIGHT),
    ("gallery-dark", "/galleries", "", DARK),
    ("phone-today", "/", "", PHONE),
    ("phone-calendar", "/calendar?view=month", "", PHONE),
)


async def log_in(page: Page) -> None:
    await page.goto("/login")
    await page.get_by_role("button", name="Log in at DeviantArt").click()
    await page.get_by_role("button", name="Allow as ada-arc").click()
    await page.locator("main").wait_for()


async def take(
    browser: Browser, url: str, name: str, address: str, title: str, options: dict[str, Any]
) -> None:
    context = await browser.new_context(base_url=url, locale="en-GB", timezone_id="Europe/Zurich", **options)
    page = await context.new_page()
    await log_in(page)
    await page.goto(address)
    if title:
        await page.get_by_role("link", name=title, exact=True).click()
        await page.get_by_role("heading", level=1, name=title).wait_for()
    await page.evaluate(ALL_THERE)
    await page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")
    await context.close()
    print(f"systems/publisher/pictures/{name}.png")


async def take_all(url: str, path: str) -> None:
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = await playwright.chromium.launch(executable_path=path, args=arguments)
        for name, address, title, options in SHOTS:
            await take(browser, url, name, address, title, options)
        await browser.close()


def main() -> int:
    path = chromium.find()
    if path is None:
        print(chromium.MISSING, file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    site = Site(past=150, works=False)
    try:
        asyncio.run(take_all(site.url, path))
    finally:
        site.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
