"""The main way of each page, as an artist goes it: by mouse, by keyboard, and without scripts."""

from __future__ import annotations

import io

import pytest
from PIL import Image
from playwright.async_api import expect

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


def picture(colour, name):
    out = io.BytesIO()
    Image.new("RGB", (64, 48), colour).save(out, "PNG")
    return {"name": name, "mimeType": "image/png", "buffer": out.getvalue()}


async def open_draft(page, title):
    await page.goto("/drafts")
    await page.get_by_role("link", name=title, exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(title)


# --- calendar ---


async def test_a_post_is_moved_by_keyboard(open_page):
    async with open_page() as page:
        await page.goto("/calendar?view=list")
        await page.goto("/calendar")
        entry = page.locator(".entry[data-move]").last
        key, at = await entry.get_attribute("data-move"), await entry.get_attribute("data-at")
        await entry.focus()
        await page.keyboard.press("m")
        dialog = page.locator("dialog#move")
        await expect(dialog.get_by_role("heading")).to_have_text("Move this post?")
        assert await page.evaluate("document.activeElement.id") == "move-at"
        new = at[:11] + ("20:15" if not at.endswith("20:15") else "21:15")
        await page.locator("#move-at").fill(new)
        await page.keyboard.press("Enter")
        await expect(page.locator(".notice")).to_contain_text(new[11:])
        await expect(page.locator(f".entry[data-move='{key}']")).to_have_attribute("data-at", new)
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator(".notice")).to_contain_text("as it was before")
        await page.goto("/calendar")
        await expect(page.locator(f".entry[data-move='{key}']")).to_have_attribute("data-at", at)


async def test_a_post_is_dragged_to_another_day(open_page):
    async with open_page(viewport={"width": 1280, "height": 900}) as page:
        await page.goto("/calendar")
        entry = page.locator(".entry[data-move]").last
        key, at = await entry.get_attribute("data-move"), await entry.get_attribute("data-at")
        target = page.locator(f"td[data-day]:not([data-day='{at[:10]}'])").last
        day = await target.get_attribute("data-day")
        await entry.hover()
        await page.mouse.down()
        await target.hover(force=True)
        assert await target.get_attribute("data-drop") == ""
        await page.mouse.up()
        await expect(page.locator("#move-at")).to_have_value(f"{day}T{at[11:]}")
        await page.get_by_role("button", name="Keep it").click()
        await expect(page.locator("dialog#move")).to_be_hidden()
        await expect(page.locator(f".entry[data-move='{key}']")).to_have_attribute("data-at", at)
        await entry.click()
        await page.wait_for_url(f"**/posts/{key}")


async def test_the_calendar_is_filtered_by_state(open_page):
    async with open_page() as page:
        await page.goto("/calendar")
        await page.locator(".filters .filter.unknown").click()
        await expect(page.locator(".entry")).to_have_count(1)
        await expect(page.locator(".entry.unknown")).to_have_count(1)
        await page.locator(".filters .filter.unknown").click()
        await expect(page.locator(".entry.ok").first).to_be_visible()


async def test_a_phone_has_a_strip_of_days(open_page):
    async with open_page(phone=True) as page:
        await page.goto("/calendar")
        await expect(page.locator(".month")).to_be_hidden()
        await page.locator(".strip a").nth(1).click()
        await expect(page.locator(".day-panel h2")).to_contain_text(
            await page.locator(".strip [aria-current] b").inner_text()
        )
        await page.get_by_role("link", name="Month").click()
        await expect(page.locator(".month")).to_be_visible()
        await expect(page.locator(".month .entry").first).to_be_hidden()


# --- one post ---


async def test_a_draft_says_what_is_missing_and_is_scheduled_by_keyboard(open_page):
    async with open_page(allowed=["422"]) as page:
        await open_draft(page, "Rooftop bees")
        lacking = page.get_by_role("button", name="Schedule: 2 things missing")
        await lacking.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#error-mature")).to_have_text("Say whether it is mature content.")
        await expect(page.locator("#error-agreed")).to_be_visible()
        await page.get_by_role("radio", name="No").first.focus()
        await page.keyboard.press("Space")
        await page.get_by_role("checkbox", name="I agree").focus()
        await page.keyboard.press("Space")
        await page.locator("#field-title").fill("Rooftop bees, at last")
        await page.locator("#when button").first.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator(".notice")).to_contain_text("Scheduled: it goes out")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Rooftop bees, at last")
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator(".badge")).to_have_text("Draft")


