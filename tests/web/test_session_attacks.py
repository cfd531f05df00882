"""Sessions against those who want in: planted cookies, forms of other sites, odd bodies, races, and floods of strangers."""

from __future__ import annotations

import asyncio
import random

import pytest
from members import ROUTES, Browser, club
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from holdfast import Holdfast
from holdfast.web import Sessions, session_of
from holdfast.web.sessions import forms
from holdfast.web.sessions.forms import told_token

NAME = "__Host-session"


async def seen(browser, **headers):
    return (await browser.get("/who", headers=headers)).json()


# --- cookies that somebody else has set ---


@pytest.mark.parametrize(
    "blank", [b"\xa0", b"\x85", b"\x0b", b"\x0c", b"\x1c", b"\x1f", b"\xc2\xa0", b"\xe2\x80\x80"]
)
async def test_a_cookie_that_only_python_would_call_ours_is_not(hf, blank):
    """Browsers guard `__Host-` at the begin of a name; a neighbour's site can set a name that begins otherwise."""
    app = club(hf)
    async with Browser(app) as eve, Browser(app) as ada:
        await eve.login("eve")
        token = eve.cookies[NAME].encode()
        for cookie in (blank + NAME.encode() + b"=" + token, NAME.encode() + blank + b"=" + token):
            assert (await seen(ada, cookie=cookie))["who"] is None
            ada.cookies.clear()


async def test_a_planted_cookie_beside_ours_lets_nobody_in_as_somebody_else(hf):
    app = club(hf)
    async with Browser(app) as eve, Browser(app) as ada:
        await eve.login("eve")
        await ada.login("ada")
        tokens = [browser.cookies[NAME] for browser in (eve, ada)]
        ada.cookies.clear()
        for one, two in (tokens, tokens[::-1]):
            found = await ada.get("/who", headers=[("cookie", f"{NAME}={one}"), ("cookie", f"{NAME}={two}")])
            assert found.json()["who"] is None


async def test_a_token_anywhere_but_in_the_cookie_opens_nothing(hf):
    app = club(hf)
    async with Browser(app) as ada, Browser(app) as eve:
        await ada.login("ada")
        token = ada.cookies[NAME]
        found = await eve.get(
            "/who",
            params={"session": token, NAME: token},
            headers={"authorization": f"Bearer {token}", "x-session": token},
        )
        assert found.json()["who"] is None
        form = (await ada.get("/form")).text
        assert (await ada.post("/change", params={"csrf_token": form}, json={})).status_code == 403


# --- who comes after whom ---


async def test_what_one_person_knew_is_not_the_next_ones(hf):
    """Else what a session says of a person, such as that he has shown a second factor, would be said of another."""
    async with Browser(club(hf)) as browser:
        await browser.get("/keep/cart", params={"value": "7"})
        await browser.login("ada")
        await browser.get("/keep/factor", params={"value": "shown"})
        await browser.login("ada")
        assert (await seen(browser))["data"] == {"cart": "7", "factor": "shown"}
        await browser.login("eve")
        assert await seen(browser) == {"who": "eve", "state": "eve", "data": {}}


async def test_the_same_name_in_another_tenant_is_another_person(hf):
    async def enter(request):
        await session_of(request).login("ada", tenant=request.path_params["tenant"])
        return PlainTextResponse("in")

    async with Browser(Sessions(Starlette(routes=[*ROUTES, Route("/in/{tenant}", enter)]), hf)) as browser:
        await browser.get("/in/one")
        await browser.get("/keep/role", params={"value": "admin"})
        await browser.get("/in/two")
        assert (await seen(browser))["data"] == {}


# --- requests side by side ---


async def test_thirty_requests_keep_each_others_data(hf):
    async with Browser(club(hf)) as browser:
        await browser.get("/keep/first", params={"value": "0"})
        answers = await asyncio.gather(
            *(browser.get(f"/keep/n{n}", params={"value": "1"}) for n in range(30))
        )
        assert {answer.status_code for answer in answers} == {200}
        assert len((await seen(browser))["data"]) == 31


