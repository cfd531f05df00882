"""Errors as pages: what is known, nothing of what is inside, and one way on."""

from __future__ import annotations

import pytest
from one_page import client
from starlette.exceptions import HTTPException

from holdfast import Holdfast, within
from holdfast.errors import StoreUnavailable
from holdfast.web import BodyLimits, Correlation, ProblemError, Problems, Sessions
from holdfast.web.problems import Problem


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ValueError("password=hunter2"), 500, "Something went wrong here"),
        (StoreUnavailable("hunter2"), 503, "The database does not answer"),
        (HTTPException(403), 403, "You may not do that"),
        (
            HTTPException(409, "Somebody <b>else</b> was first."),
            409,
            "Somebody &lt;b&gt;else&lt;/b&gt; was first.",
        ),
    ],
)
async def test_an_error_is_a_page(one, notes, error, status, words):
    one.error = error
    with within(correlation_id="story-7"):
        async with client(one.app(), raise_app_exceptions=False) as http:
            page = await http.get("/broken")
    assert page.status_code == status
    assert words in page.text
    assert "hunter2" not in page.text
    assert "<code>story-7</code>" in page.text
    assert "content-security-policy" in page.headers
    noted = [fields["error"] for name, fields in notes if name in ("request.failed", "request.refused")]
    assert noted == ([] if isinstance(error, HTTPException) else [repr(error)])
    assert ("retry-after" in page.headers) == (status == 503)


async def test_a_page_that_is_not_there_is_one_too(one):
    async with client(one.app()) as http:
        page = await http.get("/gone", headers={"x-holdfast-regions": "#one"})
    assert (page.status_code, "There is no such page" in page.text) == (404, True)


BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


async def test_a_form_that_is_too_old_is_told_on_a_page(one, tmp_path):
    """By a browser without scripts, which shows whatever comes; programs get the document."""
    async with Holdfast(f"sqlite:///{tmp_path / 'a.db'}") as hf:
        app = one.app()
        app._app = Sessions(app._app, hf, secure=False)
        async with client(Correlation(app)) as http:
            await http.get("/")
            page = await http.post("/add", headers=BROWSER)
            assert (page.status_code, page.headers["content-type"]) == (403, "text/html; charset=utf-8")
            assert "<h1>This page is too old</h1>" in page.text
            assert page.headers["x-correlation-id"] in page.text
            assert "content-security-policy" in page.headers
            assert page.headers["cache-control"] == "no-store"
            foreign = await http.post("/add", headers={**BROWSER, "sec-fetch-site": "cross-site"})
            assert "This request came from another site" in foreign.text
            for accept in (
                "application/json",
                "*/*",
                "text/html, application/json",
                "application/problem+json",
            ):
                document = await http.post("/add", headers={"accept": accept})
                assert document.json()["code"] == "FORM_TOKEN_WRONG"


async def test_what_a_handler_refuses_and_what_is_too_large_are_pages_too(one):
    async def refused(scope, receive, send):
        if scope["path"] == "/refused":
            raise ProblemError(Problem(status=429, title="Too <many>", code="X", retry_after=7))
        await receive()

    app = one.app()
    app._app = Problems(BodyLimits(refused, total=10))
    async with client(app) as http:
        page = await http.get("/refused", headers=BROWSER)
        assert (page.status_code, page.headers["retry-after"]) == (429, "7")
        assert "Too &lt;many&gt;" in page.text
        large = await http.post("/add", content=b"x" * 11, headers=BROWSER)
        assert (large.status_code, "The request is too large" in large.text) == (413, True)
        assert large.headers["connection"] == "close"


async def test_a_page_that_cannot_be_drawn_is_a_document(one, notes):
    def broken(request):
        raise LookupError("no session here")

    app = one.app(context=broken)
    app._app = BodyLimits(app._app, total=10)
    async with client(app) as http:
        large = await http.post("/add", content=b"x" * 11, headers=BROWSER)
    assert (large.status_code, large.json()["code"]) == (413, "REQUEST_TOO_LARGE")
    assert ["no session here" in fields["error"] for name, fields in notes if name == "request.failed"] == [
        True
    ]
