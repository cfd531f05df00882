"""Who may ask what: each route of the table, for a stranger and for each role; and what belongs to another is not there."""

from __future__ import annotations

import admissions_kit as kit
import pytest
from admissions.core import hf
from admissions.desk.people import Person
from admissions.domain.roles import Role
from admissions.ids import new_id
from admissions.web.allowed import API, Who, is_allowed
from admissions.web.app import ROUTERS, make_app
from admissions.web.complete import check_routes
from admissions_visitors import PASSWORD, Visitor
from fastapi import APIRouter

TABLES = ("people", "tickets", "applications", "documents", "steps", "requests", "notes", "payments", "entries", "decisions", "letters")  # fmt: skip
# What is sent to a route that takes a body: right, so that only the right to ask decides. One that is missing here answers 422, and the test fails.
BODIES = {
    "POST /api/register": {"mail": "new@example.org", "password": PASSWORD, "name": "A"},
    "POST /api/confirm": {"key": "none"},
    "POST /api/login": {"mail": "nobody@example.org", "password": PASSWORD},
    "POST /api/forgot": {"mail": "nobody@example.org"},
    "POST /api/reset": {"key": "none", "password": PASSWORD},
    "PATCH /api/account": {"language": "vi"},
    "POST /api/account/mail": {"mail": "other@example.org"},
    "POST /api/account/password": {"oldPassword": "wrong", "newPassword": PASSWORD},
    "POST /api/account/delete": {"password": "wrong"},
    "POST /api/applications": {"termId": "{term_id}"},
    "PATCH /api/applications/{application_id}/{step}": {"statement": "mine now"},
    "POST /api/applications/{application_id}/payment": {"method": "pm_card_visa"},
    "POST /api/applications/{application_id}/withdraw": {"reason": "mine now"},
    "POST /api/cases/{application_id}/assign": {"officerId": None, "version": 2**52},
    "POST /api/cases/{application_id}/notes": {"text": "mine now"},
    "POST /api/cases/{application_id}/requests": {"kind": "other", "words": "mine now"},
    "PUT /api/cases/{application_id}/decision": {"outcome": "accept", "version": 0},
    "POST /api/cases/{application_id}/decision/check": {"version": 2**52},
    "POST /api/payments/{application_id}/refund": {"amount": 1, "reason": "mine now"},
    "PUT /api/people/{person_id}/role": {"role": "applicant"},
}
FORMS = {"POST /applications", "POST /api/applications/{application_id}/documents"}
ENDS = {"POST /api/logout"}  # asked last, since nobody is logged in afterwards


def sent(route, things):
    headers = {"idempotency-key": new_id()}
    if route in FORMS:
        told = {"termId": things["term_id"]} if route == "POST /applications" else {}
        return {"files": {"other": ("b.pdf", kit.PDF, "application/pdf")}, "data": told, "headers": headers}
    body = BODIES.get(route)
    if body is None:
        return {"headers": headers}
    told = {
        name: value.format_map(things) if isinstance(value, str) else value for name, value in body.items()
    }
    return {"json": told, "headers": headers}


async def ask(visitor, route, things):
    method, path = route.split(" ")
    return await visitor.request(method, path.format_map(things), **sent(route, things))


@pytest.fixture
async def theirs(anh, term, stripe_simulator):
    """One of each kind, by the name of its parameter; what can be one's own is anh's."""
    application = await anh.submitted(term)
    draft = await anh.draft(await kit.term())
    whole = (await anh.get(f"/api/applications/{application}")).json()
    [login] = (await anh.get("/api/account/logins")).json()
    return {
        "application_id": application, "draft_id": draft, "document_id": whole["documents"][0]["id"], "term_id": term,
        "person_id": anh.id, "name": login["name"], "step": "statement",
    }  # fmt: skip


async def everything():
    async with hf.transaction() as tx:
        return {name: sorted(map(repr, await tx.fetch(f"SELECT * FROM {name}"))) for name in TABLES}


@pytest.mark.parametrize("role", [None, *Role])
async def test_each_role_may_ask_what_the_table_says_and_nothing_else(site, theirs, role):
    asked = 0
    async with Visitor(site) as visitor:
        if role is None:
            await visitor.token()
        else:
            await visitor.log_in(f"{role}@uni.example", role)
        person = None if role is None else Person("", "", "", role, "en", is_confirmed=True, is_blocked=False)
        for route in sorted(API, key=lambda each: each in ENDS):
            answer = await ask(visitor, route, theirs)
            if is_allowed(person, API[route]):
                assert answer.status_code != 403, (route, answer.text)
                assert answer.status_code < 500, (route, answer.text)
                if API[route] is not Who.ANYONE:
                    assert answer.status_code != 401, (route, answer.text)
            else:
                assert answer.status_code == (401 if role is None else 403), (route, answer.text)
            asked += 1
    assert asked == len(API) > 40