async def test_a_request_beside_a_login_does_not_undo_it(hf):
    """It has read the old session, and answers after the login has replaced it."""
    in_handler, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request):
        session_of(request)["slow"] = True
        in_handler.set()
        await go_on.wait()
        return PlainTextResponse("slow")

    async with Browser(Sessions(Starlette(routes=[*ROUTES, Route("/slow", slow)]), hf)) as browser:
        await browser.get("/keep/cart", params={"value": "7"})
        waiting = asyncio.create_task(browser.get("/slow"))
        await in_handler.wait()
        await browser.login("ada")
        go_on.set()
        assert "set-cookie" not in (await waiting).headers
        assert (await seen(browser))["who"] == "ada"


async def test_nothing_brings_a_session_back_that_was_ended_meanwhile(hf):
    in_handler, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request):
        session_of(request)["slow"] = True
        in_handler.set()
        await go_on.wait()
        return PlainTextResponse("slow")

    async with Browser(Sessions(Starlette(routes=[*ROUTES, Route("/slow", slow)]), hf)) as browser:
        await browser.login("ada")
        waiting = asyncio.create_task(browser.get("/slow"))
        await in_handler.wait()
        await hf.logins.end("ada")
        go_on.set()
        await waiting
        assert await seen(browser) == {"who": None, "state": None, "data": {}}


# --- other sites ---


@pytest.mark.parametrize(
    "headers",
    [{"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "https://evil.test"}],
)
async def test_where_anybody_may_send_a_cookie_of_another_site_is_not_believed(hf, headers):
    async def hook(request):
        return PlainTextResponse(session_of(request).principal or "nobody")

    app = Sessions(
        Starlette(routes=[*ROUTES, Route("/open", hook, methods=["POST"])]), hf, exempt=["POST /open"]
    )
    async with Browser(app) as browser:
        await browser.login("ada")
        assert (await browser.post("/open", json={}, headers=headers)).text == "nobody"
        assert (await browser.post("/open", json={}, headers={"sec-fetch-site": "same-origin"})).text == "ada"
        assert (await seen(browser))["who"] == "ada"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "PROPFIND", "FOO"])
async def test_every_method_that_may_change_something_needs_the_token(hf, method):
    async with Browser(club(hf)) as browser:
        await browser.login("ada")
        assert (await browser.request(method, "/change")).status_code == 403


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain", "csrf_token={token}"),
        ("application/json", '{{"csrf_token": "{token}"}}'),
        ("application/x-www-form-urlencoded", "csrf_token=wrong&csrf_token={token}"),
        ("application/x-www-form-urlencoded", "a=csrf_token%3D{token}"),
        ("application/x-www-form-urlencoded", "CSRF_TOKEN={token}"),
        ("multipart/form-data", '--b\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n{token}\r\n--b--\r\n'),
        ("multipart/form-data; boundary=b", '--b\r\nContent-Disposition: form-data; name="x"; filename="csrf_token"\r\n\r\n{token}\r\n--b--\r\n'),
        ("multipart/form-data; boundary=b", '--b\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n{token}'),
        ("multipart/form-data; boundary=b", "x\r\n\r\ncsrf_token\r\n\r\n{token}\r\n--b--\r\n"),
        ("multipart/mixed; boundary=b", '--b\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n{token}\r\n--b--\r\n'),
    ],
)  # fmt: skip
async def test_a_token_in_a_place_that_is_not_its_own_is_none(hf, kind, body):
    async with Browser(club(hf)) as browser:
        await browser.login("ada")
        token = (await browser.get("/form")).text
        answer = await browser.post(
            "/change", content=body.format(token=token), headers={"content-type": kind}
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "FORM_TOKEN_WRONG")


async def found_in(kind, chunks):
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    messages.append({"type": "http.request", "body": b"", "more_body": False})
    scope = {"type": "http", "headers": [(b"content-type", kind)]}
    given = list(messages)

    async def receive():
        return given.pop(0)

    found, again = await told_token(scope, receive)
    got = [await again() for _ in messages]
    assert got == messages, "the app receives it whole"
    return found


