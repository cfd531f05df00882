"""API keys: shown once, good for what they are for and nothing else, and for nothing once they are revoked."""

from __future__ import annotations

import pytest
from publisher.core import hf as program
from publisher.desk import keys
from publisher.web.app import ROUTERS
from visitors import Browser, picture

TOOLS = {"POST /api/uploads/tool", "POST /api/sales/next", "GET /api/sales", "GET /api/sales/counts", "GET /api/sales/csv",
         "POST /api/sales/{sale_id}/complete", "POST /api/sales/{sale_id}/fail"}  # fmt: skip


async def key_of(browser, name="Brush"):
    answer = await browser.post("/api/keys", json={"name": name})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def send(tool, secret):
    files = {"files": ("a.png", picture("c"), "image/png")}
    return await tool.post("/api/uploads/tool", files=files, headers={"authorization": f"Bearer {secret}"})


async def test_a_secret_is_shown_once_and_kept_as_a_hash(ada_in):
    made = await key_of(ada_in)
    assert made["secret"].startswith("pub_")
    assert len(made["secret"]) == 68
    assert made["prefix"] == made["secret"][:12]
    [listed] = (await ada_in.get("/api/keys")).json()
    assert "secret" not in listed
    async with program.transaction() as tx:
        rows = await tx.fetch("SELECT * FROM api_keys")
    assert made["secret"] not in str(rows)


async def test_a_secret_is_not_kept_for_who_asks_again(ada_in):
    """Answers to keyed requests lie in the database for days."""
    headers = {"idempotency-key": "same"}
    first = (await ada_in.post("/api/keys", json={"name": "a"}, headers=headers)).json()
    second = (await ada_in.post("/api/keys", json={"name": "a"}, headers=headers)).json()
    assert first["secret"] != second["secret"]


async def test_its_use_is_noted(ada_in, site):
    made = await key_of(ada_in)
    async with Browser(site) as tool:
        assert (await send(tool, made["secret"])).status_code == 201
    [listed] = (await ada_in.get("/api/keys")).json()
    assert listed["used_at"] >= listed["made_at"]


async def test_a_revoked_key_opens_nothing_at_once(ada_in, site):
    made = await key_of(ada_in)
    async with Browser(site) as tool:
        assert (await send(tool, made["secret"])).status_code == 201
        answer = await ada_in.post(f"/api/keys/{made['id']}/revoke")
        assert answer.json()["revoked_at"] is not None
        refused = await send(tool, made["secret"])
        assert (refused.status_code, refused.json()["code"]) == (401, "LOGIN_WANTED")
    assert (await ada_in.delete(f"/api/keys/{made['id']}")).status_code == 204
    assert (await ada_in.get("/api/keys")).json() == []


@pytest.mark.parametrize(
    "told",
    [
        "Bearer",
        "Bearer ",
        "Bearer pub_",
        "Bearer pub_" + "0" * 64,
        "Basic cHViXzA6MA==",
        "Bearer " + "é" * 64,
        "x",
    ],
)
async def test_what_is_no_key_opens_nothing(site, ada_in, told):
    """Also in a browser that is logged in: who tells a key means it."""
    for browser in (ada_in, Browser(site)):
        answer = await browser.post(
            "/api/uploads/tool",
            files={"files": ("a.png", picture("c"), "image/png")},
            headers={"authorization": told.encode()},
        )
        assert answer.status_code == 401


def routes():
    return [
        (method, route.path)
        for each in ROUTERS
        for route in each.router.routes
        for method in sorted(route.methods - {"HEAD"})
    ]


async def test_a_key_opens_the_routes_for_tools_and_no_other(ada_in, site):
    """Over all routes: a stolen key of a tool neither reads drafts nor deletes the account."""
    secret = (await key_of(ada_in))["secret"]
    seen = set()
    async with Browser(site, headers={"authorization": f"Bearer {secret}"}) as tool:
        for method, path in routes():
            tool.cookies.clear()
            answer = await tool.request(method, path.format_map(Ids()))
            if answer.status_code != 401:
                seen.add(f"{method} {path}")
    assert seen == TOOLS | {"GET /api/account/session"}


class Ids(dict):
    def __missing__(self, name):
        return "0" * 32


async def test_nothing_of_the_api_is_open_to_strangers(site):
    async with Browser(site) as stranger:
        for method, path in routes():
            stranger.cookies.clear()
            answer = await stranger.request(method, path.format_map(Ids()))
            assert (answer.status_code == 401) is (path != "/api/account/session"), (
                method,
                path,
                answer.text,
            )


async def test_names_and_numbers_have_limits(ada_in, monkeypatch):
    for name in ("", "   ", "x" * 101):
        answer = await ada_in.post("/api/keys", json={"name": name})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "name")
    monkeypatch.setattr(keys, "MOST", 2)
    first = await key_of(ada_in)
    await key_of(ada_in)
    assert (await ada_in.post("/api/keys", json={"name": "third"})).status_code == 413
    await ada_in.post(f"/api/keys/{first['id']}/revoke")
    assert (await ada_in.post("/api/keys", json={"name": "third"})).status_code == 201
