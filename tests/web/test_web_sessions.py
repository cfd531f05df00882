"""Sessions: cookies that say nothing, logins that can be ended, and forms that no other site can send."""

from __future__ import annotations

import asyncio

import pytest
from members import Browser, club
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from holdfast import Holdfast
from holdfast.errors import StoreUnavailable, UsageError
from holdfast.web import Sessions, request_tx, session_of
from holdfast.web.idempotency.middleware import IdempotencyKeys


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def kept_in(request):
    """In the store, or on a Redis when that is chosen: with it both stores are alike."""
    return request.param


@pytest.fixture
def url(kept_in, request, tmp_path):
    return (
        request.getfixturevalue("postgres_url") if kept_in == "postgres" else f"sqlite:///{tmp_path / 'a.db'}"
    )


@pytest.fixture
def sessions(kept_in, request):
    return request.getfixturevalue("own_valkey").url if kept_in == "redis" else None


@pytest.fixture
async def hf(url, sessions):
    async with Holdfast(url, sessions=sessions) as opened:
        yield opened


async def seen(browser):
    return (await browser.get("/who")).json()


async def test_a_login_lasts_until_the_logout(hf):
    async with Browser(club(hf)) as browser:
        assert (await seen(browser))["who"] is None
        await browser.login("ada")
        assert await seen(browser) == {"who": "ada", "state": "ada", "data": {}}
        await browser.send_form("/logout")
        assert (await seen(browser))["who"] is None


async def test_the_cookie_is_safe_and_says_nothing(hf):
    async with Browser(club(hf)) as browser:
        answer = await browser.login("ada")
    cookie = answer.headers["set-cookie"]
    name, _, rest = cookie.partition("=")
    token, *terms = rest.split("; ")
    assert name == "__Host-session"
    assert len(token) == 43
    assert terms == ["Max-Age=2592000", "Path=/", "HttpOnly", "SameSite=Lax", "Secure"]
    assert answer.headers["cache-control"] == "no-store"


async def test_over_plain_http_its_name_is_another(hf):
    app = club(hf, secure=False, same_site="strict")
    async with Browser(app) as browser:
        cookie = (await browser.login("ada")).headers["set-cookie"]
    assert cookie.startswith("session=")
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")


async def test_a_login_changes_the_token(hf):
    """Who knew the token before, or has planted it, does not get in."""
    async with Browser(club(hf)) as browser, Browser(club(hf)) as thief:
        await browser.get("/keep/cart", params={"value": "7"})
        planted = browser.cookies["__Host-session"]
        thief.cookies.set("__Host-session", planted)
        await browser.login("ada")
        assert browser.cookies["__Host-session"] != planted
        assert await seen(thief) == {"who": None, "state": None, "data": {}}
        assert await seen(browser) == {"who": "ada", "state": "ada", "data": {"cart": "7"}}


async def test_a_token_that_the_client_made_up_opens_nothing(hf):
    async with Browser(club(hf)) as browser:
        made_up = {"cookie": f"__Host-session={'x' * 43}"}
        answer = await browser.get("/keep/cart", params={"value": "7"}, headers=made_up)
        assert "x" * 43 not in answer.headers["set-cookie"]
        assert (await seen(browser))["data"] == {"cart": "7"}


@pytest.mark.parametrize("cookie", ["", "short", "ä" * 43, "a" * 5000, "a; __Host-session=b"])
async def test_a_cookie_that_is_none_of_ours_is_no_login(hf, cookie):
    async with Browser(club(hf)) as browser:
        answer = await browser.get("/who", headers={"cookie": f"__Host-session={cookie}".encode()})
    assert answer.json()["who"] is None


async def test_two_cookies_of_this_name_are_none(hf):
    async with Browser(club(hf)) as browser:
        await browser.login("ada")
        token = browser.cookies["__Host-session"]
        both = f"__Host-session={token}; __Host-session={'x' * 43}"
        browser.cookies.clear()
        assert (await browser.get("/who", headers={"cookie": both})).json()["who"] is None


async def test_a_logout_is_at_once_in_every_process(hf, url, sessions):
    other = Holdfast(url, sessions=sessions)
    async with other, Browser(club(hf)) as browser, Browser(club(other)) as elsewhere:
        await browser.login("ada")
        elsewhere.cookies.set("__Host-session", browser.cookies["__Host-session"])
        assert (await seen(elsewhere))["who"] == "ada"
        await browser.send_form("/logout")
        assert (await seen(elsewhere))["who"] is None


