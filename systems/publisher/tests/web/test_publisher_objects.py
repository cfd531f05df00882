"""What belongs to one artist is not there for another: over every route of API and pages, by path and by body."""

from __future__ import annotations

import re
import time

import pytest
from publisher.core import hf as program
from publisher.domain.states import State
from publisher.web.app import ROUTERS
from publisher.web.pages import page_routes
from starlette.routing import Route
from visitors import picture

from holdfast import within

TABLES = ("artists", "logins", "posts", "files", "happenings", "receipts", "automations", "executions", "templates", "presets",
          "sales", "api_keys", "exports", "notices")  # fmt: skip
SOON = round(time.time()) + 86_400
RULE = {"kind": "fixed_time", "clock": "09:00"}
# What is sent to a route that takes a body: right but for whose it is. A route that is missing here answers 422, and the test fails.
BODIES = {
    "PATCH /api/posts/{post_id}": {"title": "mine now"},
    "POST /api/posts/{post_id}/schedule": {"at": SOON},
    "POST /api/posts/{post_id}/move": {"at": SOON},
    "POST /api/posts/{post_id}/decide": {"done": False},
    "PUT /api/posts/{post_id}/files/order": {"file_ids": ["{file_id}"]},
    "PATCH /api/files/{file_id}": {"alt": "mine now"},
    "PUT /api/templates/{template_id}": {"name": "mine", "text": "ink"},
    "PUT /api/presets/{preset_id}": {"name": "mine", "low": 500, "high": 500},
    "PATCH /api/automations/{automation_id}": {"name": "mine"},
    "POST /api/automations/{automation_id}/switch": {"is_on": True},
    "POST /api/sales/{sale_id}/complete": {"token": 0},
    "POST /api/sales/{sale_id}/fail": {"token": 0},
}
UPLOADS = {"POST /api/posts/{post_id}/files"}
POSTS = {"post_ids": ["{post_id}"]}
PLANS = {"posts": [{"post_id": "{post_id}", "at": SOON}]}
# Routes that name things in their bodies: each of those is refused by itself.
MANY = {
    "POST /api/bulk/edit": {**POSTS, "changes": {"title": "mine now"}},
    "POST /api/bulk/schedule": PLANS,
    "POST /api/bulk/move": PLANS,
    "POST /api/bulk/shift": {**POSTS, "days": 1},
    "POST /api/bulk/publish-now": POSTS,
    "POST /api/bulk/cancel": POSTS,
    "POST /api/bulk/delete": POSTS,
    "POST /api/review/approve": POSTS,
    "POST /api/review/reject": POSTS,
}
OTHERS = {
    "POST /api/automations/order": ({"automation_ids": ["{automation_id}"]}, 404),
    "POST /api/automations": ({"name": "a", "rules": [RULE], "preset_id": "{preset_id}"}, 422),
    "POST /api/sales": ({**POSTS, "preset_id": "{preset_id}"}, 404),
    "POST /api/uploads/complete": (
        {"upload_id": "{upload_id}", "name": "a", "type": "image/png", "size": 10},
        404,
    ),
}


QUERIES = {
    "/api/calendar": {"begin": 0, "end": 4e9},
    "/api/browse/daily": {"day": "2026-11-19"},
    "/api/browse/tag": {"tag": "ink"},
    "/api/browse/topic": {"topic": "digital-art"},
    "/api/browse/tags": {"begin": "la"},
}


def api():
    return sorted(
        f"{method} {route.path}"
        for each in ROUTERS
        for route in each.router.routes
        for method in route.methods - {"HEAD"}
    )


@pytest.fixture
async def theirs(ada_in):
    """One of each kind that belongs to ada, by the name of its parameter."""
    found = {"name": "none", "post_id": await ada_in.make_draft("hers.png")}
    [file] = (await ada_in.get(f"/api/posts/{found['post_id']}/files")).json()
    found["file_id"] = file["id"]
    made = [
        ("key_id", "/api/keys", {"name": "Brush"}),
        ("template_id", "/api/templates", {"kind": "tags", "name": "ink", "text": "ink"}),
        ("preset_id", "/api/presets", {"name": "small", "low": 500, "high": 900, "is_default": True}),
        ("automation_id", "/api/automations", {"name": "Mornings", "rules": [RULE]}),
        ("export_id", "/api/account/exports", None),
    ]
    for name, path, told in made:
        answer = await ada_in.post(path, json=told)
        assert answer.is_success, answer.text
        found[name] = answer.json()["id"]
    sold = await ada_in.make_draft("sold.png")
    async with program.transaction() as tx:
        await tx.execute(
            "UPDATE posts SET state = 'published', published_at = made_at, itemid = 1, url = 'https://deviantart.test/1' WHERE id = $1",
            sold,
        )
    answer = await ada_in.post("/api/sales", json={"post_ids": [sold]})
    assert answer.json()["results"][0]["ok"], answer.text
    [sale] = (await ada_in.get("/api/sales")).json()
    found["sale_id"] = sale["id"]
    content = picture("sent")
    told = {"name": "a.png", "type": "image/png", "size": len(content)}
    allowed = (await ada_in.post("/api/uploads/begin", json=told)).json()
    await ada_in.request(allowed["method"], allowed["url"], content=content, headers=allowed["headers"])
    found["upload_id"] = allowed["upload_id"]
    [login] = (await ada_in.get("/api/account/logins")).json()
    found["name"] = login["name"]
    return found


