"""Whatever is sent to whatever route: an answer that the document of the API tells of, and never a fault of ours."""

from __future__ import annotations

import time
import warnings
from urllib.parse import urlsplit

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serving import Served
from visitors import picture

BUDGET = 40.0  # seconds for all routes
LEAST, EACH = 3, 10  # requests of a kind for a route
# They end the session that asks, or the account.
LEFT_OUT = {"/api/account/logout-everywhere", "/api/account/logins/{name}", "/api/account/leave"}
THINGS = [
    ("key_id", "/api/keys", {"name": "Brush"}),
    ("template_id", "/api/templates", {"kind": "tags", "name": "ink", "text": "ink"}),
    ("preset_id", "/api/presets", {"name": "small", "low": 500, "high": 900}),
    ("automation_id", "/api/automations", {"name": "Mornings"}),
    ("export_id", "/api/account/exports", None),
]
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture
def server(simulator, tmp_path):
    with Served(f"sqlite:///{tmp_path / 'publisher.db'}") as served:
        yield served


def logged_in(server):
    """Cookies and headers of an artist who has a draft."""
    with httpx.Client(base_url=server.url) as browser:
        csrf = browser.get("/api/account/session").json()["csrf"]
        address = browser.post("/login", headers={"x-csrf-token": csrf}).headers["location"]
        back = urlsplit(httpx.post(address, data={"artist": "ada-arc"}).headers["location"])
        assert browser.get(f"{back.path}?{back.query}").headers["location"] == "/"
        headers = {"x-csrf-token": browser.get("/api/account/session").json()["csrf"]}
        told = browser.post(
            "/api/uploads", files={"files": ("a.png", picture("a"), "image/png")}, headers=headers
        )
        assert told.status_code == 201, told.text
        [file] = told.json()["files"]
        things = {"post_id": file["post_id"], "file_id": file["file_id"]}
        for name, path, wanted in THINGS:
            made = browser.post(path, json=wanted, headers=headers)
            assert made.is_success, made.text
            things[name] = made.json()["id"]
        return dict(browser.cookies), headers, things


def test_whatever_is_sent_is_answered_as_the_document_says(server):
    cookies, headers, things = logged_in(server)
    schema = schemathesis.openapi.from_url(f"{server.url}/api/openapi.json")
    operations = [each.ok() for each in schema.get_all_operations()]
    operations = [each for each in operations if each.path not in LEFT_OUT]
    operations.sort(key=lambda each: each.method == "delete")  # others need what these remove
    assert len(operations) > 60
    asked = dict.fromkeys((each.label for each in operations), 0)
    seen, faults = set(), []
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        for operation in operations:
            try:
                share = time.monotonic() + BUDGET / 2 / len(operations)
                _fuzz(operation, mode, share, asked, seen, things, cookies=cookies, headers=headers)
            except Unsatisfiable:  # it takes nothing that could be wrong
                continue
            except Exception as error:
                faults.append(error)
    if faults:
        raise ExceptionGroup("answers that the document does not tell of", faults)
    assert min(asked.values()) >= 1, asked
    assert {200, 201, 204, 404, 422} <= seen, seen


def _fuzz(operation, mode, until, asked, seen, things, **given_by_us):
    @settings(
        max_examples=EACH, deadline=None, database=None, derandomize=True, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case):
        if asked[operation.label] >= LEAST and time.monotonic() > until:
            return
        asked[operation.label] += 1
        if asked[operation.label] % 2:  # of something that is there
            case.path_parameters.update(
                {name: things[name] for name in case.path_parameters if name in things}
            )
        answer = case.call(**given_by_us)
        seen.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tool, about its own strategies
        one()


NASTY = [
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"{",
    b'{"a": 1' * 5000,
    b"[" * 100_000,
    b'{"title": "\\ud800"}',
    b'{"title": "\\u0000"}',
    b'{"title": 1}',
    b'{"title": null}',
    b'{"at": NaN}',
    b'{"at": 1e999}',
    b'{"at": true}',
    b'{"at": "1"}',
    b'{"at": ' + b"9" * 5000 + b"}",
    b'{"post_ids": [[]]}',
    b'{"post_ids": []}',
    b'{"days": 1.5, "post_ids": ["00000000000000000000000000000000"]}',
    b"\xff\xfe\x00",
    '{"name": "زبان 日本 🏳️\u200d🌈 e\u0301"}'.encode(),
]


def test_bodies_that_no_schema_thinks_of(server):
    """At every route that takes a body: refused with a reason, or taken, in a document either way."""
    cookies, headers, _ = logged_in(server)
    schema = server.app.openapi()
    with httpx.Client(base_url=server.url, cookies=cookies, headers=headers) as browser:
        for path, verbs in schema["paths"].items():
            for verb, operation in verbs.items():
                if "requestBody" not in operation or path in LEFT_OUT:
                    continue
                address = path.replace("{", "").replace("}", "")
                address = "/".join("0" * 32 if part.endswith("_id") else part for part in address.split("/"))
                for body in NASTY:
                    answer = browser.request(
                        verb, address, content=body, headers={"content-type": "application/json"}
                    )
                    told = (verb, path, body[:30], answer.status_code, answer.text[:200])
                    assert answer.status_code < 500, told
                    if answer.status_code >= 400:
                        assert answer.headers["content-type"] == "application/problem+json", told
