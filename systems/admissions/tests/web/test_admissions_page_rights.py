"""Every page of the table, asked by everybody: strangers are led to the login, and nobody comes further than the role allows."""

from __future__ import annotations

import admissions_kit as kit
import pytest
from admissions.domain.roles import Role, may
from admissions.web.allowed import PAGES, Who
from admissions.web.app import app
from admissions.web.pages import page_routes
from admissions_visitors import Visitor
from starlette.routing import Match

NOBODY = "0" * 32
FILLED = {"{step}": "person", "{application_id}": NOBODY, "{document_id}": NOBODY}


def address(path):
    for name, value in FILLED.items():
        path = path.replace(name, value)
    while "{" in path:
        path = path[: path.index("{")] + NOBODY + path[path.index("}") + 1 :]
    return path


def test_each_page_of_the_table_is_there_and_no_other():
    found = {f"{method} {route.path}" for route in page_routes for method in route.methods - {"HEAD"}}
    assert found == set(PAGES)


@pytest.mark.parametrize("role", [None, *Role])
async def test_nobody_comes_further_than_the_table_says(quick_site, stripe_simulator, role):
    async with Visitor(quick_site, headers={"accept": "text/html"}) as visitor:
        if role is not None:
            await visitor.log_in(f"{role}@uni.example", str(role))
        for name, needs in PAGES.items():
            if name in ("POST /logout", "POST /account/delete"):
                continue
            method, _, path = name.partition(" ")
            form = {"data": {"x": "1"}} if method == "POST" else {}
            await visitor.token()  # that of a session that has begun meanwhile is another
            answer = await visitor.request(method, address(path), **form)
            told = (name, answer.status_code, answer.text[:300])
            assert answer.status_code < 500, told
            to_login = answer.status_code == 303 and answer.headers["location"].startswith("/login?next=")
            if needs is Who.ANYONE:
                assert not to_login and answer.status_code != 403, told
            elif role is None:
                assert to_login, told
            elif needs is Who.PERSON or may(role, needs):
                assert not to_login and answer.status_code != 403, told
            else:
                assert answer.status_code == 403, told


async def test_who_has_logged_in_comes_to_the_page_that_was_wanted(quick_site):
    async with Visitor(quick_site, headers={"accept": "text/html"}) as visitor:
        await visitor.log_in()
        await visitor.post("/logout", data={"x": "1"})
        await visitor.token()
        answer = await visitor.get("/account")
        assert answer.headers["location"] == "/login?next=/account"
        typed = {"mail": "anh@example.org", "password": "correct horse battery"}
        answer = await visitor.post("/login", data={**typed, "next": "/account"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/account")
        await visitor.token()
        await visitor.post("/logout", data={"x": "1"})
        await visitor.token()
        for evil in ("//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"):
            answer = await visitor.post("/login", data={**typed, "next": evil})
            assert answer.headers["location"] == "/applications", evil
            await visitor.token()
            await visitor.post("/logout", data={"x": "1"})
            await visitor.token()


async def test_an_account_is_not_tried_for_ever(quick_site):
    async with Visitor(quick_site, headers={"accept": "text/html"}) as visitor:
        await visitor.token()
        typed = {"mail": "guessed@example.org", "password": "wrong wrong wrong"}
        answers = [await visitor.post("/login", data=typed) for _ in range(11)]
        assert [each.status_code for each in answers] == [422] * 10 + [429]
        assert "There were too many tries. Try again in" in answers[-1].text


async def test_somebody_elses_application_is_not_there(site, stripe_simulator):
    term = await kit.term()
    async with Visitor(site) as anh, Visitor(site, headers={"accept": "text/html"}) as eve:
        await anh.log_in("anh@example.org")
        found = await anh.submitted(term)
        await eve.log_in("eve@example.org")
        await eve.token()
        for name in PAGES:
            method, _, path = name.partition(" ")
            if "{application_id}" not in path or path.startswith("/desk"):
                continue
            url = address(path.replace("{application_id}", found))
            answer = await eve.request(method, url, **({"data": {"x": "1"}} if method == "POST" else {}))
            assert answer.status_code in (404, 400, 415), (name, answer.status_code)


def test_no_route_hides_another():
    """Each address of the table leads to its own route, whatever stands before it."""
    for name in PAGES:
        method, _, path = name.partition(" ")
        scope = {
            "type": "http",
            "method": method,
            "path": address(path),
            "headers": [(b"accept", b"text/html")],
        }
        first = next(each for each in app.router.routes if each.matches(scope)[0] is Match.FULL)
        assert first.path == path, name
