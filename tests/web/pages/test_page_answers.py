"""Pages: whole and by regions, redirects, what is told once, and where the app is mounted."""

from __future__ import annotations

import re

import pytest
from one_page import TEMPLATES, client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from holdfast.errors import UsageError
from holdfast.web.pages import Pages

ASKS = {"x-holdfast-regions": "#one,#two"}


def version_in(page):
    return re.search(r'id="version" value="(\w+)"', page.text)[1]


# --- regions ---


async def test_a_page_is_whole_and_says_what_it_depends_on(one):
    async with client(one.app()) as http:
        page = await http.get("/")
    assert page.status_code == 200
    assert page.text.startswith("<!doctype html>")
    assert page.headers["vary"] == "x-holdfast-regions, cookie"
    assert page.headers["cache-control"] == "private, no-cache"


async def test_regions_are_answered_alone(one):
    async with client(one.app()) as http:
        parts = await http.get("/", headers={"x-holdfast-regions": "#two"})
    assert parts.text == '<ul id="two" class="plain" data-region><li>b</li></ul>'
    assert parts.headers["cache-control"] == "no-store"
    assert "x-holdfast-regions" in parts.headers["vary"]


async def test_what_the_reader_has_is_not_sent_again(one):
    async with client(one.app()) as http:
        version = version_in(await http.get("/"))
        same = await http.get("/", headers={**ASKS, "x-holdfast-version": version})
        assert (same.status_code, same.content) == (204, b"")
        one.title = "Another, which is in no region"
        assert (await http.get("/", headers={**ASKS, "x-holdfast-version": version})).status_code == 204
        one.shown["one"].append("new")
        changed = await http.get("/", headers={**ASKS, "x-holdfast-version": version})
        assert (changed.status_code, "<li>new</li>" in changed.text) == (200, True)
        again = {**ASKS, "x-holdfast-version": changed.headers["x-holdfast-version"]}
        assert (await http.get("/", headers=again)).status_code == 204


async def test_the_program_may_say_the_version(one):
    one.version = 7
    async with client(one.app()) as http:
        version = version_in(await http.get("/"))
        one.shown["one"].append("not looked at")
        assert (await http.get("/", headers={**ASKS, "x-holdfast-version": version})).status_code == 204
        other = await http.get("/?page=2", headers={**ASKS, "x-holdfast-version": version})
        assert other.status_code == 200, "another address shows other things"
        one.version = 8
        assert (await http.get("/", headers={**ASKS, "x-holdfast-version": version})).status_code == 200


@pytest.mark.parametrize("asked", ["#gone", "#one,#gone", "<b>", "", "x" * 3000, "#one;drop"])
async def test_who_asks_for_what_is_not_there_gets_the_page(one, asked):
    async with client(one.app()) as http:
        page = await http.get("/", headers={"x-holdfast-regions": asked})
    assert page.text.startswith("<!doctype html>")


def test_two_regions_of_one_name_are_refused(one):
    one.app()
    request = Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/",
            "headers": [],
            "query_string": b"",
            "holdfast.pages.root": "",
        }
    )
    with pytest.raises(UsageError, match="'one' stands twice"):
        one.pages.render(request, "page.html", {"title": "x", "shown": {"one": []}, "names": ["one", "one"]})


# --- after a form ---


async def test_a_redirect_has_no_host_and_tells_once(one):
    async with client(one.app()) as http:
        moved = await http.post("/add?back=page%3D2%26q%3Da%20b")
        assert (moved.status_code, moved.headers["location"]) == (303, "/?page=2&q=a+b")
        cookie = moved.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert "secure" not in cookie
        page = await http.get(moved.headers["location"])
        assert "&lt;b&gt;added&lt;/b&gt;" in page.text
        assert "added" not in (await http.get("/")).text


@pytest.mark.parametrize(
    ("back", "location"),
    [
        ("//evil.example", "/"),
        ("https://evil.example/x", "/"),
        ("?q=1", "/?q=1"),
        ("q=a\r\nset-cookie: x=1", "/?q=a%0D%0Aset-cookie%3A+x%3D1"),
        ("/../..", "/"),
        ("", "/"),
    ],
)
async def test_back_is_a_query_and_never_an_address(one, back, location):
    async with client(one.app()) as http:
        moved = await http.post("/add", params={"back": back})
    assert moved.headers["location"] == location


@pytest.mark.parametrize("path", ["orders", "//evil.example", "https://evil.example", "/\\evil.example", ""])
def test_a_redirect_goes_to_a_path_of_the_app(one, path):
    one.app()
    with pytest.raises(UsageError, match="path of this app"):
        one.pages.redirect(Request({"type": "http", "headers": [], "holdfast.pages.root": ""}), path)


def test_a_long_message_fits_into_its_cookie(one):
    one.app()
    request = Request({"type": "http", "headers": [], "holdfast.pages.root": "", "scheme": "https"})
    cookie = one.pages.redirect(request, "/", tell="ü" * 5000).headers["set-cookie"]
    assert len(cookie) < 4096
    assert "; Secure" in cookie


