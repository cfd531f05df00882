"""Every page: without an error or a violation of its policy, for screen readers, in both languages, on phones, in the dark, without scripts."""

from __future__ import annotations

import pytest
from axe_playwright_python.async_playwright import Axe

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]
STRANGER = ["/", "/register", "/login", "/forgot", "/reset?key=x", "/confirm?key=x"]
APPLICANT = ["/", "/applications", "/account"]
STAFF = [
    "/desk", "/desk?state=completed&decision=checked", "/desk?q=nobody+is+called+so", "/desk/decisions", "/desk/payments", "/desk/payments?show=unmatched",
    "/desk/stopped", "/desk/figures", "/desk/people", "/desk/audit", "/account",
]  # fmt: skip


async def hrefs(page, path, selector):
    await page.goto(path)
    return await page.locator(selector).evaluate_all("(all) => all.map((each) => each.pathname)")


async def of_applicant(page):
    """A draft, one that waits for the fee, and one that was decided: with all that belongs to each."""
    found = list(APPLICANT)
    for link in await hrefs(page, "/applications", ".application h2 a"):
        base, _, last = link.rpartition("/")
        if last == "form":
            found += [f"{base}/form/{step}" for step in ("person", "statement", "documents")] + [
                f"{base}/check"
            ]
        else:
            found += [f"{base}/{name}" for name in ("status", "receipt", "pay", "withdraw")]
    return found


async def of_staff(page):
    found = list(STAFF)
    for query in ("state=completed&decision=drafted", "state=failed", "state=needs_files", "state=withdrawn"):
        found += (await hrefs(page, f"/desk?{query}", "tbody td:first-child a"))[:1]
    return found


async def look(page, path):
    answer = await page.goto(path)
    assert answer.status == 200, (path, answer.status)
    assert await page.locator("h1").count() == 1, path
    found = await Axe().run(page, options={"resultTypes": ["violations"]})
    wrong = [
        (each["id"], each["nodes"][0]["html"][:300])
        for each in found.response["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert not wrong, (path, wrong)


async def in_vietnamese(page):
    await page.goto("/")
    await page.locator(".language button[lang=vi]").click()
    await page.locator("html[lang=vi]").wait_for()


WHO = {
    "stranger": (None, None),
    "applicant": ("anh@example.org", of_applicant),
    "staff": ("dung@uni.example", of_staff),
}


@pytest.mark.parametrize("who", WHO)
async def test_each_page_is_clean_for_screen_readers(open_page, who):
    mail, pages = WHO[who]
    async with open_page(mail, reduced_motion="reduce", color_scheme="light") as page:
        for path in await pages(page) if pages else STRANGER:
            await look(page, path)


@pytest.mark.parametrize("who", WHO)
async def test_the_same_in_vietnamese_in_the_dark_on_a_phone(open_page, who):
    mail, pages = WHO[who]
    async with open_page(mail, reduced_motion="reduce", color_scheme="dark", phone=True) as page:
        try:
            await in_vietnamese(page)
            for path in await pages(page) if pages else STRANGER:
                await look(page, path)
                for width in (390, 320):
                    await page.set_viewport_size({"width": width, "height": 844})
                    assert await page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
                small = await page.evaluate(
                    "[...document.querySelectorAll('main .button:not(.small, .quiet), main select, .menu summary')]"
                    ".filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 42).map((each) => each.outerHTML)"
                )
                assert not small, (path, small)
                await page.set_viewport_size({"width": 390, "height": 844})
        finally:
            await page.locator(".language button[lang=en]").click()
            await page.locator("html[lang=en]").wait_for()


@pytest.mark.parametrize("who", WHO)
async def test_every_page_without_scripts(open_page, who):
    mail, pages = WHO[who]
    async with open_page(mail) as page:
        paths = await pages(page) if pages else STRANGER
    async with open_page(mail, java_script_enabled=False) as page:
        for path in paths:
            answer = await page.goto(path)
            assert answer.status == 200, path
            assert await page.locator("h1").count() == 1, path


async def test_what_is_not_there_is_told_in_the_readers_language(open_page):
    async with open_page(allowed=["404"], locale="vi-VN") as page:
        answer = await page.goto("/applications/0000000000000000000000000000000f/status")
        assert answer.status == 404
        assert "There is no such thing here" in await page.locator("main").inner_text()
    async with open_page(None, allowed=["404"], locale="vi-VN") as page:
        assert (await page.goto("/nowhere")).status == 404
        assert await page.locator("h1").inner_text() == "Không có trang này"
    async with open_page(allowed=["403"]) as page:
        assert (await page.goto("/desk")).status == 403
        assert "Your role does not allow this." in await page.locator("main").inner_text()


async def test_the_theme_is_chosen_and_kept(open_page):
    async with open_page() as page:
        await page.goto("/account")
        await page.locator(".menu summary").click()
        await page.get_by_role("button", name="Dark").click()
        await page.locator("html[data-theme=dark]").wait_for()
        await page.goto("/applications")
        background = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert background == "rgb(14, 16, 20)"
