"""Every page: without an error, without a violation of its policy, for screen readers, on phones, in the dark, without scripts."""

from __future__ import annotations

import io

import pytest
from axe_playwright_python.async_playwright import Axe
from PIL import Image

from tests.browser.xss import CORPUS

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]
PAGES = [
    "/", "/calendar", "/calendar?view=month", "/calendar?view=week", "/calendar?view=list", "/posts", "/posts?show=needs", "/drafts",
    "/review", "/upload", "/automations", "/sales", "/templates", "/files", "/keys", "/settings", "/galleries", "/browse", "/browse?view=topic", "/browse?view=daily", "/browse?tag=ink", "/welcome", "/more", "/login",
]  # fmt: skip


async def every_page(page):
    """The addresses of all pages, with a post in each state, a draft, and an automation."""
    found = list(PAGES)
    for show in ("needs", "published", "scheduled", "cancelled"):
        await page.goto(f"/posts?show={show}")
        links = await page.locator("tbody a[href^='/posts/']").evaluate_all(
            "(all) => all.map((each) => each.pathname)"
        )
        found += links[:2] if show == "needs" else links[:1]
    for path, links in (
        ("/drafts", "a[href^='/posts/']"),
        ("/review", "a[href^='/posts/']"),
        ("/automations", "a[href^='/automations/']"),
    ):
        await page.goto(path)
        found.append(await page.locator(links).first.get_attribute("href"))
    found.append(f"{found[-1]}?trial=1")
    found.append(next(each for each in found if each.startswith("/posts/")) + "?edit=1")
    return found


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
async def test_each_page_is_clean_for_screen_readers(open_page, look):
    options = {"phone": True} if look == "phone" else {"color_scheme": look}
    async with open_page(reduced_motion="reduce", **options) as page:
        for path in await every_page(page):
            answer = await page.goto(path)
            assert answer.status == 200, path
            found = await Axe().run(page, options={"resultTypes": ["violations"]})
            wrong = [
                (each["id"], each["nodes"][0]["html"][:300])
                for each in found.response["violations"]
                if each["impact"] in ("serious", "critical")
            ]
            assert not wrong, (path, wrong)


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
async def test_no_page_scrolls_sideways(open_page, width):
    async with open_page(viewport={"width": width, "height": 800}) as page:
        for path in await every_page(page):
            await page.goto(path)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, path


async def test_a_phone_has_targets_for_a_finger(open_page):
    async with open_page(phone=True) as page:
        for path in ("/", "/calendar", "/drafts", "/upload"):
            await page.goto(path)
            small = await page.evaluate(
                "[...document.querySelectorAll('.dock a, .strip a, .button:not(.small, .quiet), .switch button')]"
                ".filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 42).map((each) => each.outerHTML)"
            )
            assert not small, path


async def test_the_theme_is_chosen_and_kept(open_page):
    async with open_page() as page:
        await page.goto("/settings")
        await page.get_by_label("Menu of ada-arc").click()
        await page.get_by_role("button", name="Dark").click()
        await page.locator("html[data-theme=dark]").wait_for()
        await page.goto("/calendar")
        assert await page.locator("html").get_attribute("data-theme") == "dark"
        background = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert background == "rgb(14, 16, 20)"


async def test_every_page_without_scripts(open_page):
    async with open_page(java_script_enabled=False) as page:
        for path in PAGES:
            answer = await page.goto(path)
            assert answer.status == 200, path
            assert await page.locator("h1").count() == 1, path
            assert await page.locator(".only-js:visible").count() == 0, path


async def test_pictures_are_of_their_artist_alone(open_page):
    async with open_page() as page:
        await page.goto("/drafts")
        address = await page.locator("tbody img").first.get_attribute("src")
        answer = await page.request.get(address)
        assert answer.status == 200
        assert answer.headers["cache-control"].startswith("private")
    async with open_page("bo-linnet", allowed=["404"]) as page:
        assert (await page.request.get(address)).status == 404


async def test_somebody_else_sees_nothing_of_a_post(open_page):
    async with open_page() as page:
        await page.goto("/drafts")
        address = await page.locator("tbody a").first.get_attribute("href")
    async with open_page("bo-linnet", allowed=["404"]) as page:
        answer = await page.goto(address)
        assert answer.status == 404
        assert "There is no such post." in await page.locator("main").inner_text()


async def test_what_an_artist_writes_is_text_on_every_page(open_page):
    """Titles, texts, tags and names of strangers' making: nothing of it runs, and nothing breaks the policy."""
    async with open_page("dara-moth", allowed=["422"]) as page:
        seen = []
        page.on("dialog", lambda dialog: seen.append(dialog.message))
        await page.goto("/upload")
        out = io.BytesIO()
        Image.new("RGB", (8, 8), "red").save(out, "PNG")
        name = "<img src=x onerror=alert(1)>.png"
        await page.locator("input[type=file]").set_input_files(
            {"name": name, "mimeType": "image/png", "buffer": out.getvalue()}
        )
        await page.locator("[data-finished]").click()
        address = await page.locator("tbody a").first.get_attribute("href")
        for evil in CORPUS:
            await page.goto(address)
            await page.locator("#field-title").fill(evil[:200])
            await page.locator("#field-description").fill(evil)
            await page.locator("#field-tags").fill(evil)
            await page.get_by_role("button", name="Save").click()
            await page.locator(".notice").wait_for()
            for path in ("/drafts", "/files"):
                await page.goto(path)
                assert await page.locator("img[src=x], svg[onload], main script").count() == 0, (path, evil)
        assert not seen