async def test_who_is_blocked_is_nobody(anh, theirs):
    async with hf.transaction() as tx:
        await tx.execute("UPDATE people SET blocked_at = 1.0 WHERE id = $1", anh.id)
    for route, needs in API.items():
        if needs is not Who.ANYONE:
            assert (await ask(anh, route, theirs)).status_code == 401, route
    refused = await anh.post("/api/login", json={"mail": "anh@example.org", "password": PASSWORD})
    assert refused.status_code == 401


async def test_what_is_anothers_is_not_there(anh, binh, theirs):
    """It looks as what has never been there, and nothing of it changes."""
    before, seen = await everything(), 0
    nothing = dict.fromkeys(theirs, "0" * 32) | {
        "name": "0",
        "step": "statement",
        "term_id": theirs["term_id"],
    }
    for application in (theirs["application_id"], theirs["draft_id"]):
        things = theirs | {"application_id": application}
        for route in (
            each for each in API if each.startswith(("GET /api/app", "POST /api/app", "PATCH", "DELETE"))
        ):
            if "{" not in route:
                continue
            answer, other = await ask(binh, route, things), await ask(binh, route, nothing)
            assert answer.status_code == 404, (route, answer.status_code, answer.text)
            assert _plain(answer) == _plain(other), "what is not there and what is not his look the same"
            seen += 1
    assert seen >= 20
    assert (await binh.get(f"/applications/{theirs['application_id']}/status")).status_code == 404
    assert await everything() == before


async def test_a_document_of_one_case_is_not_one_of_another(anh, binh, officer, theirs):
    other = await binh.submitted(theirs["term_id"])
    answer = await officer.get(f"/api/cases/{other}/documents/{theirs['document_id']}")
    assert answer.status_code == 404
    draft = await binh.draft(await kit.term())
    answer = await binh.delete(f"/api/applications/{draft}/documents/{theirs['document_id']}")
    assert answer.status_code == 404
    assert len((await anh.get(f"/api/applications/{theirs['application_id']}")).json()["documents"]) == 1


async def test_a_draft_is_nobodys_business(officer, theirs):
    """Not even an officer's, before it is sent."""
    things = theirs | {"application_id": theirs["draft_id"]}
    for route in (each for each in API if "/api/cases/{" in each and "decision" not in each):
        answer = await ask(officer, route, things)
        assert answer.status_code in (404, 409), (route, answer.text)
        if route.startswith("GET"):
            assert answer.status_code == 404, route
    listed = (await officer.get("/api/cases")).json()["cases"]
    assert [each["id"] for each in listed] == [theirs["application_id"]]


async def test_lists_show_ones_own(binh, theirs):
    ids = [theirs["application_id"], theirs["draft_id"], theirs["document_id"], theirs["name"]]
    for route in (
        "/api/applications",
        "/api/account",
        "/api/account/data",
        "/api/account/logins",
        "/api/session",
    ):
        answer = await binh.get(route)
        assert answer.status_code == 200
        assert not [each for each in ids if each in answer.text], route


async def test_a_login_of_another_is_not_ended(anh, binh, theirs):
    assert (await binh.delete(f"/api/account/logins/{theirs['name']}")).status_code == 404
    assert (await anh.get("/api/account")).status_code == 200


def _plain(answer):
    return {name: value for name, value in answer.json().items() if name != "correlation_id"}


# --- the table itself ---


def test_a_route_that_nobody_has_thought_of_stops_the_start():
    router = APIRouter()

    @router.get("/api/everything")
    def everything_of_all():
        return []

    routes = [route for each in ROUTERS for route in each.router.routes]
    with pytest.raises(RuntimeError, match="GET /api/everything"):
        check_routes([*routes, *router.routes])
    with pytest.raises(RuntimeError, match="names what is not there: GET /api/account"):
        check_routes(each for each in routes if getattr(each, "path", "") != "/api/account")


def test_a_route_that_asks_nobody_stops_the_start():
    router = APIRouter()

    @router.get("/api/audit")
    def open_to_all():
        return []

    routes = [
        route
        for each in ROUTERS
        for route in each.router.routes
        if getattr(route, "path", "") != "/api/audit"
    ]
    with pytest.raises(RuntimeError, match="do not ask who it is: GET /api/audit"):
        check_routes([*routes, *router.routes])


def test_the_document_of_the_api_has_all_routes():
    found = make_app(limited=False).openapi()["paths"]
    named = {f"{method.upper()} {path}" for path, verbs in found.items() for method in verbs}
    assert set(API) <= named