async def everything(artist_id):
    """All rows and files of somebody, as text."""
    async with program.transaction() as tx:
        found = {name: sorted(map(repr, await tx.fetch(f"SELECT * FROM {name}"))) for name in TABLES}
    with within(tenant=artist_id):
        found["blobs"] = [(each.key, each.state) for each in await program.blobs.list()]
    return {
        name: [each for each in rows if artist_id in str(each) or name == "blobs"]
        for name, rows in found.items()
    }


def filled(told, things):
    """The sample with ids in it."""
    match told:
        case dict():
            return {name: filled(value, things) for name, value in told.items()}
        case list():
            return [filled(each, things) for each in told]
        case str():
            return told.format_map(things) if told.startswith("{") else told
    return told


def form():
    return {"files": {"files": ("b.png", picture("b"), "image/png")}}


async def test_what_a_path_names_is_not_there_for_another(ada_in, bob_in, theirs):
    before = await everything(ada_in.artist_id)
    seen = 0
    for route in [
        each for each in api() if "{" in each and "{folder}" not in each
    ]:  # those are DeviantArt's to guard
        method, path = route.split(" ")
        sent = (
            form() if route in UPLOADS else {"json": filled(BODIES[route], theirs)} if route in BODIES else {}
        )
        answer = await bob_in.request(method, path.format_map(theirs), **sent)
        assert answer.status_code == 404, (route, answer.status_code, answer.text)
        assert answer.json()["code"] == "NOT_HERE"
        nothing = dict.fromkeys(theirs, "0" * 32) | {"name": "0"}
        other = await bob_in.request(method, path.format_map(nothing), **({} if route in UPLOADS else sent))
        if route not in UPLOADS:
            assert _plain(other) == _plain(answer), "what is not there and what is not his look the same"
        seen += 1
    assert seen >= 40
    assert await everything(ada_in.artist_id) == before


def _plain(answer):
    return {name: value for name, value in answer.json().items() if name != "correlation_id"}


async def test_what_a_body_names_is_not_there_for_another(ada_in, bob_in, theirs):
    before = await everything(ada_in.artist_id)
    for route, told in MANY.items():
        method, path = route.split(" ")
        answer = await bob_in.request(method, path, json=filled(told, theirs))
        assert answer.is_success, (route, answer.text)
        assert answer.json()["results"] == [
            {"post_id": theirs["post_id"], "ok": False, "words": "There is no such post."}
        ], route
    for route, (told, status) in OTHERS.items():
        method, path = route.split(" ")
        answer = await bob_in.request(method, path, json=filled(told, theirs))
        assert answer.status_code == status, (route, answer.text)
    assert await everything(ada_in.artist_id) == before


async def test_lists_show_ones_own(bob_in, theirs):
    """Every list of the API, of somebody who has nothing."""
    ids = set(theirs.values())
    for route in api():
        method, path = route.split(" ")
        if method != "GET" or "{" in path:
            continue
        answer = await bob_in.get(path, params=QUERIES.get(path))
        assert answer.status_code == 200, (route, answer.text)
        assert not [each for each in ids if each in answer.text], route


def test_every_route_is_tried():
    """A new route that names things in its body belongs into the tables above."""
    known = set(MANY) | set(OTHERS) | set(BODIES) | UPLOADS
    assert known <= set(api()), known - set(api())
    naming = {each for each in api() if "{" not in each and _names_rows(each)}
    assert naming <= set(MANY) | set(OTHERS), naming - set(MANY) - set(OTHERS)


def _names_rows(route):
    from publisher.web.app import app

    method, path = route.split(" ")
    document = app.openapi()
    body = document["paths"][path][method.lower()].get("requestBody")
    return body is not None and bool(re.search(r"_ids?\b", _schema_text(body, document, set())))


def _schema_text(node, document, seen):
    """All names in a schema, with what it refers to."""
    match node:
        case {"$ref": ref} if ref not in seen:
            seen.add(ref)
            name = ref.rpartition("/")[2]
            return _schema_text(document["components"]["schemas"][name], document, seen)
        case dict():
            return " ".join(f"{name} {_schema_text(value, document, seen)}" for name, value in node.items())
        case list():
            return " ".join(_schema_text(each, document, seen) for each in node)
    return ""


# --- pages ---


def pages():
    return [
        (method, route.path)
        for route in page_routes
        if isinstance(route, Route) and "{" in route.path
        for method in sorted(route.methods - {"HEAD"})
    ]


async def test_pages_of_another_are_not_there(ada_in, bob_in, theirs):
    """Whatever a form says: what is named in the address is not there."""
    before = await everything(ada_in.artist_id)
    csrf = bob_in.headers["x-csrf-token"]
    for method, path in pages():
        address = re.sub(r"\{(\w+)(:\w+)?\}", lambda found: theirs.get(found[1], "none"), path)
        answer = await bob_in.request(
            method, address, data={"csrf_token": csrf} if method == "POST" else None
        )
        assert answer.status_code in (303, 404, 405, 422), (method, path, answer.status_code)
        if method == "GET":
            assert answer.status_code == 404, (method, path)
    assert await everything(ada_in.artist_id) == before


async def test_states_of_all_posts_are_listed_for_their_artist(ada_in, theirs):
    counts = (await ada_in.get("/api/posts/counts")).json()
    assert set(counts) == set(map(str, State))
    assert (counts["draft"], counts["published"]) == (1, 1)