async def test_a_draft_is_scheduled_moved_and_cancelled_without_scripts(open_page):
    async with open_page(java_script_enabled=False) as page:
        await open_draft(page, "Iron bloom")
        await page.get_by_role("button", name="Schedule", exact=True).click()
        await expect(page.locator(".notice")).to_contain_text("Scheduled: it goes out")
        before = await page.locator("#field-at").input_value()
        await page.locator("#field-at").fill(before[:11] + "07:30")
        await page.get_by_role("button", name="Move").click()
        await expect(page.locator(".notice")).to_contain_text("It goes out")
        await page.get_by_role("button", name="Do not publish").click()
        await expect(page.locator(".badge")).to_have_text("Cancelled")
        await page.get_by_role("button", name="Make it a draft").click()
        await expect(page.locator(".badge")).to_have_text("Draft")


async def test_what_was_typed_is_kept_when_the_post_was_changed_elsewhere(open_page):
    async with open_page(allowed=["422"]) as page:
        await open_draft(page, "Dune song")
        other = await page.context.new_page()
        await other.goto(page.url)
        await other.locator("#field-description").fill("Another text.")
        await other.get_by_role("button", name="Save").click()
        await expect(other.locator(".notice")).to_have_text("Saved.")
        await page.locator("#field-description").fill("My text.")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".notice")).to_contain_text("changed elsewhere")
        await expect(page.locator("#field-description")).to_have_value("My text.")


async def test_a_post_is_published_now_and_has_a_receipt(open_page):
    async with open_page() as page:
        await open_draft(page, "Fern house")
        await page.get_by_role("button", name="Publish now").click()
        await expect(page.locator(".notice")).to_contain_text("It goes out now")
        await expect(page.locator(".page-head .badge")).to_have_text("Published", timeout=30_000)
        await expect(page.get_by_role("heading", name="Receipt")).to_be_visible()
        await expect(page.get_by_role("link", name="Open on DeviantArt")).to_be_visible()


async def test_a_failed_post_says_why_and_is_tried_again(open_page):
    async with open_page() as page:
        await page.goto("/posts?show=needs")
        await page.get_by_role("link", name="Nine tiles", exact=True).click()
        await expect(page.locator(".ask.dead")).to_contain_text("larger than what your account may upload")
        await page.get_by_role("button", name="Try again").click()
        await expect(page.locator(".page-head .badge")).to_have_text("Published", timeout=30_000)


async def test_an_unknown_post_is_decided_by_its_artist(open_page):
    """Two posts with its title are there: nothing is guessed, and nothing is chosen beforehand."""
    async with open_page() as page:
        await page.goto("/")
        await page.get_by_role("link", name="Look and decide").click()
        await expect(page.locator(".candidates input[type=radio]")).to_have_count(3)
        await expect(page.locator(".candidates input:checked")).to_have_count(0)
        await page.get_by_role("button", name="It is the chosen one").click()
        await expect(page.locator(".notice")).to_contain_text("Choose which post it is")
        await page.locator(".candidates input[type=radio]").first.check()
        await page.get_by_role("button", name="It is the chosen one").click()
        await expect(page.locator(".page-head .badge")).to_have_text("Published", timeout=30_000)


async def test_an_unknown_post_that_is_not_there_is_sent_again(open_page, site):
    """DeviantArt fails, has stored nothing, and does not let us look."""
    fault, faults = {"kind": "server-error", "who": "ada-arc"}, f"{site.simulated.url}/_sim/faults"
    async with open_page() as page:
        await open_draft(page, "Dune song")
        for each in ({"endpoint": "stash/publish", "times": 1}, {"endpoint": "gallery/all"}):
            assert (await page.request.put(faults, data=fault | each)).ok
        await page.get_by_role("button", name="Publish now").click()
        badge = page.locator(".page-head .badge")
        await expect(badge).to_have_text("Unknown", timeout=30_000)
        assert (await page.request.delete(faults)).ok
        await page.get_by_role("button", name="It is not there: publish again").click()
        await expect(badge).to_have_text("Published", timeout=30_000)


