"""Forms and tables: what was sent, and pages of rows by key."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from holdfast.errors import UsageError
from holdfast.web.pages import Cursor, Form
from holdfast.web.pages.forms import FormRefused
from holdfast.web.pages.tables import sort_link, sorted_by


def request(body=b"", kind="application/x-www-form-urlencoded", query=""):
    chunks = [body[at : at + 7] for at in range(0, len(body), 7)] or [b""]

    async def receive():
        chunk = chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

    scope = {"type": "http", "method": "POST", "path": "/", "query_string": query.encode(), "headers": [(b"content-type", kind.encode())]}  # fmt: skip
    return Request(scope, receive)


async def test_a_form_is_read():
    form = await Form.read(request(b"name=Gr%C3%BCn+%26&tag=a&tag=b&text=a%0D%0Ab%00c&empty="))
    assert (form["name"], form["tag"], form.all("tag"), form["text"]) == ("Grün &", "b", ("a", "b"), "a\nbc")
    assert (form["empty"], form["gone"], "empty" in form, "gone" in form) == ("", "", True, False)
    assert list(form) == ["name", "tag", "text", "empty"]
    form.error("name", "first")
    form.error("name", "second")
    assert (form.ok, form.errors) == (False, {"name": "first"})


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"a=" + b"x" * 300_000, None, 413),
        (b"a=%ff", None, 400),
        ("a=ü".encode("latin-1"), None, 400),
        (b"&".join(b"a=1" for _ in range(1001)), None, 400),
        (b"{}", "application/json", 415),
        (b"", "", 415),
    ],
)
async def test_a_form_that_cannot_be_read_is_refused(body, kind, status):
    given = request(body) if kind is None else request(body, kind)
    with pytest.raises(FormRefused) as caught:
        await Form.read(given)
    assert caught.value.status_code == status


# --- tables ---


def page_of(rows, query, size):
    """As a database would answer."""
    cursor = Cursor(request(query=query.removeprefix("?")), size=size)
    found = rows
    if cursor.key is not None and cursor.is_backwards:
        found = [row for row in reversed(rows) if (row,) < cursor.key]
    elif cursor.key is not None:
        found = [row for row in rows if (row,) > cursor.key]
    return cursor.rows(found[: cursor.limit], key=lambda row: (row,), total=str(len(rows)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.integers(1, 9))
def test_all_rows_are_seen_once_there_and_back(count, size):
    rows, seen, query, pages = list(range(count)), [], "q=a%26b&sort=-at", []
    while query is not None:
        page = page_of(rows, query, size)
        assert page.first == len(seen) + 1
        seen += page.rows
        pages.append(list(page))
        query, last = page.older, page
    assert seen == rows
    for wanted in reversed(pages[:-1]):
        assert last.newer is not None
        assert parse_qs(last.newer[1:])["q"] == ["a&b"], "the filter stays"
        last = page_of(rows, last.newer, size)
        assert list(last) == wanted
    assert last.first == 1


def test_the_words_below_a_table():
    assert page_of(list(range(5)), "", 3).words == "1 to 3 of 5"
    assert page_of([], "", 3).words == "nothing"
    first = page_of(list(range(5)), "", 3)
    assert (first.newer, page_of(list(range(5)), first.older, 3).words) == (None, "4 to 5 of 5")


@pytest.mark.parametrize(
    "cursor", ["x", "bm8", "WzEsW11d", "W10", "e30", "x" * 2000, "WzAsWzFdXQ", "WzEsW3t9XV0", "%00"]
)
def test_a_cursor_that_is_not_ours_begins_at_the_begin(cursor):
    for way in ("older", "newer"):
        found = Cursor(request(query=f"{way}={cursor}"))
        assert (found.key, found.is_backwards) == (None, False)


def test_sorting_turns_round_and_begins_at_the_begin():
    query = {"q": "a", "sort": "wait", "older": "x"}
    assert sort_link(query, "wait") == "?q=a&sort=-wait"
    assert sort_link(query, "run") == "?q=a&sort=run"
    assert [sorted_by(query, word) for word in ("wait", "run", "")] == ["ascending", "", ""]
    assert sorted_by({"sort": "-wait"}, "wait") == "descending"
    assert sorted_by({}, "") == ""
    with pytest.raises(UsageError):
        Cursor(request(), size=0)