async def test_a_person_sees_and_ends_his_logins(hf):
    app = club(hf)
    async with (
        Browser(app, headers={"user-agent": "Phone"}) as phone,
        Browser(app, headers={"user-agent": "Desk"}) as desk,
    ):
        await phone.login("ada")
        await desk.login("ada")
        shown = (await desk.get("/logins")).json()
        assert sorted((agent, this) for _, this, agent in shown) == [("Desk", True), ("Phone", False)]
        name = next(name for name, _, agent in shown if agent == "Phone")
        assert [each.agent for each in await hf.logins.list("ada") if each.name == name] == ["Phone"]
        assert await hf.logins.end("eve", name=name) == 0
        assert await hf.logins.end("ada", name=name) == 1
        assert ((await seen(phone))["who"], (await seen(desk))["who"]) == (None, "ada")
        await phone.login("ada")
        assert (await desk.send_form("/everywhere")).text == "2"
        assert ((await seen(phone))["who"], (await seen(desk))["who"]) == (None, None)


async def test_data_is_kept_and_forgotten(hf):
    async with Browser(club(hf)) as browser:
        await browser.get("/keep/a", params={"value": "1"})
        await browser.get("/keep/b", params={"value": "2"})
        await browser.get("/forget/a")
        assert (await seen(browser))["data"] == {"b": "2"}


async def test_requests_side_by_side_keep_each_others_data(hf):
    async with Browser(club(hf)) as browser:
        await browser.get("/keep/first", params={"value": "0"})
        names = [f"n{number}" for number in range(4)]
        await asyncio.gather(*(browser.get(f"/keep/{name}", params={"value": name}) for name in names))
        assert (await seen(browser))["data"] == {"first": "0", **{name: name for name in names}}


async def test_what_json_cannot_say_is_refused(hf):
    async def bad(request):
        with pytest.raises(Exception, match="A session keeps what JSON can say"):
            session_of(request)["x"] = object()
        return PlainTextResponse(str(dict(session_of(request))))

    app = Sessions(Starlette(routes=[Route("/", bad)]), hf)
    async with Browser(app) as browser:
        assert (await browser.get("/")).text == "{}"


async def test_plain_functions_log_in_too(hf):
    async with Browser(club(hf)) as browser:
        assert (await browser.send_form("/plain")).text == "in"
        assert (await seen(browser))["who"] == "ada"


# --- how long ---


async def test_it_ends_without_a_sign_of_life_and_at_its_last(manual_clock, tmp_path):
    async with Holdfast(f"sqlite:///{tmp_path / 'a.db'}") as hf:
        app = club(hf, idle=100, last=250)
        async with Browser(app) as browser:
            await browser.login("ada")
            for _ in range(2):
                manual_clock.advance(90)
                assert (await seen(browser))["who"] == "ada"
            manual_clock.advance(71)
            assert (await seen(browser))["who"] is None
            await browser.login("ada")
            manual_clock.advance(101)
            assert (await seen(browser))["who"] is None


@pytest.mark.parametrize("kept_in", ["sqlite", "postgres"], indirect=True)
async def test_a_worker_prunes_what_is_over(url):
    async with Holdfast(url) as hf, Browser(club(hf, idle=1)) as browser:
        await browser.login("ada")
        async with asyncio.timeout(20):
            while await hf.logins.list("ada"):
                await asyncio.sleep(0.1)
        count = "SELECT count(*) FROM " + ("holdfast_visit" if url.startswith("sqlite") else "holdfast.visit")
        async with hf.worker(), asyncio.timeout(20):
            while True:
                async with hf.transaction() as tx:
                    if (await tx.fetch(count))[0][0] == 0:
                        break
                await asyncio.sleep(0.1)


# --- forms ---


async def test_a_form_without_its_token_is_refused(hf):
    async with Browser(club(hf)) as browser:
        await browser.login("ada")
        answer = await browser.post("/change", data={"a": "1"})
        assert (answer.status_code, answer.json()["code"]) == (403, "FORM_TOKEN_WRONG")
        answer = await browser.post("/change", data={"csrf_token": "x" * 43})
        assert answer.status_code == 403


async def test_a_form_with_its_token_gets_through_whole(hf):
    async with Browser(club(hf)) as browser:
        await browser.login("ada")
        token = (await browser.get("/form")).text
        answer = await browser.post("/change", data={"csrf_token": token, "a": "1" * 200_000})
        assert answer.text == f"changed by csrf_token={token}&a={'1' * 200_000}"
        answer = await browser.post("/change", data={"a": "1", "csrf_token": token})
        assert answer.text == f"changed by a=1&csrf_token={token}"


async def test_the_token_may_stand_in_a_header(hf):
    async with Browser(club(hf)) as browser:
        await browser.login("ada")
        token = (await browser.get("/form")).text
        answer = await browser.post("/change", json={"a": 1}, headers={"x-csrf-token": token})
        assert answer.text == 'changed by {"a":1}'
        assert (await browser.post("/change", json={"a": 1})).status_code == 403