async def test_a_cancelled_post_is_published_now(open_page):
    async with open_page() as page:
        await page.goto("/posts?show=cancelled")
        await page.get_by_role("link", name="Moth study", exact=True).click()
        await page.get_by_role("button", name="Publish now").click()
        await expect(page.locator(".page-head .badge")).to_have_text("Published", timeout=30_000)


# --- many ---


async def test_many_drafts_are_tagged_scheduled_and_undone(open_page):
    async with open_page() as page:
        await page.goto("/drafts")
        for title in ("Evening post", "Stone soup"):
            await page.get_by_label(f"Choose {title}").check()
        await page.locator("summary", has_text="Tags").click()
        await page.locator("input#tags").fill("evening, bread")
        await page.get_by_role("button", name="Set tags").click()
        await expect(page.locator(".notice")).to_contain_text("2 posts tagged.")
        await expect(page.get_by_role("row", name="Evening post")).to_contain_text("bread")
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator(".notice")).to_contain_text("as it was before")
        await page.goto("/drafts")
        await expect(page.get_by_role("row", name="Evening post")).not_to_contain_text("bread")
        for title in ("Evening post", "Mara"):
            await page.get_by_label(f"Choose {title}").check()
        await page.get_by_text("Schedule the chosen ones").click()
        await page.locator("#every").fill("2")
        await page.get_by_role("button", name="Schedule them").click()
        await expect(page.locator(".notice")).to_contain_text("1 of 2 posts scheduled; 1 could not be.")
        await expect(page.locator(".notice")).to_contain_text("Mara: Say whether it is mature content.")
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("link", name="Evening post")).to_be_visible()


async def test_scheduled_posts_are_shifted_by_days(open_page):
    async with open_page() as page:
        await page.goto("/posts?show=scheduled")
        row = page.locator("tbody tr").first
        title = await row.get_by_role("link").inner_text()
        before = await row.locator("time").get_attribute("datetime")
        await row.get_by_role("checkbox").check()
        await page.get_by_text("With the chosen ones").click()
        await page.get_by_label("Shift by days").fill("1")
        await page.get_by_role("button", name="Shift", exact=True).click()
        await expect(page.locator(".notice")).to_contain_text("1 post shifted.")
        await page.goto("/posts?show=scheduled")
        after = await page.get_by_role("row", name=title).locator("time").get_attribute("datetime")
        assert after[:10] > before[:10]


async def test_the_inbox_by_keys(open_page):
    async with open_page() as page:
        await page.goto("/review")
        titles = await page.locator("[data-item] .post-title").all_inner_texts()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("a")
        await expect(page.locator(".notice")).to_contain_text(f"“{titles[1]}” is approved")
        await page.keyboard.press("x")
        await expect(page.locator(".notice")).to_contain_text("Rejected")
        await expect(page.locator("[data-item]")).to_have_count(len(titles) - 2)


async def test_posts_are_searched_and_paged(open_page):
    async with open_page() as page:
        await page.goto("/posts")
        first = await page.locator("tbody a").first.inner_text()
        await page.get_by_role("link", name="Older").click()
        await expect(page.locator(".paging")).to_contain_text("26 to 50")
        await page.get_by_role("link", name="Newer").click()
        await expect(page.locator("tbody a").first).to_have_text(first)
        await page.keyboard.press("/")
        await page.keyboard.type("long ferry")
        await expect(page.locator("tbody tr")).to_have_count(1)
        await page.locator("input[type=search]").fill("no such post")
        await expect(page.get_by_text("Nothing matches “no such post”")).to_be_visible()


# --- files ---


async def test_many_files_are_uploaded_and_the_same_one_is_noticed(open_page):
    async with open_page("bo-linnet") as page:
        await page.goto("/upload")
        files = [picture((step * 40, 80, 120), f"field-{step}.png") for step in range(3)]
        await page.locator("input[type=file]").set_input_files(files)
        await expect(page.locator(".upload-words")).to_have_text("3 of 3 done.")
        await page.locator("input[type=file]").set_input_files([files[1], picture((9, 9, 9), "new.png")])
        await expect(page.locator(".upload-words")).to_have_text("5 of 5 done.")
        await expect(page.get_by_text("is there already, left out")).to_have_count(1)
        await page.get_by_role("link", name="To the drafts").click()
        await expect(page.locator("tbody tr")).to_have_count(4)
        await expect(page.locator("tbody img")).to_have_count(4)


