"""Make the pictures of systems/admissions/README.md: pages with seeded data, in light, in dark and on a phone."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from tools import chromium
from tools.admissions_site import Site

FOLDER = Path(__file__).resolve().parent.parent / "systems/admissions/pictures"
LIGHT: dict[str, Any] = {"color_scheme": "light", "viewport": {"width": 1280, "height": 800}}
DARK: dict[str, Any] = {**LIGHT, "color_scheme": "dark"}
PHONE: dict[str, Any] = {
    "color_scheme": "light", "viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True,
}  # fmt: skip
ANH, ADA, DUNG = "anh@example.org", "ada@uni.example", "dung@uni.example"
# Name, who looks, address, then what is clicked (words of a link), and how it is looked at.
SHOTS = (
    ("programmes", ANH, "/", (), LIGHT),
    ("form", ANH, "/applications", ("Continue the form", "Documents"), LIGHT),
    ("status", ANH, "/applications", ("Informatics, MSc",), LIGHT),
    ("status-dark", ANH, "/applications", ("Informatics, MSc",), DARK),
    ("pay", ANH, "/applications", ("Pay USD 75.00",), LIGHT),
    ("phone-status", ANH, "/applications", ("Informatics, MSc",), PHONE),
    ("phone-pay", ANH, "/applications", ("Pay USD 75.00",), PHONE),
    ("queue", ADA, "/desk?state=completed&decision=drafted", (), LIGHT),
    ("case", ADA, "/desk?state=completed&decision=drafted", ("",), LIGHT),
    ("decisions", DUNG, "/desk/decisions", (), LIGHT),
    ("stopped", ADA, "/desk/stopped", (), LIGHT),
    ("figures-dark", ADA, "/desk/figures", (), DARK),
)


async def log_in(page: Page, mail: str) -> None:
    await page.goto("/login")
    await page.locator("#field-mail").fill(mail)
    await page.locator("#field-password").fill("correct horse battery")
    await page.locator("main button.main").click()
    await page.locator(".menu").wait_for()


async def take(
    browser: Browser, url: str, shot: tuple[str, str, str, tuple[str, ...], dict[str, Any]]
) -> None:
    name, mail, address, links, options = shot
    context = await browser.new_context(base_url=url, locale="en-GB", reduced_motion="reduce", **options)
    context.set_default_timeout(60_000)
    page = await context.new_page()
    await log_in(page, mail)
    await page.goto(address)
    for words in links:
        found = page.get_by_role("link", name=words) if words else page.locator("tbody td:first-child a")
        await found.first.click()
        await page.wait_for_load_state()
    await page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")
    await context.close()
    print(f"systems/admissions/pictures/{name}.png")


async def take_all(url: str, path: str) -> None:
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = await playwright.chromium.launch(executable_path=path, args=arguments)
        for shot in SHOTS:
            await take(browser, url, shot)
        await browser.close()


def main() -> int:
    path = chromium.find()
    if path is None:
        print(chromium.MISSING, file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    site = Site(many=200, works=False)
    try:
        asyncio.run(take_all(site.url, path))
    finally:
        site.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
