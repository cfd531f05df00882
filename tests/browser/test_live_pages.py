"""Pages that follow: what changes comes by itself, what the reader does stays, and a server may go away and come back."""

from __future__ import annotations

import asyncio
from functools import partial

import httpx
import pytest
from sample_server import AWAY, SampleServer

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def own_server():
    """For a test that changes what it shows, or takes it away."""
    started = SampleServer(SAMPLE_FOLLOW="0.1", SAMPLE_ZONE="UTC")
    yield started
    started.stop()


async def change(server, **values):
    async with httpx.AsyncClient() as http:
        return (await http.get(f"{server.url}/change", params=values)).text


def shows(page, text):
    return page.locator("#totals").get_by_text(text).wait_for()


async def test_what_changes_is_shown_and_what_the_reader_does_stays(open_page, own_server):
    async with open_page(base=own_server.url) as page:
        await page.goto("/")
        await page.locator("#names summary").click()
        await page.locator("#search").fill("half a wo")
        await page.evaluate("document.getElementById('search').setSelectionRange(2, 5)")
        await change(own_server, count=5, names="zoe,ada,eve")
        await shows(page, "2,161")
        await page.locator("#person-zoe").wait_for()
        assert await page.locator("#people li").all_inner_texts() == ["zoe", "ada", "eve"]
        assert await page.evaluate("[document.activeElement.id, search.value, search.selectionStart, search.selectionEnd]") == ["search", "half a wo", 2, 5]  # fmt: skip


async def test_nothing_is_sent_while_nothing_changes(open_page, own_server):
    async with open_page(base=own_server.url) as page:
        await page.goto("/")
        asked = 0
        while asked < 6:
            asked, answers = (await change(own_server)).split(" ")
            asked = int(asked)
            await asyncio.sleep(0.05)
        assert set(answers.split(",")[-5:]) == {"204"}
        assert await page.locator("[data-live]").inner_text() == "Live"


async def test_a_page_goes_on_when_its_server_is_back(open_page, own_server):
    async with open_page(base=own_server.url, allowed=[AWAY]) as page:
        await page.goto("/")
        await page.locator("#search").fill("kept")
        own_server.kill()
        await page.get_by_text("Connection lost. Trying again in").wait_for()
        assert await page.locator("#totals").is_visible()
        own_server.start()
        await change(own_server, count=7)
        await shows(page, "2,163")
        await page.locator("#status-line:empty").wait_for(state="attached")
        assert await page.locator("#search").input_value() == "kept"


async def test_a_dialog_stays_open_while_the_page_changes(open_page, own_server):
    async with open_page(base=own_server.url) as page:
        await page.goto("/")
        await page.get_by_role("button", name="Discard 2 names").click()
        await page.get_by_label("Reason").fill("wrong")
        await change(own_server, count=9)
        await shows(page, "2,165")
        assert await page.locator("#discard").evaluate("dialog => dialog.matches(':modal')")
        assert await page.get_by_label("Reason").input_value() == "wrong"


async def test_a_hidden_page_asks_nothing(open_page, own_server):
    async with open_page(base=own_server.url) as page:
        await page.goto("/")
        while int((await change(own_server)).split(" ")[0]) < 2:
            await asyncio.sleep(0.05)
        hide = "(is) => { Object.defineProperty(document, 'hidden', { value: is, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); }"
        await page.evaluate(hide, True)
        await page.wait_for_load_state("networkidle")  # the question that was under way
        before = (await change(own_server)).split(" ")[0]
        await page.wait_for_timeout(500)  # five times as long as it waits
        assert (await change(own_server)).split(" ")[0] == before
        await page.evaluate(hide, False)
        while (await change(own_server)).split(" ")[0] == before:
            await asyncio.sleep(0.05)


async def test_the_newest_action_wins(open_page, server):
    """The answer to the first one comes last, and is dropped."""
    async with open_page() as page:
        await page.goto("/jobs")
        gate = asyncio.Event()

        async def late(route):
            await gate.wait()
            await route.continue_()

        await page.route("**/jobs?q=1", late)
        visit = "async (url) => { const { page } = await import(document.querySelector('script').src.replace('app.js', 'page.js')); window.done = (window.done ?? 0); page(url).finally(() => window.done++); }"
        await page.evaluate(visit, "/jobs?q=1")
        await page.evaluate(visit, "/jobs?q=2")
        await page.wait_for_url("**/jobs?q=2")
        gate.set()
        while await page.evaluate("window.done") < 2:  # wait_for_function would need eval
            await asyncio.sleep(0.01)
        assert page.url.endswith("/jobs?q=2")
        assert await page.locator("#q").get_attribute("value") == "2"


async def test_a_filter_is_asked_while_it_is_typed(open_page):
    async with open_page() as page:
        await page.goto("/jobs")
        await page.locator("#q").press_sequentially("4")
        await page.wait_for_url("**/jobs?q=4")
        await page.get_by_text("1 to 11 of 55").wait_for()
        assert await page.evaluate("[document.activeElement.id, q.value]") == ["q", "4"]
        await page.get_by_role("link", name="Job", exact=True).click()
        await page.wait_for_url("**/jobs?q=4&sort=at")
        assert await page.locator("th").first.get_attribute("aria-sort") == "ascending"
        await page.go_back()
        await page.wait_for_url("**/jobs?q=4")
        await page.locator("th:not([aria-sort])").first.wait_for()


async def refuse(status, route):
    await route.fulfill(status=status, body="<p>no</p>", content_type="text/html")


