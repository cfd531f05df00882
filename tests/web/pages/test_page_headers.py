"""PageHeaders and the static files."""

from __future__ import annotations

import re

import pytest
from one_page import client

from holdfast.errors import UsageError
from holdfast.web.pages import Accent, PageHeaders
from holdfast.web.pages.accents import ACCENTS, accent_of, contrast
from holdfast.web.pages.headers import policy as policy_of

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types holdfast"
)


async def hello(scope, receive, send):
    fields = [(b"Referrer-Policy", b"no-referrer")] if scope["path"] == "/own" else []
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": b"hello"})


async def test_every_answer_has_them():
    async with client(PageHeaders(hello)) as http:
        plain = (await http.get("/")).headers
        own = (await http.get("/own")).headers
        secure = (await http.get("https://shop.test/")).headers
    assert plain["content-security-policy"] == CSP
    assert "unsafe" not in CSP
    assert (plain["x-content-type-options"], plain["referrer-policy"], plain["x-frame-options"]) == ("nosniff", "same-origin", "DENY")  # fmt: skip
    assert own.get_list("referrer-policy") == ["no-referrer"], (
        "what the app has set stays, and is not doubled"
    )
    assert "strict-transport-security" not in plain
    assert secure["strict-transport-security"] == "max-age=31536000"


async def test_what_the_kit_answers_itself_has_them_too(one):
    async with client(one.app()) as http:
        style = re.search(r'href="([^"]+/kit\.css)"', (await http.get("/")).text)[1]
        for answer in (await http.get(style), await http.get("/gone"), await http.post("/-/theme")):
            assert answer.headers["content-security-policy"] == CSP
            assert answer.headers["x-content-type-options"] == "nosniff"


def test_directives_are_opened_to_origins_only():
    allow = {"img-src": ["https://images.example.org", "data:"], "frame-src": ["https://pay.example.org"]}
    policy = dict(part.split(" ", 1) for part in policy_of(allow).split("; "))
    assert policy["img-src"] == "'self' https://images.example.org data:"
    assert policy["frame-src"] == "'self' https://pay.example.org"
    for wrong in (
        {"script-src": ["https://cdn.example.org"]},
        {"style-src": ["'unsafe-inline'"]},
        {"img-src": ["'unsafe-inline'"]},
        {"img-src": ["*"]},
        {"img-src": ["https://x; script-src *"]},
        {"form-action": ["http://example.org"]},
        {"connect-src": ["https://a\r\nx: y"]},
    ):
        with pytest.raises(UsageError, match="allow"):
            PageHeaders(hello, allow=wrong)


# --- static files ---


async def test_an_older_page_still_gets_its_files(one, tmp_path):
    (tmp_path / "own.js").write_text("export const one = 1;")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "deep.css").write_text("a {}")
    async with client(one.app(static=tmp_path)) as http:
        first = one.pages.assets.address("own.js")
        assert (await http.get(first)).text == "export const one = 1;"
        assert (await http.get(one.pages.assets.address("parts/deep.css"))).status_code == 200
    (tmp_path / "own.js").write_text("export const one = 2;")
    async with client(one.app(static=tmp_path)) as http:
        assert one.pages.assets.address("own.js") != first, "a new content has a new address"
        late = await http.get(first)
        assert (late.text, late.headers["cache-control"]) == ("export const one = 2;", "no-cache")
        assert (await http.head(first)).content == b""


async def test_only_what_is_in_the_folder_is_served(one):
    app = one.app()
    at = f"/static/{one.pages.assets.hash}"
    async with client(app) as http:
        for path in (
            f"{at}/../kit.py",
            f"{at}/%2e%2e/kit.py",
            f"{at}//etc/passwd",
            f"{at}/gone.js",
            "/static/kit.css",
            f"{at}/",
        ):
            assert (await http.get(path)).status_code == 404, path
        assert (await http.post(f"{at}/kit.css")).status_code == 404


def test_files_of_no_known_kind_are_refused(one, tmp_path):
    (tmp_path / "page.html").write_text("<script>")
    with pytest.raises(UsageError, match=r"page\.html"):
        one.app(static=tmp_path)
    with pytest.raises(UsageError, match=r"no static file 'gone\.css'"):
        one.app()
        one.pages.assets.address("gone.css")


# --- the accent ---


async def test_the_accent_is_a_style_sheet_of_its_own(one):
    mine = Accent("#214a86", "#e8eff9", "#94b8f2", "#172640")
    async with client(one.app(accent=mine)) as http:
        sheet = await http.get(one.pages.assets.address("accent.css"))
    assert "--accent: light-dark(#214a86, #94b8f2)" in sheet.text


def test_an_accent_that_cannot_be_read_is_refused():
    assert round(contrast("#ffffff", "#000000")) == 21
    for accent in ACCENTS.values():
        assert accent_of(accent) == accent
    with pytest.raises(UsageError, match=r"light accent #88aaff has a contrast of 2\.\d to #ffffff"):
        accent_of(Accent("#88aaff", "#eceefb", "#9aa5ff", "#20243f"))
    with pytest.raises(UsageError, match="dark accent"):
        accent_of(Accent("#4350c4", "#eceefb", "#4350c4", "#20243f"))
    with pytest.raises(UsageError, match="no colour"):
        accent_of(Accent("red}body{x:", "#eceefb", "#9aa5ff", "#20243f"))