@pytest.mark.parametrize("kind", [b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=b"])
async def test_a_body_that_comes_byte_by_byte_costs_no_more(monkeypatch, kind):
    looks = []
    for name in ("_in_urlencoded", "_in_multipart"):
        real = getattr(forms, name)
        monkeypatch.setattr(forms, name, lambda *args, real=real: looks.append(1) or real(*args))
    assert await found_in(kind, [b"a"] * 5000) is None
    assert len(looks) < 20


async def test_odd_forms_are_read_or_not_but_nothing_is_raised():
    chance = random.Random(3)
    words = [
        b"multipart/form-data", b"application/x-www-form-urlencoded", b";", b" boundary=", b"boundary*=utf-8''", b"boundary*0=", b'"', b"b",
        b"\xff", b"\x00", b"=", b"%", b"\r\n", b"--b", b"--", b"\r\n\r\n", b"csrf_token", b"&", b"name*0*=", b"name*=iso-8859-9'x'%ff",
        b"Content-Disposition: form-data; name=", b"filename*1=a", b"\\", b",", b"*", b"'",
    ]  # fmt: skip
    for _ in range(4000):
        kind = b"".join(chance.choices(words[:14], k=chance.randint(1, 6)))
        if chance.random() < 0.7:
            kind = chance.choice([b"multipart/form-data; boundary=b", words[1]])
        body = [b"".join(chance.choices(words, k=chance.randint(0, 12))) for _ in range(chance.randint(0, 3))]
        found = await found_in(kind, body)
        assert found is None or isinstance(found, str)


# --- caches between us and the client ---


async def kept_by_caches(request):
    if request.query_params.get("give"):
        session_of(request)["a"] = 1
    said = request.query_params.get("said")
    return JSONResponse({}, headers={"cache-control": said} if said else {})


@pytest.mark.parametrize(
    ("said", "becomes"),
    [
        ("public, max-age=600", "no-store"),
        ("max-age=60", "no-store"),
        ("", "no-store"),
        ("private, no-cache", "private, no-cache"),
    ],
)
async def test_no_cache_gives_a_cookie_to_another(hf, said, becomes):
    async with Browser(Sessions(Starlette(routes=[Route("/page", kept_by_caches)]), hf)) as browser:
        answer = await browser.get("/page", params={"give": "1", "said": said})
        assert "set-cookie" in answer.headers
        assert answer.headers.get_list("cache-control") == [becomes]


async def test_what_a_person_is_shown_is_his_unless_the_app_says_otherwise(hf):
    app = Sessions(Starlette(routes=[*ROUTES, Route("/page", kept_by_caches)]), hf)
    async with Browser(app) as browser:
        assert "cache-control" not in (await browser.get("/page")).headers
        await browser.login("ada")
        assert (await browser.get("/page")).headers["cache-control"] == "private"
        assert (await browser.get("/page", params={"said": "public"})).headers["cache-control"] == "public"


# --- floods ---


async def test_strangers_who_only_look_leave_nothing_behind(url):
    async with Holdfast(url) as hf:
        async with Browser(club(hf)) as browser:
            for _ in range(20):
                browser.cookies.clear()
                await browser.get("/form")
                await browser.post("/change", json={})
        count = "SELECT count(*) FROM " + ("holdfast_visit" if url.startswith("sqlite") else "holdfast.visit")
        async with hf.transaction() as tx:
            assert (await tx.fetch(count))[0][0] == 0


async def test_a_stranger_who_never_comes_back_is_forgotten_soon(manual_clock, tmp_path):
    """A flood of requests without cookies makes no rows that last for a day."""
    hf = Holdfast(f"sqlite:///{tmp_path / 'a.db'}")
    async with hf, Browser(club(hf)) as gone, Browser(club(hf)) as back:
        await gone.get("/keep/cart", params={"value": "7"})
        await back.get("/keep/cart", params={"value": "7"})
        assert (await seen(back))["data"] == {"cart": "7"}
        manual_clock.advance(601)
        assert (await seen(gone))["data"] == {}
        manual_clock.advance(80_000)
        assert (await seen(back))["data"] == {"cart": "7"}
