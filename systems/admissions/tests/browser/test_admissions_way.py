"""The way of an applicant, from the first look to the confirmation: as people go it, and again without scripts."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]
PASSWORD = "correct horse battery"
PDF = {
    "name": "bảng điểm.pdf",
    "mimeType": "application/pdf",
    "buffer": b"%PDF-1.7\n1 0 obj\nendobj\ntrailer\n%%EOF\n",
}
CARD = "4242 4242 4242 4242"


async def enter(page, mail_to, link_in, mail, name):
    """Register, confirm by the mail, log in."""
    await page.goto("/register")
    await page.get_by_label("Full name").fill(name)
    await page.get_by_label("Mail address").fill(mail)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Create an account").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Look into your mailbox")
    await page.goto(link_in(await mail_to(mail, "Confirm")))
    await page.get_by_role("button", name="Confirm my address").click()
    await expect(page.locator(".notice")).to_contain_text("is confirmed")
    await page.get_by_label("Mail address").fill(mail)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.locator("main").get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("My applications")


async def apply_for(page, programme):
    await page.goto("/")
    await page.locator(".term", has_text=programme).get_by_role("button", name="Apply").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("About you")


async def fill_person(page, name):
    await page.get_by_label("Full name").fill(name)
    await page.get_by_label("Date of birth").fill("2004-02-29")
    await page.get_by_label("Address").fill("12 Hàng Bài, Hà Nội")


async def pay(page, number=CARD):
    await page.get_by_label("Card number").fill(number)
    await page.get_by_label("Valid until").fill("12/34")
    await page.get_by_label("Security code").fill("123")
    await page.locator("main").get_by_role("button", name="Pay USD").click()


async def test_the_whole_way(open_page, mail_to, link_in):
    async with open_page(None, allowed=["422"]) as page:
        await enter(page, mail_to, link_in, "linh@example.org", "Đặng Thuỳ Linh")
        await apply_for(page, "Coastal Studies")
        # saved as one types, and there again after reload
        await fill_person(page, "Đặng Thuỳ Linh")
        await expect(page.locator("#saved")).to_contain_text("Draft saved")
        await page.reload()
        await expect(page.get_by_label("Full name")).to_have_value("Đặng Thuỳ Linh")
        await page.get_by_role("button", name="Save and continue").click()
        # what is wrong is told beside its field, and kept
        await page.get_by_label("Why do you want").fill("Short")
        await page.get_by_role("button", name="Save and continue").click()
        await expect(page.locator("#error-statement")).to_contain_text("at least 10 characters. This has 5.")
        await page.get_by_label("Why do you want").fill("My grandmother counted crabs for forty years.")
        await page.get_by_role("button", name="Save and continue").click()
        await page.get_by_label("Choose a file").set_input_files(PDF)
        await expect(page.locator(".file-words b")).to_have_text("bảng điểm.pdf")
        await page.get_by_label("All that I have said is true").check()
        await page.get_by_role("button", name="Save and continue").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Check and send")
        await page.get_by_role("button", name="Send the application").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("We have your application")
        number = await page.locator(".receipt dd b").inner_text()
        assert number in await mail_to("linh@example.org", "We have your application")
        # the page follows the pipeline by itself
        await page.get_by_role("link", name="See how it stands").click()
        await expect(page.locator("#next h2")).to_have_text("Pay the application fee")
        await page.get_by_role("link", name="Pay USD 75.00").click()
        await pay(page, "4000 0000 0000 9995")
        await expect(page.locator("#payment .note")).to_contain_text("not enough money. Nothing was taken.")
        await pay(page)
        await expect(page.locator("#payment h2")).to_have_text("Paid. Thank you")
        await page.get_by_role("link", name="See how it stands").click()
        await expect(page.locator("#next h2")).to_have_text("Your application is complete")
        assert "USD 75.00" in await mail_to("linh@example.org", "is complete")


async def test_the_same_without_scripts_and_withdrawn(open_page, mail_to, link_in):
    async with open_page(None, java_script_enabled=False) as page:
        await enter(page, mail_to, link_in, "minh@example.org", "Nguyễn Hoàng Minh")
        await apply_for(page, "Public Health")
        await fill_person(page, "Nguyễn Hoàng Minh")
        await page.get_by_role("button", name="Save and continue").click()
        await page.get_by_label("Why do you want").fill("I want to study how to ask people.")
        await page.get_by_role("button", name="Save and continue").click()
        await page.get_by_label("Choose a file").set_input_files(
            {**PDF, "name": "photo.heic", "buffer": b"\x00\x00\x00\x18ftypheic"}
        )
        await page.get_by_role("button", name="Add the file").click()
        await expect(page.locator(".notice")).to_contain_text("not a PDF, JPEG or PNG")
        await page.get_by_label("Choose a file").set_input_files(PDF)
        await page.get_by_role("button", name="Add the file").click()
        await page.get_by_label("All that I have said is true").check()
        await page.get_by_role("button", name="Save and continue").click()
        await page.get_by_role("button", name="Send the application").click()
        await page.get_by_role("link", name="See how it stands").click()
        await mail_to("minh@example.org", "Pay the fee")
        await page.reload()
        await page.get_by_role("link", name="Pay USD 50.00").click()
        await pay(page)
        await mail_to("minh@example.org", "is complete")
        await page.goto("/applications")
        await page.get_by_role("link", name="Public Health").click()
        await page.get_by_role("link", name="Withdraw the application").click()
        await page.get_by_role("button", name="Withdraw the application").click()
        assert "withdrawn" in await mail_to("minh@example.org", "is withdrawn")
        await page.reload()
        await expect(page.locator("#next h2")).to_have_text("You have withdrawn this application")
        await expect(page.locator("#payment")).to_contain_text("USD 0.00")


async def test_the_pay_page_in_two_windows_takes_the_money_once(open_page):
    async with open_page("anh@example.org") as page:
        await page.goto("/applications")
        await page.get_by_role("link", name="Pay USD").first.click()
        await page.get_by_label("Card number").wait_for()
        other = await page.context.new_page()
        await other.goto(page.url)
        for each in (page, other):
            await each.get_by_label("Card number").fill(CARD)
            await each.get_by_label("Valid until").fill("12/34")
            await each.get_by_label("Security code").fill("123")
        await page.locator("main").get_by_role("button", name="Pay USD").click()
        await other.locator("main").get_by_role("button", name="Pay USD").click()
        for each in (page, other):
            await expect(each.locator("#payment h2")).to_have_text("Paid. Thank you")
            await expect(each.locator("#payment")).to_contain_text("We have received USD 75.00.")


async def test_a_form_changed_in_another_window_is_not_overwritten(open_page):
    async with open_page("anh@example.org", allowed=["409"]) as page:
        await page.goto("/applications")
        await page.get_by_role("link", name="Continue the form").first.click()
        await page.get_by_role("link", name="Statement").click()
        other = await page.context.new_page()
        await other.goto(page.url)
        await other.get_by_label("Why do you want").fill("Written in the other window, and kept.")
        await expect(other.locator("#saved")).to_contain_text("Draft saved")
        await page.get_by_label("Why do you want").fill("Written later in the first one.")
        await expect(page.locator("#saved")).to_contain_text("changed in another window")
        await page.reload()
        await expect(page.get_by_label("Why do you want")).to_have_value(
            "Written in the other window, and kept."
        )