async def test_a_file_that_is_none_is_refused_with_the_reason(open_page):
    async with open_page("bo-linnet", allowed=["415"]) as page:
        await page.goto("/upload")
        await page.locator("input[type=file]").set_input_files(
            {"name": "page.png", "mimeType": "image/png", "buffer": b"<html><script>alert(1)</script>"}
        )
        await expect(page.locator(".failed-words")).to_be_visible()
        await expect(page.locator(".upload-words")).to_have_text("1 of 1 done.")


async def test_an_upload_goes_on_when_the_connection_is_back(open_page):
    async with open_page("bo-linnet", allowed=["ERR_INTERNET_DISCONNECTED", "Connection"]) as page:
        await page.goto("/upload")
        await page.context.set_offline(True)
        await page.locator("input[type=file]").set_input_files([picture((1, 2, 3), "late.png")])
        await expect(page.locator(".upload-words")).to_contain_text("The connection is lost: 0 of 1 are done")
        await page.context.set_offline(False)
        await expect(page.locator(".upload-words")).to_have_text("1 of 1 done.")


async def test_files_are_uploaded_without_scripts(open_page):
    async with open_page("bo-linnet", java_script_enabled=False) as page:
        await page.goto("/upload")
        await page.locator("input[type=file]").set_input_files(
            [picture((200, 9, 9), "a.png"), picture((9, 200, 9), "b.png")]
        )
        await page.get_by_label("One post with all of them").check()
        await page.get_by_role("button", name="Add them").click()
        await expect(page.locator(".notice")).to_contain_text("2 files added.")
        await page.get_by_role("button", name="Split into 2 posts").click()
        await expect(page.locator(".notice")).to_contain_text("Split into 2 drafts")


async def test_a_deleted_file_is_had_back(open_page):
    async with open_page() as page:
        await page.goto("/files")
        name = "mara.png"  # of a draft: files of published posts stay
        row = page.get_by_role("row", name=name)
        await row.get_by_role("button", name="Delete").click()
        await expect(page.locator(".notice")).to_contain_text("can be had back for 7 days")
        await page.get_by_role("row", name=name).get_by_role("button", name="Have it back").click()
        await expect(page.locator(".notice")).to_have_text(f"{name} is back.")


# --- what works for the artist ---


async def test_an_automation_is_made_tried_and_switched_on(open_page):
    async with open_page(allowed=["422"]) as page:
        await page.goto("/automations")
        await page.get_by_label("Name of a new automation").fill("Sundays")
        await page.get_by_role("button", name="New automation").click()
        await page.get_by_label("Kind of a new rule").select_option("daily_quota")
        await page.get_by_role("button", name="Add a rule").click()
        await expect(page.locator("fieldset.rule")).to_have_count(2)
        await page.get_by_label("Posts a day").fill("500")
        await page.locator("form.stack").evaluate("(form) => (form.noValidate = true)")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".wrong").first).to_be_visible()
        await page.get_by_label("Posts a day").fill("2")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".notice")).to_have_text("Saved.")
        await page.get_by_role("link", name="Try it").click()
        await expect(page.get_by_text("Nothing of this was done.")).to_be_visible()
        await page.get_by_role("button", name="Switch on").click()
        await expect(page.locator(".notice")).to_contain_text("It is on.")
        await page.get_by_role("button", name="Switch off").click()
        await expect(page.locator(".page-head .badge")).to_have_text("Off")


async def test_a_price_is_made_and_a_post_is_offered(open_page):
    async with open_page(allowed=["422"]) as page:
        await page.goto("/templates")
        await page.get_by_text("New price").click()
        form = page.locator("details[open] form").first
        await form.get_by_label("Name").fill("Print")
        await form.get_by_label("Price, USD").fill("a lot")
        await form.get_by_role("button", name="Save").click()
        await expect(page.locator("#error-low")).to_contain_text("is no price")
        form = page.locator("details[open] form").first
        await form.get_by_label("Price, USD").fill("35.50")
        await form.get_by_role("button", name="Save").click()
        await expect(page.locator(".notice")).to_have_text("“Print” is saved.")
        await page.goto("/sales")
        await page.get_by_label("A published post").select_option(index=12)
        await page.get_by_label("Price").select_option(label="Print")
        await page.get_by_role("button", name="Add it").click()
        await expect(page.locator(".notice")).to_have_text("1 added to the queue.")
        await expect(page.get_by_role("row", name="USD 35.50")).to_have_count(1)


