"""Pages without scripts, by keyboard, on a phone, for screen readers, below a prefix, and under attack."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest
from axe_playwright_python.async_playwright import Axe
from sample_server import SampleServer
from xss import CORPUS

pytestmark = pytest.mark.asyncio(loop_scope="session")
PAGES = ["/", "/sheet", "/jobs", "/form", "/empty", "/month"]


# --- without scripts ---


async def test_a_page_works_without_scripts(open_page):
    async with open_page(java_script_enabled=False, allowed=["status of 422"]) as page:
        await page.goto("/form?tab=1")
        await page.get_by_label("Name").fill("12")
        await page.get_by_role("button", name="Add the name").click()
        assert await page.get_by_text("12 is a number. Write a name.").count() == 2, (
            "above, and beside the field"
        )
        assert await page.get_by_label("Name").input_value() == "12"
        await page.get_by_label("Name").fill("Grete & <b>")
        await page.get_by_role("button", name="Add the name").click()
        assert page.url.endswith("/form?tab=1")
        assert await page.locator(".toast").inner_text() == "Grete & <b> is added"
        await page.reload()
        assert await page.locator(".toast").count() == 0, "it is told once"


async def test_tables_and_filters_without_scripts(open_page):
    async with open_page(java_script_enabled=False) as page:
        await page.goto("/jobs")
        await page.get_by_role("link", name="Older").click()
        await page.get_by_role("link", name="Older").click()
        assert await page.get_by_text("41 to 55 of 55").is_visible()
        await page.get_by_role("link", name="Newer").click()
        assert await page.get_by_text("21 to 40 of 55").is_visible()
        await page.locator("#q").fill("9")
        await page.get_by_role("button", name="Filter").click()
        assert await page.get_by_text("1 to 1 of 55").is_visible()


async def test_a_dialog_and_the_theme_without_scripts(open_page):
    async with open_page(java_script_enabled=False) as page:
        await page.goto("/")
        dialog = page.locator("#discard")
        assert not await dialog.is_visible()
        await page.get_by_role("button", name="Discard 2 names").click()
        assert await dialog.is_visible()
        await page.get_by_role("button", name="Keep them").click()
        assert not await dialog.is_visible()
        await page.get_by_role("button", name="Dark").click()
        assert await page.locator("html").get_attribute("data-theme") == "dark"
        await page.get_by_role("button", name="As the system").click()
        assert await page.locator("html").get_attribute("data-theme") is None


# --- by keyboard ---


async def test_a_dialog_by_keyboard(open_page):
    async with open_page() as page:
        await page.goto("/")
        opener = page.get_by_role("button", name="Discard 2 names").first
        await opener.focus()
        await page.keyboard.press("Enter")
        active = "document.activeElement.id || document.activeElement.textContent.trim()"
        assert await page.evaluate(active) == "field-reason", (
            "the first choice has the focus, never the action"
        )
        seen = set()
        for _ in range(8):
            await page.keyboard.press("Tab")
            seen.add(await page.evaluate("Boolean(document.activeElement.closest('dialog')) || document.activeElement === document.body"))  # fmt: skip
        assert seen == {True}, "Tab stays in the dialog"
        await page.keyboard.press("Escape")
        assert not await page.locator("#discard").is_visible()
        assert await opener.evaluate("opener => opener === document.activeElement"), (
            "back where it was opened"
        )


async def test_hotkeys_and_the_first_link(open_page):
    async with open_page() as page:
        await page.goto("/form")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "To the content"
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.id") == "main"
        await page.keyboard.press("/")
        assert await page.evaluate("document.activeElement.id") == "search"
        await page.keyboard.type("/a")
        assert await page.locator("#search").input_value() == "/a", "in a field it is a letter"


async def test_a_form_by_keyboard(open_page):
    async with open_page(allowed=["status of 422"]) as page:
        await page.goto("/form")
        await page.get_by_label("Name").focus()
        await page.keyboard.type("77")
        await page.keyboard.press("Enter")
        await page.locator("#error-name").wait_for()
        assert await page.evaluate("document.activeElement.id") == "field-name", (
            "the wrong field has the focus"
        )
        described = await page.evaluate("document.getElementById(document.activeElement.getAttribute('aria-describedby')).textContent.trim()")  # fmt: skip
        assert described == "77 is a number. Write a name."
        await page.keyboard.press("Control+a")
        await page.keyboard.type("Noor")
        await page.keyboard.press("Enter")
        await page.get_by_text("Noor is added").wait_for()
        assert await page.get_by_label("Name").input_value() == ""
        assert await page.locator("#people").get_by_text("Noor").count() == 1


# --- screen readers, phones, print ---


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
async def test_axe_has_no_serious_finding(open_page, look):
    options = {"phone": True} if look == "phone" else {"color_scheme": look}
    async with open_page(reduced_motion="reduce", **options) as page:
        for path in PAGES:
            await page.goto(path)
            if path == "/":
                await page.get_by_role("button", name="Discard 2 names").first.click()
            found = await Axe().run(page, options={"resultTypes": ["violations"]})
            serious = [
                each for each in found.response["violations"] if each["impact"] in ("serious", "critical")
            ]
            assert not serious, (path, [(each["id"], each["nodes"][0]["html"]) for each in serious])


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
async def test_no_page_scrolls_sideways(open_page, width):
    async with open_page(viewport={"width": width, "height": 800}) as page:
        for path in PAGES:
            await page.goto(path)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, path


async def test_a_phone_has_targets_for_a_finger(open_page):
    async with open_page(phone=True) as page:
        await page.goto("/form")
        small = await page.evaluate(
            "[...document.querySelectorAll('button:not(.copy), .rail nav > ul a, summary, input:not([type=hidden])')]"
            ".filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 42).map((each) => each.outerHTML)"
        )
        assert not small


# --- headers and prefixes ---


@pytest.mark.parametrize("host", ["mounted", "hosted"])
async def test_the_policy_holds_where_the_page_is_mounted(open_page, host):
    """Below a prefix, and in a host with a policy of its own."""
    mounted = SampleServer(host, SAMPLE_FOLLOW="0.2")
    try:
        async with open_page(base=mounted.url) as page:
            await page.goto("/admin/deeper/form")
            assert await page.locator("html").get_attribute("data-js") == "", "the modules are found"
            await page.get_by_role("link", name="Jobs").click()
            await page.wait_for_url("**/admin/jobs")
            await page.get_by_role("button", name="Dark").click()
            await page.locator("html[data-theme=dark]").wait_for()
            assert page.url.endswith("/admin/jobs")
    finally:
        mounted.stop()


async def test_what_the_policy_forbids_is_noticed_here(open_page):
    """Else a test that sees no violation says nothing."""
    async with open_page(allowed=["violation", "Content Security Policy", "Trusted"]) as page:
        heard = []
        page.on("console", lambda said: heard.append(said.text))
        await page.goto("/bare")
        tried = await page.evaluate(
            """() => {
              const outcomes = [];
              try { document.body.innerHTML = "<b>x</b>"; } catch { outcomes.push("innerHTML"); }
              try { trustedTypes.createPolicy("mine", {}); } catch { outcomes.push("policy"); }
              try { setTimeout("1", 0); } catch { outcomes.push("text as code"); }
              document.getElementById("stage").setAttribute("style", "color: red");
              const script = document.createElement("script");
              try { script.textContent = "window.ran = 1"; } catch { outcomes.push("script"); }
              return outcomes;
            }"""
        )
        assert tried == ["innerHTML", "policy", "text as code", "script"]
        while not any("style-src" in each for each in heard):
            await asyncio.sleep(0.01)


# --- attacks ---


async def test_no_part_runs_what_it_shows(open_page):
    async with open_page() as page:
        for attack in CORPUS:
            await page.goto(f"/nasty?x={quote(attack)}")
            assert await page.evaluate("window.ran") is None, attack
            texts = await page.locator("main").inner_text()
            assert attack.split("\n")[0].strip() in texts, attack
            followed = await page.evaluate("[...document.links].map((each) => each.protocol)")
            assert set(followed) <= {"http:", "https:", "mailto:"}, attack
