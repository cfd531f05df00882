"""Logins in full, against the simulated DeviantArt: what comes of them, and what is none."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from publisher.core import hf as program
from publisher.outside import login as outside
from publisher.work.access import access_of
from visitors import Browser


async def rows(sql, *values):
    async with program.transaction() as tx:
        return await tx.fetch(sql, *values)


async def message(browser):
    """What the login page says of the last try."""
    return (await browser.get("/login")).text


async def test_a_login_makes_an_account_and_seals_its_tokens(browser, simulator):
    await browser.log_in("ada-arc")
    [(artist_id, username, zone)] = await rows("SELECT id, username, zone FROM artists")
    assert (artist_id, username, zone) == (browser.artist_id, "ada-arc", "UTC")
    [(access, refresh, version)] = await rows("SELECT access, refresh, version FROM logins")
    grant = next(each for each in simulator.state.grants.values())
    for sealed, token in ((access, grant.access), (refresh, grant.refresh)):
        assert sealed.startswith("hfv1:")
        assert token not in sealed
    assert version == 1
    assert (await access_of(artist_id)).token.reveal() == grant.access
    assert [each["kind"] for each in simulator.ledger.find(None)] == ["granted"]


async def test_the_address_asks_for_what_is_needed_and_binds_the_answer(browser):
    address = await browser.ask()
    query = parse_qs(urlsplit(address).query)
    assert query["code_challenge_method"] == ["S256"]
    assert set(query["scope"][0].split()) == {"basic", "browse", "user", "stash", "publish", "gallery"}
    assert query["redirect_uri"] == ["http://127.0.0.1:8080/login/callback"]
    again = parse_qs(urlsplit(await browser.ask()).query)
    assert query["state"] != again["state"]
    assert query["code_challenge"] != again["code_challenge"]


async def test_the_same_artist_comes_back_to_the_same_account(browser, site):
    await browser.log_in("ada-arc")
    async with Browser(site) as other:
        await other.log_in("ada-arc")
        assert other.artist_id == browser.artist_id
    assert await rows("SELECT version FROM logins") == [(2,)]
    assert (await browser.get("/api/account")).status_code == 200, "the first browser stays logged in"


async def test_an_answer_that_was_not_asked_for_in_this_session_is_no_login(browser, site):
    """Login CSRF: somebody else's code is put under a browser."""
    async with Browser(site) as evil:
        answer = await evil.allow("bo-linnet")
        for stranger in (browser, Browser(site)):
            told = await stranger.get(answer)
            assert told.headers["location"] == "/login"
            assert "was not begun here" in await message(stranger)
            assert (await stranger.get("/api/account")).status_code == 401
    assert await rows("SELECT id FROM artists") == []


@pytest.mark.parametrize("state", ["", "wrong", "é", "a" * 5000])
async def test_a_wrong_state_is_no_login(browser, simulator, state):
    answer = await browser.allow("ada-arc")
    code = parse_qs(urlsplit(answer).query)["code"][0]
    told = await browser.get("/login/callback", params={"state": state, "code": code})
    assert told.headers["location"] == "/login"
    assert await rows("SELECT id FROM artists") == []
    assert simulator.ledger.calls.get("token", 0) == 0, "nothing was asked"


async def test_a_login_is_good_once(browser):
    answer = await browser.allow("ada-arc")
    assert (await browser.get(answer)).headers["location"] == "/"
    assert (await browser.get(answer)).headers["location"] == "/login"
    assert (await browser.get("/api/account")).status_code == 200


async def test_a_code_without_its_verifier_brings_nothing(browser):
    """Who has seen the address in a log has no login by it."""
    answer = await browser.allow("ada-arc")
    code = parse_qs(urlsplit(answer).query)["code"][0]
    with pytest.raises(outside.LoginOver, match="code_verifier"):
        await outside.exchange(code, "another-verifier-of-at-least-43-characters-00")


async def test_who_says_no_is_told_so(browser):
    answer = await browser.get(await browser.allow(None))
    assert answer.headers["location"] == "/login"
    assert "was not allowed" in await message(browser)


@pytest.mark.parametrize("fault", ["server-error", "lost", "refused"])
async def test_a_login_while_deviantart_fails_says_what_to_do(browser, simulator, fault):
    answer = await browser.allow("ada-arc")
    simulator.faults.put("token", fault)
    assert (await browser.get(answer)).headers["location"] == "/login"
    assert "does not answer at the moment" in await message(browser)
    assert await rows("SELECT id FROM artists") == []


async def test_a_code_that_is_too_old_is_told_so(browser, simulator):
    answer = await browser.allow("ada-arc")
    simulator.clock.advance(61)
    await browser.get(answer)
    assert "did not take this login" in await message(browser)


async def test_logging_out_is_at_once_and_everywhere_when_asked(ada_in, site):
    async with Browser(site) as other:
        await other.log_in("ada-arc")
        await ada_in.post("/logout")
        assert (await ada_in.get("/api/account")).status_code == 401
        assert (await other.get("/api/account")).status_code == 200
        async with Browser(site) as third:
            await third.log_in("ada-arc")
            await third.post("/logout/everywhere")
        assert (await other.get("/api/account")).status_code == 401


async def test_the_session_begins_under_a_new_token(browser):
    """A cookie that was planted before the login opens nothing after it."""
    await browser.ask()
    before = browser.cookies["session"]
    await browser.log_in("ada-arc")
    assert browser.cookies["session"] != before
    async with httpx.AsyncClient(
        transport=browser._transport, base_url=browser.base_url, cookies={"session": before}
    ) as thief:
        assert (await thief.get("/api/account")).status_code == 401


async def test_forms_of_other_sites_are_refused(ada_in):
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
        answer = await ada_in.post("/api/account/switch", json={"is_on": False}, headers=headers)
        assert answer.status_code == 403
    answer = await ada_in.post("/api/account/switch", json={"is_on": False}, headers={"x-csrf-token": "no"})
    assert (answer.status_code, answer.json()["code"]) == (403, "FORM_TOKEN_WRONG")
    assert (await ada_in.get("/api/account")).json()["is_on"] is True


async def test_a_new_login_lets_held_posts_go_on(ada_in, simulator):
    post_id = await ada_in.make_draft()
    await ada_in.post("/api/account/disconnect")
    at = round(await program.now()) + 3600
    await ada_in.post(f"/api/posts/{post_id}/schedule", json={"at": at})
    assert [each.reason for each in await program.tenants.paused()] == ["Log in at DeviantArt again."]
    await ada_in.log_in("ada-arc")
    assert await program.tenants.paused() == []
    assert json.loads((await ada_in.get("/api/account")).text)["token"]["state"] == "active"