async def test_folders_of_the_gallery_are_made_ordered_and_filled(open_page):
    async with open_page() as page:
        await page.goto("/galleries")
        await page.get_by_label("Name of a new folder").fill("Lanterns")
        await page.get_by_role("button", name="Make").click()
        await expect(page.locator(".folder-list")).to_contain_text("Lanterns")
        before = await page.locator(".folder-list .grow").all_inner_texts()
        await page.get_by_role("button", name="Lanterns one place up").click()
        await expect(page.locator(".notice")).to_contain_text("The order is changed")
        after = await page.locator(".folder-list .grow").all_inner_texts()
        assert after.index("Lanterns") == before.index("Lanterns") - 1
        await page.locator(".folder-list a", has_text="Sketches").click()
        await page.locator("figure input[type=checkbox]").first.check()
        await page.get_by_label("Move the chosen ones to").select_option(label="Lanterns")
        await page.get_by_role("button", name="Move", exact=True).click()
        await expect(page.locator(".notice")).to_have_text("1 moved at DeviantArt.")
        await expect(page.locator("figure")).to_have_count(1)


async def test_a_gallery_is_not_looked_at_too_often(open_page):
    async with open_page() as page:
        await page.goto("/galleries")
        await expect(page.locator(".page-head .hint")).to_contain_text("seen")
        for _ in range(6):
            await page.get_by_role("button", name="Look again").click()
            await expect(page.locator(".notice")).to_be_visible()
            if "You have just refreshed" in await page.locator(".notice").inner_text():
                break
        await expect(page.locator(".notice")).to_contain_text("Again in")


async def test_a_key_is_shown_once_and_revoked(open_page):
    async with open_page() as page:
        await page.goto("/keys")
        await page.get_by_label("A name for it").fill("shop tool")
        await page.get_by_role("button", name="Make a key").click()
        secret = await page.locator(".secret code").inner_text()
        assert secret.startswith("pub_")
        await page.goto("/keys")
        assert secret not in await page.content()
        await page.get_by_role("button", name="Revoke").first.click()
        await expect(page.locator(".notice")).to_contain_text("opens nothing any more")


async def test_publishing_is_switched_off_and_on(open_page):
    async with open_page() as page:
        await page.goto("/calendar")
        await page.get_by_role("switch", name="Publishing").click()
        await expect(page.locator(".banner")).to_contain_text("Publishing is off.")
        await expect(page.locator(".entry.held").first).to_be_visible()
        await page.get_by_role("switch", name="Publishing").click()
        await expect(page.locator(".banner")).to_have_count(0)


async def test_settings_are_kept(open_page):
    async with open_page("bo-linnet", allowed=["422"]) as page:
        await page.goto("/settings")
        await page.get_by_label("Your zone").select_option("Asia/Tokyo")
        await page.get_by_role("button", name="Save times").click()
        await expect(page.locator(".foot")).to_contain_text("Times in Asia/Tokyo")
        await page.get_by_label("Where to").fill("bo@example")
        await page.get_by_label("Where to").fill("no address")
        await page.locator("form[action$='/mails']").evaluate("(form) => (form.noValidate = true)")
        await page.get_by_role("button", name="Save mails").click()
        await expect(page.locator("#error-mail")).to_contain_text("This is no mail address")
        await expect(page.get_by_label("Where to")).to_have_value("no address")


async def test_a_new_artist_is_led_through_three_steps(open_page):
    async with open_page("cleo-vane") as page:
        await page.goto("/")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Your first post in three steps")
        await page.get_by_role("link", name="2. Choose pictures").click()
        await page.locator("input[type=file]").set_input_files([picture((90, 10, 90), "first.png")])
        await page.get_by_role("link", name="To the drafts").click()
        await page.goto("/welcome")
        await expect(page.get_by_role("link", name="3. Pick a time")).to_be_visible()
