"""Whatever is written into whatever field of whatever form: an answer in words, and never a fault of ours. On both stores."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import httpx
import pytest
from publisher.core import settings
from publisher.outside.deviantart import DeviantArt
from publisher.web.app import make_app
from visitors import Browser

PAGES = [
    "/", "/calendar", "/calendar?view=week", "/posts", "/drafts", "/review", "/upload", "/automations", "/sales", "/templates", "/files", "/keys", "/settings", "/galleries", "/browse", "/welcome",
]  # fmt: skip
# They end the session that asks, or the account; DeviantArt is asked by others.
LEFT_OUT = re.compile(r"^/(logout|login|settings/(leave|logins|disconnect)|galleries/look)")
# One field at a time has these; both stores must refuse the last ones alike.
NUMBERS = ["9" * 5000, "--5", "²"]
STORED = ["a\x00b", "9" * 30]
# All fields of a form have these at once.
TEXTS = [
    "", " ", "-1", "nan", "½", "٣", "0x10", "1_000", "null", "1e999", "9999-12-31T23:59", "2026-02-30T10:00+99:99", "0001-01-01T00:00", "../../etc/passwd", "javascript:alert(1)", "//evil.example",
    "a" * 20_000, ",".join("x" * 300), "\n\r\t", "\u202egnp.exe", "e\u0301" * 60, "日本語のタイトル", "زبان فارسی", "🏳️\u200d🌈" * 40, "\ufffe\uffff",
    "'; DROP TABLE posts; --", "{{ 7 * 7 }}", "%s%n", "f" * 32,
]  # fmt: skip
RAW = [b"%ff%fe", b"%ed%a0%80", b"%00", b"%", b"%zz"]  # no UTF-8, a lone surrogate, and no escapes at all
QUERIES = ["from", "before", "after", "q", "show", "view", "at", "day", "tag", "topic", "month", "week", "state", "edit", "trial", "folder", "kind"]  # fmt: skip


class Forms(HTMLParser):
    """The forms of a page: where each goes, and what it says when nothing is changed. Links beside them."""

    def __init__(self, text):
        super().__init__()
        self.forms, self.links, self._form, self._select = [], [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "a" and (found.get("href") or "").startswith("/"):
            self.links.append(found["href"])
        if tag == "form":
            self._form = {
                "action": found.get("action", ""),
                "method": found.get("method", "get"),
                "fields": [],
            }
            self.forms.append(self._form)
        if self._form is None:
            return
        if tag in ("input", "textarea", "button") and found.get("name"):
            self._form["fields"].append((found["name"], found.get("value") or ""))
        if tag == "select":
            self._select = found.get("name")
        if tag == "option" and self._select and "selected" in found:
            self._form["fields"].append((self._select, found.get("value") or ""))

    def handle_endtag(self, tag):
        if tag == "form":
            self._form = None


@pytest.fixture
async def ada(any_hf, simulator):
    """An artist with a post of each kind; nothing is limited."""
    app = make_app(limited=False)
    async with DeviantArt.open(settings.deviantart_url, settings.call_timeout_s) as site:
        app.state.site = site
        async with Browser(app) as browser:
            await browser.log_in("ada-arc")
            for name in ("draft.png", "due.png"):
                post_id = await browser.make_draft(name)
            told = await browser.post(
                f"/api/posts/{post_id}/schedule", json={"at": (await any_hf.now()) + 86_400}
            )
            assert told.is_success, told.text
            for path, wanted in (
                ("/api/templates", {"kind": "tags", "name": "ink", "text": "ink"}),
                ("/api/presets", {"name": "small", "low": 500, "high": 900}),
                ("/api/automations", {"name": "Mornings"}),
                ("/api/keys", {"name": "Brush"}),
            ):
                assert (await browser.post(path, json=wanted)).is_success
            yield browser


async def crawled(browser):
    """Each form once for each kind of address, and the addresses of all pages."""
    forms, seen, waiting = {}, set(), list(PAGES)
    while waiting:
        address = waiting.pop(0)
        if _kind(address) in seen or not address.startswith("/"):
            continue
        seen.add(_kind(address))
        answer = await browser.get(address)
        assert answer.status_code < 500, address
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        page = Forms(answer.text)
        for form in page.forms:
            if form["method"] == "post" and not LEFT_OUT.match(form["action"]):
                names = tuple(sorted({name for name, _ in form["fields"]}))
                forms.setdefault((_kind(form["action"]), names), form)
        waiting += [
            link
            for link in page.links
            if link.startswith(("/posts/", "/automations/", "/templates", "/files"))
        ]
    return forms, seen


def _kind(address):
    return re.sub(r"[0-9a-f]{32}", "ID", address)


def encoded(fields):
    return str(httpx.QueryParams(fields)).encode()


FORM = {"content-type": "application/x-www-form-urlencoded"}


async def test_every_field_of_every_form(ada, any_url):
    forms, _ = await crawled(ada)
    assert len(forms) > 25, sorted(forms)
    faults, asked = [], 0
    # What removes things comes last: the others need them.
    for form in sorted(
        forms.values(), key=lambda form: form["action"] == "/bulk" or "delete" in form["action"]
    ):
        for body in bodies_of(form["fields"], whole=any_url.startswith("sqlite")):
            answer = await ada.post(form["action"], content=body, headers=FORM)
            asked += 1
            if answer.status_code >= 500:
                faults.append((form["action"], body[:60], body[-60:], answer.status_code))
    assert not faults, (len(faults), faults[:20])
    assert asked > 150


def bodies_of(fields, *, whole):
    """Of a form: each field alone, then all of them. Buttons of one name are pressed one by one."""
    free = {name: value for name, value in fields if name != "csrf"}
    pressed = [value for name, value in fields if name == "do"] or [None]
    for place, name in enumerate(free):
        for do in pressed if whole else pressed[:1]:
            others = [(each, value) for each, value in free.items() if each not in (name, "do")]
            others += [("do", do)] if do is not None and name != "do" else []
            values = [NUMBERS[0], NUMBERS[1 + place % 2]] if whole else STORED
            yield from (encoded([*others, (name, value)]) for value in values)
    if whole:
        yield from rotated(list(free), 4)
        yield from (b"&".join(name.encode() + b"=" + raw for name in free) for raw in RAW[:2])
        yield b"&".join(name.encode() + b"=" + RAW[place % 5] for place, name in enumerate(free))
        yield from (encoded([(name, "1") for name in free] * 20), b"", b"&&&=;=&")


def rotated(names, turns):
    """Each name has another of the texts, and in each turn a later one."""
    for turn in range(turns):
        yield encoded([(name, TEXTS[(place + turn * 5) % len(TEXTS)]) for place, name in enumerate(names)])


async def test_every_question_behind_every_page(ada):
    """Also the addresses that pages lead to: what is behind the question mark is anybody's."""
    _, pages = await crawled(ada)
    faults = []
    addresses = {each.partition("?")[0] for each in pages if "ID" not in each}
    for address in sorted(addresses | {"/api/posts", "/posts/%00", "/automations/a%00b", "/pictures/%00"}):
        questions = [encoded([(name, value[:2000]) for name in QUERIES]) for value in [*STORED, *NUMBERS]]
        questions += [question[:8000] for question in rotated(QUERIES, 4)]
        questions += [b"&".join(name.encode() + b"=" + raw for name in QUERIES) for raw in RAW]
        for question in questions:
            answer = await ada.get(f"{address}?{question.decode()}")
            if answer.status_code >= 500:
                faults.append((address, question[:60]))
    assert not faults, (len(faults), faults[:20])
