"""The main way of each page of staff, and of the account: by mouse and by keyboard."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.xss import CORPUS

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]
ADA, BINH, CLARA, DUNG = (f"{name}@uni.example" for name in ("ada", "binh", "clara", "dung"))
PASSWORD = "correct horse battery"


async def open_case(page, query):
    await page.goto(f"/desk?{query}")
    await page.locator("tbody td:first-child a").first.click()
    await expect(page.locator("#answers")).to_be_visible()


async def downloaded(page, click):
    async with page.expect_download() as waited:
        await click
    return Path(await (await waited.value).path()).read_bytes()


async def test_the_queue_is_filtered_searched_saved_and_exported(open_page):
    async with open_page(ADA) as page:
        await page.goto("/desk")
        name = await page.locator("tbody a").first.inner_text()
        await page.keyboard.press("/")
        await page.keyboard.type(name)
        await page.keyboard.press("Enter")
        await expect(page.locator("tbody td:first-child a").first).to_have_text(name)
        await page.goto("/desk")
        await page.get_by_label("State").select_option("failed")
        await page.get_by_role("button", name="Filter").click()
        await expect(page.locator("tbody .state.late").first).to_have_text("Stopped")
        await page.get_by_label("Name of this view").fill("Mend these")
        await page.get_by_role("button", name="Save this view").click()
        await expect(page.locator(".notice")).to_contain_text("The view Mend these is saved.")
        await page.goto("/desk")
        await page.get_by_role("link", name="Mend these").click()
        number = await page.locator("tbody tr").count()
        content = await downloaded(page, page.get_by_role("link", name="Export as CSV").click())
        rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))
        assert ([each["state"] for each in rows], len(rows)) == (["failed"] * number, number)
        await page.get_by_role("button", name="Remove the view Mend these").click()
        await expect(page.get_by_role("link", name="Mend these")).to_have_count(0)


async def test_a_case_is_taken_noted_and_its_files_are_downloaded(open_page):
    async with open_page(ADA) as page:
        await open_case(page, "state=completed&decision=none")
        await page.get_by_role("button", name="Take it").click()
        await expect(page.get_by_text("With Ada Okonjo")).to_be_visible()
        await page.get_by_label("Note", exact=True).fill("<b>Read</b> twice.")
        await page.get_by_role("button", name="Add the note").click()
        await expect(page.locator("#notes .statement").first).to_have_text("<b>Read</b> twice.")
        address = page.url
        answer = await page.request.get(
            await page.locator("#files a[href*='/files/']").last.get_attribute("href")
        )
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-security-policy"].startswith("sandbox")
        answer = await page.request.get(f"{address}/files.zip")
        archive = zipfile.ZipFile(io.BytesIO(await answer.body()))
        assert archive.namelist()
        assert all(archive.read(name).startswith(b"%PDF") for name in archive.namelist())


async def test_the_second_of_two_officers_is_told_and_overwrites_nothing(open_page):
    async with open_page(ADA) as page:
        await open_case(page, "state=completed&officer=nobody")
        other = await page.context.new_page()
        await other.goto(page.url)
        await page.get_by_role("button", name="Take it").click()
        await expect(page.locator(".notice")).to_have_text("Handed over.")
        await other.get_by_text("Hand over").first.click()
        await other.get_by_label("Who works on it").select_option(label="Bình Trần")
        await other.get_by_role("button", name="Hand over").click()
        await expect(other.locator(".notice")).to_contain_text(
            "Somebody has changed it while you were looking"
        )
        await expect(other.get_by_text("With Ada Okonjo")).to_be_visible()


async def test_a_decision_is_drafted_checked_by_another_and_told_with_its_round(open_page, mail_to):
    async with open_page(ADA) as page:
        await open_case(page, "state=completed&decision=none")
        address, mail = page.url, await page.locator("#answers .said dd").nth(1).text_content()
        await page.get_by_role("radio", name="Accept").check()
        await page.get_by_label("Words in the letter").fill("We look forward to you.")
        await page.get_by_role("button", name="Save the draft").click()
        await expect(page.get_by_text("You have drafted it: somebody else checks it.")).to_be_visible()
    async with open_page(BINH) as page:
        await page.goto(address)
        await page.get_by_role("button", name="It is right: check it").click()
        await expect(page.locator("#decision")).to_contain_text("Checked by Bình Trần")
        term = await page.locator(".page-head .hint").inner_text()
    async with open_page(DUNG) as page:
        await page.goto("/desk/decisions")
        its = page.locator(".round", has_text=term.split(", ", 1)[1])
        await its.get_by_role("button", name="Tell ").click()
        await page.locator("dialog[open]").get_by_role("button", name="Tell ").click()
        await expect(page.locator(".notice")).to_contain_text("being told")
        await expect(its.locator(".counts dd").nth(2)).to_have_text("0")  # the page follows
    assert "We look forward to you." in await mail_to(mail, "You are accepted", "Bạn đã trúng tuyển")


async def test_what_has_stopped_goes_on(open_page):
    async with open_page(ADA) as page:
        await page.goto("/desk/stopped")
        row = page.locator("tbody tr").first
        await expect(row).to_contain_text("Checking the files")
        address = await row.locator("a").get_attribute("href")
        before = await page.locator("tbody tr").count()
        await row.get_by_role("button", name="Let it go on").click()
        await expect(page.locator(".notice")).to_have_text("It goes on.")
        await expect(page.locator("tbody tr")).to_have_count(before - 1)
        await page.goto(address)
        await expect(page.locator(".page-head .badge")).to_have_text("Fee is open")  # the page follows


async def test_money_goes_back_once_and_not_more_than_was_paid(open_page):
    async with open_page(CLARA) as page:
        await page.goto("/desk/payments?show=paid")
        name = await page.locator("tbody td:first-child a").last.inner_text()
        number = await page.locator("tbody small").last.inner_text()
        dialog = page.locator("dialog[open]")
        await page.get_by_role("button", name="Give back").last.click()
        await dialog.get_by_label("Amount").fill("9999.00")
        await dialog.get_by_label("Why").fill("Paid twice")
        await dialog.get_by_role("button", name="Give it back").click()
        await expect(page.locator(".notice")).to_contain_text("can be given back")
        await page.get_by_role("button", name="Give back").last.click()
        await dialog.get_by_label("Why").fill("Asked for by phone")
        await dialog.get_by_role("button", name="Give it back").click()
        await expect(page.locator(".notice")).to_contain_text("It is being given back.")
        row = page.locator("tr", has_text=number)
        for _ in range(100):
            await page.goto("/desk/payments?show=refunded")
            if await row.count():
                break
        await expect(row).to_contain_text(name)
        await expect(row).to_contain_text("USD 0.00")


async def test_a_role_is_changed_and_all_of_it_is_logged(open_page):
    async with open_page(DUNG) as page:
        await page.goto("/desk/people?q=applicant5@")
        await page.locator("tbody select").select_option("officer")
        await page.get_by_role("button", name="Change the role").click()
        await expect(page.locator(".notice")).to_have_text("The role is changed.")
        await page.goto("/desk/audit")
        await expect(page.locator("tbody tr").first).to_contain_text("person.role")
        await page.locator("tbody tr").first.locator("a").click()
        await expect(page.locator("tbody tr")).to_have_count(1)
        await page.goto("/desk/figures")
        days = await page.request.get("/desk/figures.csv")
        assert (await days.text()).startswith("\ufeffday,submitted,verified")


async def test_a_document_is_asked_for_and_comes(open_page, mail_to):
    async with open_page(ADA) as page:
        await page.goto("/desk?q=anh@example.org&state=completed")
        await page.locator("tbody td:first-child a").first.click()
        address = page.url
        await page.get_by_text("Ask for a document").click()
        await page.get_by_label("What is needed").fill("The last year, with a stamp.")
        await page.get_by_role("button", name="Ask for it").click()
        await expect(page.locator(".notice")).to_contain_text("It is asked for")
    link = "/applications/" + address.rpartition("/")[2] + "/status"
    assert link in await mail_to("anh@example.org", "A document is needed")
    async with open_page() as page:
        await page.goto(link)
        await expect(page.locator("#next")).to_contain_text("The last year, with a stamp.")
        await page.get_by_label("Choose a file").set_input_files(
            {
                "name": "stamped.pdf",
                "mimeType": "application/pdf",
                "buffer": b"%PDF-1.7\n1 0 obj\nendobj\ntrailer\n%%EOF\n",
            }
        )
        await expect(page.locator("#files")).to_contain_text("stamped.pdf")
        await expect(page.locator("#files .state.ok").last).to_be_visible()
    async with open_page(ADA) as page:
        await page.goto(address)
        await expect(page.locator("#files .file", has_text="stamped.pdf").get_by_role("link")).to_be_visible()


async def test_the_account_is_in_the_hands_of_its_owner(open_page, mail_to, link_in):
    mail, changed = "applicant7@example.org", "another long sentence"
    async with (
        open_page(mail, own_login=True, allowed=["422"]) as page,
        open_page(mail, own_login=True) as other,
    ):
        await page.goto("/account")
        await page.get_by_label("Full name").fill("Zoë O'Brien")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator(".notice")).to_have_text("Saved.")
        await page.get_by_label("New mail address").fill("zoe@example.org")
        await page.get_by_role("button", name="Change the address").click()
        await expect(page.locator(".notice")).to_contain_text("We have sent a link to zoe@example.org")
        await page.goto(link_in(await mail_to("zoe@example.org", "Confirm your new address")))
        await page.get_by_role("button", name="Confirm my address").click()
        await expect(page.locator("main")).to_contain_text("zoe@example.org")
        await page.get_by_label("Your password now").fill("not mine at all")
        await page.get_by_label("New password").fill(changed)
        await page.get_by_role("button", name="Change the password").click()
        await expect(page.locator("#error-old_password")).to_have_text("This is not your password.")
        await page.get_by_label("Your password now").fill(PASSWORD)
        await page.get_by_label("New password").fill(changed)
        await page.get_by_role("button", name="Change the password").click()
        await expect(page.locator(".notice")).to_contain_text("Other browsers are logged out.")
        await other.goto("/account")
        await expect(other.get_by_role("heading", level=1)).to_have_text("Log in")
        content = await downloaded(page, page.get_by_role("link", name="Download my data").click())
        assert json.loads(content)["person"]["mail"] == "zoe@example.org"


async def test_a_forgotten_password_is_chosen_anew(open_page, mail_to, link_in):
    async with open_page(None) as page:
        await page.goto("/forgot")
        await page.get_by_label("Mail address").fill("applicant8@example.org")
        await page.get_by_role("button", name="Send me a link").click()
        await expect(page.locator("main")).to_contain_text("a link is on its way")
        await page.goto(link_in(await mail_to("applicant8@example.org", "Choose a new password")))
        await page.get_by_label("New password").fill("a sentence that is new")
        await page.get_by_role("button", name="Save the new password").click()
        await page.get_by_label("Mail address").fill("applicant8@example.org")
        await page.get_by_label("Password").fill("a sentence that is new")
        await page.locator("main").get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("My applications")


async def test_what_somebody_writes_is_text_on_every_page(open_page):
    """Names, statements, addresses, notes and views of strangers' making: nothing of it runs, and nothing breaks the policy."""
    async with open_page("applicant10@example.org", allowed=["422"]) as page:
        await page.goto("/")
        await page.get_by_role("button", name="Apply").first.click()
        base = page.url.rpartition("/")[0]
        for name, address in zip(CORPUS[::2], [*CORPUS[1::2], ""], strict=False):
            await page.goto(f"{base}/person")
            await page.get_by_label("Full name").fill(name)
            await page.get_by_label("Address").fill(address)
            await page.get_by_role("button", name="Save and continue").click()
            await page.locator(".note.dead").wait_for()
            assert await page.get_by_label("Full name").input_value() == name
            assert await page.get_by_label("Address").input_value() == address
            await page.goto(base.rpartition("/")[0] + "/check")
            assert await page.locator(".said dd").first.text_content() == name
            assert await page.evaluate("window.ran") is None, (name, address)
    everything = " ".join(CORPUS)[:4_000]
    async with open_page(ADA) as page:
        await open_case(page, "state=completed&decision=none")
        await page.get_by_label("Note", exact=True).fill(everything)
        await page.get_by_role("button", name="Add the note").click()
        await page.locator(".notice").wait_for()
        for evil in CORPUS[:6]:
            await page.goto("/desk?state=failed")
            await page.get_by_label("Name of this view").fill(evil[:60])
            await page.get_by_role("button", name="Save this view").click()
            await page.locator(".notice").wait_for()
            await page.get_by_label("Name, address").fill(evil)
            await page.get_by_role("button", name="Filter").click()
            await expect(page.get_by_label("Name, address")).to_have_value(evil)
            assert await page.evaluate("window.ran") is None, evil