async def test_an_upload_streams_by(hf):
    async with Browser(club(hf)) as browser:
        await browser.login("ada")
        token = (await browser.get("/form")).text
        answer = await browser.post(
            "/upload", data={"csrf_token": token}, files={"file": ("a.bin", b"x" * 300_000)}
        )
        assert answer.text == "True 300000"
        answer = await browser.post("/upload", data={"csrf_token": "no"}, files={"file": ("a.bin", b"x")})
        assert answer.status_code == 403


async def test_a_token_of_another_session_is_refused(hf):
    app = club(hf)
    async with Browser(app) as ada, Browser(app) as eve:
        await ada.login("ada")
        await eve.login("eve")
        stolen = (await eve.get("/form")).text
        assert (await ada.post("/change", data={"csrf_token": stolen})).status_code == 403


async def test_a_token_from_before_the_login_is_refused(hf):
    async with Browser(club(hf)) as browser:
        old = (await browser.get("/form")).text
        await browser.login("ada")
        assert (await browser.post("/change", data={"csrf_token": old})).status_code == 403


async def test_tokens_outlive_the_process(hf, url):
    async with Browser(club(hf)) as browser:
        await browser.login("ada")
        token = (await browser.get("/form")).text
        again = club(hf)  # as after a restart: nothing is known of the secret here
        async with Browser(again, cookies=browser.cookies) as after:
            assert (await after.post("/change", data={"csrf_token": token})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"origin": "https://evil.test"},
        {"origin": "null"},
        {"origin": "https://club.test.evil.test"},
        {"origin": "https://club.test:8443"},
    ],
)
@pytest.mark.parametrize("is_in", [True, False])
async def test_another_site_is_refused_also_with_a_token(hf, headers, is_in):
    async with Browser(club(hf)) as browser:
        fields = {"who": "ada"}
        if is_in:
            await browser.login("ada")
            fields["csrf_token"] = (await browser.get("/form")).text
        answer = await browser.post("/login", data=fields, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "CROSS_SITE_REQUEST")


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "same-origin"},
        {"origin": "https://club.test"},
        {"origin": "https://CLUB.test:443"},
        {"origin": "https://app.example.org", "sec-fetch-site": "cross-site"},
    ],
)
async def test_our_own_pages_get_through(hf, headers):
    async with Browser(club(hf, origins=["https://app.example.org"])) as browser:
        await browser.login("ada")
        token = (await browser.get("/form")).text
        answer = await browser.post("/change", data={"csrf_token": token}, headers=headers)
    assert answer.status_code == 200


async def test_programs_without_a_cookie_need_no_token(hf):
    async with Browser(club(hf)) as program:
        assert (await program.post("/change", json={})).status_code == 200


async def test_a_route_may_be_exempt(hf):
    async with Browser(club(hf)) as browser:
        await browser.login("ada")
        assert (
            await browser.post("/hook", json={}, headers={"origin": "https://stripe.test"})
        ).status_code == 200


async def test_looking_needs_no_token_from_anywhere(hf):
    async with Browser(club(hf)) as browser:
        await browser.login("ada")
        answer = await browser.get("/who", headers={"sec-fetch-site": "cross-site"})
    assert answer.json()["who"] == "ada"


# --- with the rest of the edge ---


@pytest.mark.parametrize("kept_in", ["sqlite", "postgres"], indirect=True)
async def test_a_login_commits_with_the_request(url):
    async def register(request):
        async with request_tx(request) as tx:
            await tx.execute("INSERT INTO people (name) VALUES ($1)", "ada")
            await session_of(request).login("ada", tx=tx)
        return PlainTextResponse("in", request.query_params.get("status", 200))

    async def failing(request):
        async with request_tx(request) as tx:
            await session_of(request).login("eve", tx=tx)
        return PlainTextResponse("no", 500)

    async def me(request):
        return PlainTextResponse(session_of(request).principal or "nobody")

    async with Holdfast(url) as hf:
        async with hf.transaction() as tx:
            await tx.execute("CREATE TABLE people (name TEXT)")
        routes = [
            Route("/register", register, methods=["POST"]),
            Route("/fail", failing, methods=["POST"]),
            Route("/me", me),
        ]
        async with Browser(Sessions(IdempotencyKeys(Starlette(routes=routes), hf), hf)) as browser:
            assert (await browser.post("/fail")).status_code == 500
            assert (await browser.get("/me")).text == "nobody"
            browser.cookies.clear()
            assert (await browser.post("/register")).status_code == 200
            assert (await browser.get("/me")).text == "ada"