@pytest.mark.parametrize("nonsense", ["x", "e30=", "bnVsbA==", "=", "%00", "W10=", "x" * 3000])
async def test_a_cookie_that_is_not_ours_is_ignored(one, nonsense):
    async with client(one.app()) as http:
        page = await http.get("/", headers={"cookie": f"holdfast_told={nonsense}; holdfast_zone={nonsense}; holdfast_theme={nonsense}"})  # fmt: skip
    assert page.status_code == 200
    assert 'class="toast' not in page.text
    assert "data-theme" not in page.text
    assert 'data-zone="UTC"' in page.text


# --- the reader ---


async def test_the_theme_is_chosen_by_a_form(one):
    async with client(one.app()) as http:
        chosen = await http.post("/-/theme", data={"theme": "dark", "path": "/", "back": "a=1"})
        assert (chosen.status_code, chosen.headers["location"]) == (303, "/?a=1")
        assert 'data-theme="dark"' in (await http.get("/")).text
        await http.post("/-/theme", data={"theme": "system", "path": "/"})
        assert "data-theme" not in (await http.get("/")).text
        for path in ("//evil.example", "https://evil.example", "/\\evil", "\r\nx: y"):
            assert (await http.post("/-/theme", data={"theme": "dark", "path": path})).headers[
                "location"
            ] == "/"
        assert (await http.post("/-/theme", json={"theme": "dark"})).status_code == 415
        elsewhere = {"sec-fetch-site": "cross-site"}
        assert (
            await http.post("/-/theme", data={"theme": "dark", "path": "/"}, headers=elsewhere)
        ).status_code == 403


async def test_the_zone_is_the_readers_or_the_programs(one):
    async with client(one.app()) as http:
        page = await http.get("/", headers={"cookie": "holdfast_zone=Europe/Zurich"})
        assert 'data-zone="Europe/Zurich"' in page.text
    async with client(one.app(zone=lambda request: "Asia/Tokyo")) as http:
        assert "data-zone" not in (await http.get("/")).text, "then the browser is not asked"
    for zone in ("Mars/Olympus", "../../etc/passwd", "America"):
        with pytest.raises(UsageError, match="no time zone"):
            one.app(zone=zone)


async def test_forms_have_the_token_of_the_session_where_there_is_one(one):
    app = one.app()

    async def with_session(scope, receive, send):
        await app({**scope, "holdfast.csrf": lambda: 'tok"en'}, receive, send)

    async with client(with_session) as http:
        assert '<input type="hidden" name="csrf_token" value="tok&#34;en">' in (await http.get("/")).text
    async with client(app) as http:
        assert "csrf_token" not in (await http.get("/")).text


# --- where it is mounted ---


@pytest.mark.parametrize(
    ("mount", "root"), [("", ""), ("/admin", ""), ("/a/b", ""), ("/admin", "/behind/proxy")]
)
async def test_addresses_carry_the_prefix(one, mount, root):
    inner = one.app()
    app = Starlette(routes=[Mount(mount, inner)]) if mount else inner
    async with client(app, root_path=root) as http:
        page = await http.get(f"{root}{mount}/")
        asset = re.search(r'src="([^"]+/app\.js)"', page.text)[1]
        assert asset.startswith(f"{root}{mount}/static/")
        script = await http.get(asset)
        assert (script.status_code, script.headers["cache-control"]) == (
            200,
            "public, max-age=31536000, immutable",
        )
        assert script.headers["content-type"].startswith("text/javascript")
        moved = await http.post(f"{root}{mount}/add")
        assert moved.headers["location"] == f"{root}{mount}/"
        assert f"path={root}{mount}/".rstrip("/") in moved.headers["set-cookie"].lower()


async def test_a_fastapi_app_takes_it_as_its_middleware(one):
    from fastapi import FastAPI

    from holdfast.web.pages import WithPages

    one.app()
    app = FastAPI()
    app.add_middleware(WithPages, pages=one.pages)

    @app.get("/hello")
    def hello(request: Request):
        values = {"title": "Hello", "shown": {"one": []}, "names": ["one"]}
        return one.pages.render(request, "page.html", values)

    async with client(app) as http:
        page = await http.get("/hello")
    assert "<h1>Hello</h1>" in page.text
    assert "content-security-policy" in page.headers


async def test_without_its_middleware_it_says_so(one):
    inner = one.app()._app
    async with client(inner) as http:
        with pytest.raises(UsageError, match="WithPages"):
            await http.get("/")


def test_options_are_checked(tmp_path):
    for options, words in (
        ({"templates": tmp_path / "none"}, "is no folder"),
        ({"static": tmp_path / "none"}, "is no folder"),
        ({"accent": "purple"}, "none of indigo"),
        ({"follow": 0}, "follow must be"),
    ):
        with pytest.raises(UsageError, match=words):
            Pages(**({"templates": TEMPLATES} | options))