async def test_a_refused_action_changes_nothing(open_page):
    async with open_page(allowed=["status of 500", "status of 403"]) as page:
        await page.goto("/form")
        for status, told in ((500, "That did not work (500)"), (403, "This page is too old")):
            await page.route("**/form", partial(refuse, status))
            await page.get_by_label("Name").fill("zoe")
            await page.get_by_role("button", name="Add the name").click()
            await page.get_by_text(told).wait_for()
            assert await page.get_by_label("Name").input_value() == "zoe"
            await page.unroute("**/form")


async def test_the_reader_has_times_in_the_zone_of_the_browser(open_page):
    started = SampleServer(SAMPLE_FIXED="1")
    try:
        async with open_page(base=started.url, timezone_id="Asia/Tokyo") as page:
            await page.goto("/sheet")
            await page.get_by_text("times in Asia/Tokyo").wait_for()
            time = page.locator("dd time").first
            assert await time.inner_text() == "23:05"
            assert await time.get_attribute("title") == "2026-11-18 14:05:12 UTC"
    finally:
        started.stop()


async def test_a_link_to_a_wrong_field_keeps_what_is_wrong(open_page):
    """A step within the page asks the server for nothing: the page is the answer to a form."""
    async with open_page(allowed=["status of 422"]) as page:
        await page.goto("/form")
        await page.get_by_label("Name").fill("12")
        await page.get_by_role("button", name="Add the name").click()
        await page.get_by_role("link", name="Name: 12 is a number").click()
        await page.wait_for_url("**/form#field-name")
        await page.wait_for_load_state("networkidle")
        assert await page.locator("#error-name").is_visible()
        assert await page.get_by_label("Name").input_value() == "12"


async def test_a_page_that_leads_elsewhere_says_so(open_page, own_server):
    """As when a session has ended, and each question is answered by the login."""
    async with open_page(base=own_server.url) as page:
        await page.goto("/")
        await page.route(
            f"{own_server.url}/", lambda route: route.fulfill(status=303, headers={"location": "/form"})
        )
        await page.get_by_text("This page cannot be kept up to date any more. Reload it.").wait_for()
        assert await page.locator("[data-live]").inner_text() == "Not live"
        assert await page.locator("#totals").is_visible()


async def test_the_same_page_seen_otherwise_does_not_jump(open_page):
    async with open_page(viewport={"width": 800, "height": 300}) as page:
        await page.goto("/jobs")
        await page.get_by_role("link", name="Older").scroll_into_view_if_needed()
        before = await page.evaluate("scrollY")
        assert before > 0
        await page.get_by_role("link", name="Older").click()
        await page.get_by_text("21 to 40 of 55").wait_for()
        assert await page.evaluate("scrollY") > 0


async def test_a_button_copies_all_of_an_id(open_page):
    async with open_page(permissions=["clipboard-read", "clipboard-write"]) as page:
        await page.goto("/sheet")
        await page.get_by_role("button", name="Copy the id").click()
        assert await page.evaluate("navigator.clipboard.readText()") == "0192f3bd-11c0-7a02-b7c1-6a0d8a1f0001"
        await page.locator(".copy[data-done]").wait_for()


async def test_what_fails_in_a_dialog_is_said_in_it_and_stays(open_page, own_server):
    async with open_page(base=own_server.url, allowed=["status of 500"]) as page:
        await page.goto("/")
        await page.get_by_role("button", name="Discard 2 names").click()
        await page.get_by_label("Reason").fill("kept")
        await page.route("**/discard", partial(refuse, 500))
        await page.locator("#discard").get_by_role("button", name="Discard 2 names").click()
        await page.locator("dialog #status-line", has_text="That did not work (500)").wait_for()
        asked = int((await change(own_server)).split(" ")[0])
        while int((await change(own_server)).split(" ")[0]) < asked + 3:
            await asyncio.sleep(0.05)
        assert await page.locator("#status-line").is_visible(), "a page that follows does not take it back"
        assert await page.get_by_label("Reason").input_value() == "kept"
        await page.unroute("**/discard")
        await page.locator("#discard").get_by_role("button", name="Discard 2 names").click()
        await page.get_by_text("2 names are discarded").wait_for()
        assert not await page.locator("#discard").is_visible()
        assert await page.locator("#status-line").inner_text() == ""


async def test_a_dialog_closes_by_a_click_beside_it_and_not_by_one_that_began_inside(open_page):
    async with open_page() as page:
        await page.goto("/")
        await page.get_by_role("button", name="Discard 2 names").first.click()
        field = await page.get_by_label("Reason").bounding_box()
        await page.mouse.move(field["x"] + 50, field["y"] + 10)
        await page.mouse.down()
        await page.mouse.move(20, 20)
        await page.mouse.up()
        assert await page.locator("#discard").is_visible()
        await page.mouse.click(20, 20)
        assert not await page.locator("#discard").is_visible()


async def test_a_form_that_is_under_way_is_not_sent_twice(open_page, own_server):
    async with open_page(base=own_server.url) as page:
        await page.goto("/form")
        gate, sent = asyncio.Event(), []

        async def slow(route):
            if route.request.method == "POST":
                sent.append(route.request)
                await gate.wait()
            await route.continue_()

        await page.route("**/form", slow)
        await page.get_by_label("Name").fill("Noor")
        await page.get_by_label("Name").press("Enter")
        await page.get_by_label("Name").press("Enter")
        await page.get_by_role("button", name="Add the name").click(force=True)
        gate.set()
        await page.get_by_text("Noor is added").wait_for()
        assert len(sent) == 1
        assert await page.locator("#people li").all_inner_texts() == ["ada", "eve", "Noor"]
