"""Make the pictures of docs/pages.md: the sample app of the browser tests, in light, in dark and on a phone."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from playwright.async_api import async_playwright

from tools import chromium
from tools.local_server import LocalServer

ROOT = Path(__file__).resolve().parent.parent
SHOTS = (
    ("light", "/sheet", {"color_scheme": "light", "viewport": {"width": 1280, "height": 800}}),
    ("dark", "/", {"color_scheme": "dark", "viewport": {"width": 1280, "height": 800}}),
    ("phone", "/", {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}, "is_mobile": True}),
)


class _Sample(LocalServer):
    name = "pictures"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        serve = [sys.executable, "-m", "uvicorn", "sample.app:app", "--port", str(self.port)]
        return ["env", "SAMPLE_FIXED=1", "SAMPLE_ZONE=UTC", *serve, "--app-dir", str(ROOT / "tests/browser")]


async def take(url: str, path: str) -> None:
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = await playwright.chromium.launch(executable_path=path, args=arguments)
        for name, address, options in SHOTS:
            context = await browser.new_context(base_url=url, **options)
            page = await context.new_page()
            await page.goto(address)
            whole = address == "/sheet"
            await page.screenshot(
                path=ROOT / f"docs/pages-{name}.png", full_page=whole, animations="disabled"
            )
            print(f"docs/pages-{name}.png")
        await browser.close()


def main() -> int:
    path = chromium.find()
    if path is None:
        print(chromium.MISSING, file=sys.stderr)
        return 1
    server = _Sample()
    try:
        asyncio.run(take(server.url, path))
    finally:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