@pytest.mark.parametrize("kept_in", ["sqlite", "postgres"], indirect=True)
async def test_a_login_that_is_rolled_back_leaves_the_session_that_there_was(url):
    async def failing(request):
        session = session_of(request)
        async with request_tx(request) as tx:
            await session.login("eve", tx=tx)
        if "cart" in session:
            session["tries"] = 1
        return PlainTextResponse("no", 503)

    async def look(request):
        session = session_of(request)
        session.setdefault("cart", request.query_params.get("cart"))
        return PlainTextResponse(f"{session.principal} {session['cart']} {session.get('tries')}")

    async def log_in(request):
        await session_of(request).login("ada")
        return PlainTextResponse(request.scope["holdfast.csrf"]())

    routes = [
        Route("/fail", failing, methods=["POST"]),
        Route("/login", log_in, methods=["POST"]),
        Route("/look", look),
    ]
    async with Holdfast(url) as hf:
        app = Sessions(
            IdempotencyKeys(Starlette(routes=routes), hf), hf, exempt=["POST /fail", "POST /login"]
        )
        async with Browser(app) as browser:
            assert "set-cookie" not in (await browser.post("/fail")).headers, "and a stranger is one still"
            await browser.get("/look", params={"cart": "7"})
            assert "set-cookie" not in (await browser.post("/fail")).headers
            assert (await browser.get("/look")).text == "None 7 1"
            await browser.post("/login")
            assert (await browser.post("/fail")).status_code == 503
            assert (await browser.get("/look")).text == "ada 7 1"


@pytest.mark.parametrize("kept_in", ["redis"], indirect=True)
async def test_redis_takes_no_part_in_a_transaction(hf):
    async with hf.transaction() as tx:
        with pytest.raises(UsageError, match="Redis takes no part in a transaction"):
            await hf.logins.end("ada", tx=tx)


async def test_a_redis_that_is_down_is_told_and_not_replaced(tmp_path, own_valkey):
    async with (
        Holdfast(f"sqlite:///{tmp_path / 'a.db'}", sessions=own_valkey.url) as hf,
        Browser(club(hf)) as browser,
    ):
        await browser.login("ada")
        own_valkey.kill()
        answer = await browser.get("/who")
        assert (answer.status_code, answer.json()["code"]) == (503, "STORE_UNAVAILABLE")
        assert answer.headers["retry-after"] == "2"
        own_valkey.start()
        async with asyncio.timeout(20):
            while (answer := await browser.get("/who")).status_code == 503:
                await asyncio.sleep(0.1)
        assert answer.json()["who"] is None, "it has forgotten all, and lets nobody in"


async def test_a_store_that_fails_at_the_end_answers_503(tmp_path, monkeypatch):
    async with Holdfast(f"sqlite:///{tmp_path / 'a.db'}") as hf, Browser(club(hf)) as browser:

        async def begin(*_args, **_named):
            raise StoreUnavailable("gone")

        monkeypatch.setattr(hf.store.visits, "begin", begin)
        answer = await browser.get("/keep/a", params={"value": "1"})
    assert answer.status_code == 503
    assert "set-cookie" not in answer.headers


def test_sync_code_ends_logins(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'a.db'}")
    assert hf.blocking.logins.end("ada") == 0
    assert hf.blocking.logins.list("ada") == []
    hf.blocking.close()


async def test_without_the_middleware_there_is_no_session():
    with pytest.raises(UsageError, match="session_of needs Sessions"):
        session_of({"type": "http"})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"same_site": "none"}, "same_site is"),
        ({"idle": 0}, "idle must be"),
        ({"origins": "https://a.test"}, "origins is a list"),
        ({"origins": ["a.test"]}, "An origin is a scheme and a host"),
        ({"exempt": ["/hook"]}, "A route is a method and a path"),
    ],
)
def test_wrong_options_are_refused(options, why):
    with pytest.raises(UsageError, match=why):
        Sessions(None, None, **options)


# --- sockets ---


async def opened(app, headers):
    """What a socket hears first."""
    heard = []
    scope = {
        "type": "websocket", "path": "/socket", "raw_path": b"/socket", "query_string": b"", "root_path": "", "scheme": "wss",
        "headers": [(b"host", b"club.test"), *headers], "client": ("192.0.2.1", 1), "server": ("club.test", 443),
        "subprotocols": [], "http_version": "1.1",
    }  # fmt: skip

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        heard.append(message)

    await app(scope, receive, send)
    return heard


async def test_a_socket_has_the_session(hf):
    app = club(hf)
    async with Browser(app) as browser:
        await browser.login("ada")
        cookie = f"__Host-session={browser.cookies['__Host-session']}".encode()
    heard = await opened(app, [(b"cookie", cookie), (b"origin", b"https://club.test")])
    assert [each.get("text") for each in heard if each["type"] == "websocket.send"] == ["ada"]


async def test_a_socket_from_another_site_is_refused(hf):
    app = club(hf)
    async with Browser(app) as browser:
        await browser.login("ada")
        cookie = f"__Host-session={browser.cookies['__Host-session']}".encode()
    heard = await opened(app, [(b"cookie", cookie), (b"origin", b"https://evil.test")])
    assert [each["type"] for each in heard] == ["websocket.close"]
