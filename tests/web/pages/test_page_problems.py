"""Errors as pages: what is known, nothing of what is inside, and one way on."""

from __future__ import annotations

import pytest
from one_page import client
from starlette.exceptions import HTTPException

from holdfast import within
from holdfast.errors import StoreUnavailable


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
