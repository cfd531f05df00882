"""Bodies that no schema thinks of, and texts that mean harm: refused with a reason, or kept as the text that they are."""

from __future__ import annotations

import admissions_kit as kit
import pytest
from admissions.web.app import make_app
from admissions_visitors import Visitor

NASTY = [
    b"", b"null", b"[]", b'"text"', b"{", b'{"a": 1' * 5000, b"[" * 100_000, b'{"mail": "\\ud800"}', b'{"name": "\\u0000"}',
    b'{"statement": "\\u0000"}', b'{"statement": "\\ud800"}', b'{"termId": null}', b'{"version": NaN}', b'{"version": 1e999}',
    b'{"version": true}', b'{"amount": ' + b"9" * 5000 + b"}", b'{"amount": -1, "reason": "x"}', b'{"method": "pm_\\n"}', b"\xff\xfe\x00",
    b'{"mail": "a@b.org\\r\\nBcc: c@d.org"}', b'{"key": {}}', b'{"officerId": "0", "version": 1}', b'{"outcome": "maybe"}',
    '{"name": "زبان 日本 🏳️\u200d🌈 e\u0301"}'.encode(),
]  # fmt: skip
XSS = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "javascript:alert(1)", "{{7*7}}", "${7*7}", "{0.__class__}", "%s%n%x",
    "<svg/onload=alert(1)>", "'; DROP TABLE applications; --", "\u202egnp.exe", "&lt;b&gt;", "]]>", "<!--", "{name}", "{% raw %}",
]  # fmt: skip
LEFT_OUT = {"/api/account/delete", "/api/logout"}


@pytest.mark.parametrize("role", ["applicant", "administrator"])
async def test_bodies_that_no_schema_thinks_of(portal, role):
    """At every route that takes JSON."""
    app = make_app(limited=False)
    async with Visitor(app) as visitor:
        await visitor.log_in("who@example.org", role)
        seen = 0
        for path, verbs in app.openapi()["paths"].items():
            for verb, operation in verbs.items():
                if (
                    "application/json" not in operation.get("requestBody", {}).get("content", {})
                    or path in LEFT_OUT
                ):
                    continue
                address = path.replace("{step}", "statement")
                address = "/".join("0" * 32 if part.startswith("{") else part for part in address.split("/"))
                for body in NASTY:
                    answer = await visitor.request(
                        verb, address, content=body, headers={"content-type": "application/json"}
                    )
                    told = (verb, path, body[:40], answer.status_code, answer.text[:200])
                    assert answer.status_code < 500, told
                    if answer.status_code >= 400:
                        assert answer.headers["content-type"] == "application/problem+json", told
                    seen += 1
        assert seen > 400


async def test_texts_that_mean_harm_are_kept_as_texts(site, officer):
    text = " ".join(XSS)
    async with Visitor(site) as anh:
        await anh.log_in()
        term = await kit.term()
        file = [("other", (f"{XSS[0][:60]}.pdf", kit.PDF, "application/pdf"))]
        answer = await anh.submit(term, name=XSS[1], address=text, statement=text, files=file)
        assert answer.status_code == 202, answer.text
        application = answer.json()["applicationId"]
        await anh.patch("/api/account", json={"name": XSS[0]})
        place = f"/api/cases/{application}"
        assert (await officer.post(f"{place}/notes", json={"text": text})).status_code == 204
        asked = await officer.post(f"{place}/requests", json={"kind": "other", "words": text})
        assert asked.status_code == 201, asked.text
        case = (await officer.get(place)).json()
        assert (case["answers"]["statement"], case["answers"]["name"]) == (text, XSS[1])
        assert (case["notes"][0]["text"], case["row"]["name"]) == (text, XSS[0])
        assert (await anh.get(f"/api/applications/{application}")).json()["wishes"] == [
            {"kind": "other", "words": text}
        ]
        for each in XSS:
            found = await officer.get("/api/cases", params={"search": each})
            assert found.status_code == 200
        for answer in (await anh.get(f"/api/applications/{application}"), await officer.get(place)):
            assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("cursor", ["none", "AAAA", "bnVsbA==", "WzFlOTk5LCAiYSJd", "\u00e9", "a" * 300])
async def test_cursors_that_were_not_made_here(site, officer, cursor):
    answer = await officer.get("/api/cases", params={"cursor": cursor})
    assert answer.status_code == 422, answer.text


async def test_a_stranger_is_told_nothing_of_who_is_here(site, box):
    await kit.person("here@example.org")
    async with Visitor(site) as eve:
        await eve.token()
        for path, more in (("register", {"password": "a long password", "name": "E"}), ("forgot", {})):
            told = [
                await eve.post(f"/api/{path}", json={"mail": mail, **more})
                for mail in ("here@example.org", "away@example.org")
            ]
            assert (told[0].status_code, told[0].content) == (told[1].status_code, told[1].content)
        told = [
            await eve.post("/api/login", json={"mail": mail, "password": "a long password"})
            for mail in ("here@example.org", "nobody@example.org")
        ]
        first, second = [(each.status_code, each.json()["detail"]) for each in told]
        assert first == second


async def test_requests_of_other_sites_are_refused(site, officer):
    del officer.headers["x-csrf-token"]
    assert (await officer.patch("/api/account", json={"language": "vi"})).status_code == 403
    foreign = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    assert (await officer.post("/api/logout", headers=foreign)).status_code == 403
