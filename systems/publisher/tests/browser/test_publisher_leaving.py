"""The ways out, as an artist goes them: everything as a zip, DeviantArt disconnected, the account deleted."""

from __future__ import annotations

import zipfile

import pytest
from playwright.async_api import expect

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


async def test_everything_is_had_as_a_zip(open_page):
    async with open_page() as page:
        await page.goto("/settings")
        await page.get_by_role("button", name="Make an export").click()
        link = page.get_by_role("link", name="Download")
        while not await link.count():
            await page.goto("/settings")
        async with page.expect_download() as download:
            await link.first.click()
        with zipfile.ZipFile(await (await download.value).path()) as found:
            assert found.testzip() is None
            assert {"account.json", "posts.jsonl", "published.csv"} <= set(found.namelist())
            assert "Salt lantern" in found.read("posts.jsonl").decode()


async def test_a_disconnected_artist_comes_back(open_page):
    async with open_page("eli-thorn") as page:
        await page.goto("/settings")
        await page.get_by_role("button", name="Disconnect").first.click()
        dialog = page.locator("dialog[open]")
        await dialog.get_by_role("button", name="Stay connected").click()
        await expect(dialog).to_have_count(0)
        await page.get_by_role("button", name="Disconnect").first.click()
        await dialog.get_by_role("button", name="Disconnect").click()
        await expect(page.locator(".notice")).to_contain_text("DeviantArt is disconnected")
        await expect(page.locator(".banner")).to_be_visible()
        await page.get_by_role("button", name="Log in at DeviantArt").first.click()
        await page.get_by_role("button", name="Allow as eli-thorn").click()
        await page.goto("/settings")
        await expect(page.locator("main")).to_contain_text("Active, 89 days left")
        await expect(page.locator(".banner")).to_have_count(0)


async def test_an_account_is_deleted_by_its_name_alone(open_page):
    async with open_page("fen-gale", allowed=["422"]) as page:
        await page.goto("/settings")
        for name in ("another", "fen-gale"):
            await page.get_by_role("button", name="Delete my account").first.click()
            await page.locator("dialog[open] #field-username").fill(name)
            await page.locator("dialog[open]").get_by_role("button", name="Delete my account").click()
            if name == "another":
                await expect(page.locator("#leave .wrong")).to_be_visible()
        await page.wait_for_url("**/login")
        await page.goto("/settings")
        await page.wait_for_url("**/login")
