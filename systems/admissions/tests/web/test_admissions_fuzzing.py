"""Whatever is sent to whatever route: an answer that the document of the API tells of, and never a fault of ours."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import warnings

import admissions_kit as kit
import httpx
import pytest
import schemathesis
import uvicorn
from admissions.core import hf
from admissions.tables import Base
from admissions.web.app import begin, make_app
from admissions_visitors import PASSWORD, TYPED, give_password
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from holdfast.testing import fresh

BUDGET = 12.0  # seconds for all routes, for each role
LEAST, EACH = 2, 8  # requests of a kind for a route
# They end the session that asks, or the account, or log in as another.
LEFT_OUT = {
    "/api/logout",
    "/api/login",
    "/api/account/logins/{name}",
    "/api/account/delete",
    "/api/people/{person_id}/role",
}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


class Served:
    """The app behind a real server, on a loop of its own in a thread, without limits for the number of requests."""

    def __init__(self, database):
        self._database, self._socket = database, socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.app = make_app(limited=False)
        self._server = uvicorn.Server(
            uvicorn.Config(self.app, log_level="critical", lifespan="off", access_log=False)
        )
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self):
        async with fresh(hf, self._database):
            async with hf.sqlalchemy().begin() as connection:
                await connection.run_sync(Base.metadata.create_all)
            await begin()
            for mail, role in (("anh@example.org", "applicant"), ("ada@uni.example", "administrator")):
                await give_password(await kit.person(mail, role=role))
            self.term = await kit.term()
            await self._server.serve(sockets=[self._socket])

    def __enter__(self):
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "it did not start"
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def server(stripe_simulator, tmp_path):
    with Served(f"sqlite:///{tmp_path / 'admissions.db'}") as served:
        yield served


def logged_in(server, mail):
    """Cookies and headers."""
    with httpx.Client(base_url=server.url, timeout=30) as browser:
        answer = browser.post("/api/login", json={"mail": mail, "password": PASSWORD})
        assert answer.status_code == 200, answer.text
        return dict(browser.cookies), {"x-csrf-token": answer.json()["csrf"]}


def things_of(server, cookies, headers):
    with httpx.Client(base_url=server.url, cookies=cookies, headers=headers, timeout=30) as browser:
        answer = browser.post(
            "/applications", data={"termId": server.term, **TYPED}, files={"other": ("a.pdf", kit.PDF, "application/pdf")},
            headers={"idempotency-key": "first"},
        )  # fmt: skip
        assert answer.status_code == 202, answer.text
        told = answer.json()
    return {
        "application_id": told["applicationId"],
        "document_id": told["documents"][0]["id"],
        "term_id": server.term,
        "step": "person",
    }


@pytest.mark.parametrize("mail", ["anh@example.org", "ada@uni.example"])
def test_whatever_is_sent_is_answered_as_the_document_says(server, mail):
    things = things_of(server, *logged_in(server, "anh@example.org"))
    cookies, headers = logged_in(server, mail)
    schema = schemathesis.openapi.from_url(f"{server.url}/api/openapi.json")
    operations = [each.ok() for each in schema.get_all_operations()]
    operations = [each for each in operations if each.path not in LEFT_OUT]
    operations.sort(key=lambda each: each.method == "delete")  # others need what these remove
    assert len(operations) > 40
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
    assert {200, 202, 403, 404, 422} <= seen, seen


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
