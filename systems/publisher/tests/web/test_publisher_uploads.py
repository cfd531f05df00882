"""Files come in: by forms, by links past us and by tools; what is no picture, too much, or there already."""

from __future__ import annotations

import hashlib
import io
import json

import httpx
import pytest
from PIL import Image
from publisher.core import hf as program
from publisher.desk import uploads
from publisher.work import previews
from visitors import Browser, picture

from holdfast import within
from holdfast.testing import drain

PAGE = b"<!doctype html><script>alert(1)</script>"
MP4 = b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2" + b"\x00" * 100


async def put(browser, *files, path="/api/uploads", **fields):
    told = [
        ("files", each if isinstance(each, tuple) else (each, picture(each), "image/png")) for each in files
    ]
    return await browser.post(path, files=told, data=fields)


async def stored(artist_id):
    with within(tenant=artist_id):
        return [each.key for each in await program.blobs.list()]


def a_zip():
    import zipfile

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.class", "x")
    return made.getvalue()


async def test_a_post_for_each_file(ada_in):
    answer = await put(ada_in, "One_day.png", "Two.png")
    found = answer.json()["files"]
    assert answer.status_code == 201
    assert len({each["post_id"] for each in found}) == 2
    posts = (await ada_in.get("/api/posts")).json()["posts"]
    assert sorted(each["title"] for each in posts) == ["One day", "Two"]


async def test_one_post_for_all_of_them_is_refused_where_it_is_scheduled(ada_in):
    """A deviation has one file: the page says so, and offers to split it."""
    answer = await put(ada_in, "One.png", "Two.png", "Three.png", mode="one")
    [post_id] = {each["post_id"] for each in answer.json()["files"]}
    view = (await ada_in.get(f"/api/posts/{post_id}")).json()
    assert [each["name"] for each in view["files"]] == ["One.png", "Two.png", "Three.png"]
    assert "split it into 3 posts" in view["missing"][0]["message"]
    made = (await ada_in.post(f"/api/posts/{post_id}/split")).json()["post_ids"]
    assert len(made) == 3
    for each in made:
        assert len((await ada_in.get(f"/api/posts/{each}/files")).json()) == 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP"])
async def test_pictures_get_a_preview_and_their_size(ada_in, kind):
    content = picture("x", (1800, 900), kind)
    answer = await put(ada_in, ("anything.txt", content, "text/plain"))
    [found] = answer.json()["files"]
    ran = [each for each in await drain(program, raise_dead=True) if each.task == "previews.make"]
    assert len(ran) == 1
    [file] = (await ada_in.get(f"/api/posts/{found['post_id']}/files")).json()
    assert (file["type"], file["width"], file["height"]) == (f"image/{kind.lower()}", 1800, 900)
    assert (file["size"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    small = await ada_in.get(f"/api/files/{file['id']}/preview")
    assert small.headers["content-type"] == "image/webp"
    assert Image.open(io.BytesIO(small.content)).size == (600, 300)


async def test_a_film_has_no_preview(ada_in):
    [found] = (await put(ada_in, ("film.mp4", MP4, "video/mp4"))).json()["files"]
    assert [each.task for each in await drain(program) if "preview" in each.task] == []
    assert (await ada_in.get(f"/api/files/{found['file_id']}/preview")).status_code == 404


@pytest.mark.parametrize(
    ("name", "content", "status", "code"),
    [
        ("page.png", PAGE, 415, "TYPE_NOT_TAKEN"),
        ("drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415, "TYPE_NOT_TAKEN"),
        ("program.png", b"MZ" + b"\x00" * 200, 415, "TYPE_NOT_TAKEN"),
        ("nothing.png", b"", 422, "FILE_EMPTY"),
        ("page and picture.png", picture("p")[:60] + PAGE + picture("p"), 415, "TYPE_AMBIGUOUS"),
        ("zip and picture.png", picture("p") + a_zip(), 415, "TYPE_AMBIGUOUS"),
    ],
)
async def test_what_is_no_picture_is_refused_and_leaves_nothing(ada_in, name, content, status, code):
    answer = await put(ada_in, "good.png", (name, content, "image/png"))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert await stored(ada_in.artist_id) == []
    assert (await ada_in.get("/api/posts")).json()["posts"] == []
    assert [each async for each in objects(ada_in.artist_id)] == []


async def objects(artist_id):
    place = program.blobs.place()
    for area in ("staging", "kept", "incoming"):
        for each in await place.list(f"{area}/{artist_id}"):
            yield each.name


async def test_a_form_without_a_file_is_refused(ada_in):
    answer = await ada_in.post("/api/uploads", files={"files": ("", b"", "image/png")})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "files")
    answer = await put(ada_in, "a.png", mode="both")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "mode")
    assert [each async for each in objects(ada_in.artist_id)] == []
    assert (await ada_in.post("/api/uploads", json={})).status_code == 415


async def test_too_many_files_are_refused(ada_in, monkeypatch):
    answer = await put(ada_in, *[f"{number}.png" for number in range(101)])
    assert (answer.status_code, answer.json()["code"]) == (413, "NO_ROOM")
    monkeypatch.setattr(uploads, "FILES_MOST", 3)
    [first] = (await put(ada_in, "a.png")).json()["files"]
    path = f"/api/posts/{first['post_id']}/files"
    assert (await put(ada_in, "b.png", "c.png", path=path)).status_code == 201
    answer = await put(ada_in, "d.png", path=path)
    assert (answer.status_code, answer.json()["detail"]) == (
        413,
        "A post has at most 3 files; this one has 3.",
    )
    assert len(await stored(ada_in.artist_id)) == 3


async def test_a_hundred_thousand_parts_are_refused(ada_in):
    part = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
    answer = await ada_in.post(
        "/api/uploads",
        content=part * 100_000 + b"--x--",
        headers={"content-type": "multipart/form-data; boundary=x"},
    )
    assert answer.status_code == 413


async def test_a_file_that_is_too_large_is_refused_while_it_comes(ada_in):
    content = picture("x") + b"\x00" * uploads.FILE_MOST
    answer = await put(ada_in, ("large.png", content, "image/png"))
    assert (answer.status_code, answer.json()["code"]) == (413, "FILE_TOO_LARGE")
    assert [each async for each in objects(ada_in.artist_id)] == []


async def test_the_same_file_is_noticed_and_taken_only_on_purpose(ada_in):
    [first] = (await put(ada_in, "a.png")).json()["files"]
    [again, other] = (await put(ada_in, ("copy of a.png", picture("a.png"), "image/png"), "b.png")).json()[
        "files"
    ]
    assert (again["file_id"], again["same_as"]) == (None, first["post_id"])
    assert other["same_as"] is None
    twice = (await put(ada_in, "c.png", ("d.png", picture("c.png"), "image/png"))).json()["files"]
    assert twice[1]["same_as"] == twice[0]["post_id"], "also within one form"
    [wanted] = (await put(ada_in, "a.png", again="true")).json()["files"]
    assert (wanted["same_as"], wanted["file_id"] is None) == (first["post_id"], False)
    assert len((await ada_in.get("/api/posts")).json()["posts"]) == 4


async def test_files_of_others_are_nobodys_business(ada_in, bob_in):
    await put(ada_in, "a.png")
    [his] = (await put(bob_in, "a.png")).json()["files"]
    assert his["same_as"] is None


async def test_an_upload_that_is_sent_again_with_its_key_is_taken_once(ada_in):
    """A browser whose connection broke sends it again: the answer is the first one."""
    files = {"files": ("a.png", picture("a"), "image/png")}
    headers = {"idempotency-key": "upload-1"}
    first = await ada_in.post("/api/uploads", files=files, headers=headers)
    again = await ada_in.post("/api/uploads", files=files, headers=headers)
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    assert len(await stored(ada_in.artist_id)) == 1
    other = {"files": ("b.png", picture("b"), "image/png")}
    assert (await ada_in.post("/api/uploads", files=other, headers=headers)).status_code == 422


async def test_an_upload_of_many_goes_on_after_it_broke_off(ada_in):
    """What is there is seen by its hash, so only the rest is sent."""
    names = [f"{number}.png" for number in range(6)]
    [first] = (await put(ada_in, names[0], mode="one")).json()["files"]
    path = f"/api/posts/{first['post_id']}/files"
    await put(ada_in, names[1], names[2], path=path)
    there = {each["sha256"] for each in (await ada_in.get(path)).json()}
    rest = [name for name in names if hashlib.sha256(picture(name)).hexdigest() not in there]
    assert rest == names[3:]
    await put(ada_in, *rest, path=path)
    assert [each["name"] for each in (await ada_in.get(path)).json()] == names


async def test_the_quota_is_kept_also_by_two_at_once(ada_in, monkeypatch):
    import asyncio
    from dataclasses import replace

    content = picture("x", (200, 200))
    monkeypatch.setattr(uploads, "settings", replace(uploads.settings, quota_bytes=3 * len(content) // 2))
    answers = await asyncio.gather(
        *(put(ada_in, (f"{name}.png", picture(name, (200, 200)), "image/png")) for name in "ab")
    )
    assert sorted(each.status_code for each in answers) == [201, 413]
    refused = next(each for each in answers if each.status_code == 413).json()
    assert refused["code"] == "NO_ROOM"
    assert "Delete some first" in refused["detail"]
    assert len(await stored(ada_in.artist_id)) == 1
    [there] = (await ada_in.get("/api/files/largest")).json()
    await ada_in.delete(f"/api/files/{there['id']}")
    usage = (await ada_in.get("/api/usage")).json()
    assert (usage["used"], usage["deleted"], usage["files"]) == (there["size"], there["size"], 0)
    more = ("c.png", picture("c", (200, 200)), "image/png")
    assert (await put(ada_in, more)).status_code == 413, "what can be had back takes its room"


async def test_files_are_ordered_described_deleted_and_had_back(ada_in):
    found = (await put(ada_in, "a.png", "b.png", "c.png", mode="one")).json()["files"]
    post_id, ids = found[0]["post_id"], [each["file_id"] for each in found]
    path = f"/api/posts/{post_id}/files"
    answer = await ada_in.put(f"{path}/order", json={"file_ids": ids[::-1]})
    assert [each["id"] for each in answer.json()] == ids[::-1]
    assert (await ada_in.put(f"{path}/order", json={"file_ids": ids[:2]})).status_code == 422
    told = await ada_in.patch(f"/api/files/{ids[0]}", json={"alt": "A lantern on a salt lake"})
    assert told.json()["alt"] == "A lantern on a salt lake"
    gone = (await ada_in.delete(f"/api/files/{ids[0]}")).json()
    assert (await ada_in.delete(f"/api/files/{ids[0]}")).json()["deleted_at"] == gone["deleted_at"]
    assert [each["id"] for each in (await ada_in.get(path)).json()] == [ids[2], ids[1]]
    assert [each["id"] for each in (await ada_in.get("/api/files/deleted")).json()] == [ids[0]]
    back = (await ada_in.post(f"/api/files/{ids[0]}/restore")).json()
    assert (back["post_id"], back["deleted_at"]) == (post_id, None)


async def test_a_file_of_a_deleted_post_comes_back_as_a_draft(ada_in):
    [found] = (await put(ada_in, "Salt_lantern.png")).json()["files"]
    await ada_in.delete(f"/api/posts/{found['post_id']}")
    back = (await ada_in.post(f"/api/files/{found['file_id']}/restore")).json()
    view = (await ada_in.get(f"/api/posts/{back['post_id']}")).json()
    assert (view["post"]["title"], view["post"]["state"]) == ("Salt lantern", "draft")


async def test_files_of_a_scheduled_post_stay_as_they_are(ada_in):
    post_id = await ada_in.make_draft()
    at = round(await program.now()) + 3600
    await ada_in.post(f"/api/posts/{post_id}/schedule", json={"at": at})
    [file] = (await ada_in.get(f"/api/posts/{post_id}/files")).json()
    for answer in (
        await ada_in.delete(f"/api/files/{file['id']}"),
        await put(ada_in, "more.png", path=f"/api/posts/{post_id}/files"),
        await ada_in.put(f"/api/posts/{post_id}/files/order", json={"file_ids": [file["id"]]}),
    ):
        assert (answer.status_code, answer.json()["errors"]) == (
            409,
            [{"field": "state", "message": "scheduled"}],
        )


# --- by a link, past us ---


async def begin(browser, content, kind="image/png", name="a.png"):
    answer = await browser.post("/api/uploads/begin", json={"name": name, "type": kind, "size": len(content)})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def send(browser, allowed, content, **headers):
    return await browser.request(
        allowed["method"], allowed["url"], content=content, headers={**allowed["headers"], **headers}
    )


async def complete(browser, allowed, content, kind="image/png", **more):
    told = {"upload_id": allowed["upload_id"], "name": "a.png", "type": kind, "size": len(content), **more}
    return await browser.post("/api/uploads/complete", json=told)


async def test_a_file_comes_by_a_link(ada_in):
    content = picture("a")
    allowed = await begin(ada_in, content)
    assert (await complete(ada_in, allowed, content)).status_code == 404, "it has not come yet"
    assert (await send(ada_in, allowed, content)).status_code == 200
    [found] = (await complete(ada_in, allowed, content)).json()["files"]
    await drain(program)
    link = (await ada_in.get(f"/api/files/{found['file_id']}/link")).json()
    async with httpx.AsyncClient(transport=ada_in._transport) as anybody:
        answer = await anybody.get(link["url"])
    assert answer.content == content
    assert answer.headers["content-disposition"].startswith("attachment")
    assert (await complete(ada_in, allowed, content)).status_code == 404, "once"


async def test_a_link_allows_what_it_says_and_nothing_else(ada_in):
    content = picture("a")
    allowed = await begin(ada_in, content)
    assert (await send(ada_in, allowed, content + b"x")).status_code == 403
    assert (await send(ada_in, allowed, content, **{"content-type": "text/html"})).status_code == 403
    assert (await ada_in.get(allowed["url"])).status_code == 403
    for wrong in (
        {"size": 0},
        {"size": uploads.FILE_MOST + 1},
        {"type": "text/html"},
        {"type": "image/svg+xml"},
    ):
        told = {"name": "a", "type": "image/png", "size": 10, **wrong}
        assert (await ada_in.post("/api/uploads/begin", json=told)).status_code == 422


async def test_what_came_by_a_link_is_looked_at(ada_in):
    for content in (PAGE, picture("p") + a_zip()):
        allowed = await begin(ada_in, content)
        await send(ada_in, allowed, content)
        assert (await complete(ada_in, allowed, content)).status_code == 415
    content = picture("j", kind="JPEG")
    allowed = await begin(ada_in, content)
    await send(ada_in, allowed, content)
    assert (await complete(ada_in, allowed, content)).json()["code"] == "TYPE_NOT_ANNOUNCED"
    assert [each async for each in objects(ada_in.artist_id)] == []


async def test_an_upload_of_somebody_else_is_not_there(ada_in, bob_in):
    content = picture("a")
    allowed = await begin(ada_in, content)
    await send(ada_in, allowed, content)
    assert (await complete(bob_in, allowed, content)).status_code == 404
    post_id = await bob_in.make_draft("his.png")
    assert (await complete(ada_in, allowed, content, post_id=post_id)).status_code == 404


# --- by tools ---


async def key_of(browser, name="Brush"):
    made = (await browser.post("/api/keys", json={"name": name})).json()
    return made["id"], {"authorization": f"Bearer {made['secret']}"}


async def test_what_a_tool_sends_waits_in_review(ada_in, site):
    _, headers = await key_of(ada_in)
    async with Browser(site) as tool:
        answer = await tool.post(
            "/api/uploads/tool",
            files={"files": ("ComfyUI_0001.png", picture("c"), "image/png")},
            data={
                "tags": json.dumps(["#ink drawing", "harbour"]),
                "description": "<b>made</b>",
                "mature": "false",
            },
            headers=headers,
        )
    assert answer.status_code == 201, answer.text
    [found] = answer.json()["files"]
    post = (await ada_in.get(f"/api/posts/{found['post_id']}")).json()["post"]
    assert (post["state"], post["source"], post["title"]) == ("review", "tool", "ComfyUI 0001")
    assert (post["details"]["ai_made"], post["details"]["mature"]) == (True, False)
    assert post["details"]["tags"] == ["ink_drawing", "harbour"]
    [result] = (await ada_in.post("/api/review/approve", json={"post_ids": [post["id"]]})).json()["results"]
    assert result["ok"]
    assert (await ada_in.get("/api/posts/counts")).json()["draft"] == 1


async def test_what_a_tool_says_wrongly_is_told_by_field(ada_in, site):
    _, headers = await key_of(ada_in)
    async with Browser(site) as tool:
        for said, field in (
            ({"tags": "ink, harbour"}, "tags"),
            ({"mature": "perhaps"}, "mature"),
            ({"title": "x" * 300}, "title"),
            ({"title": "a\x00b"}, "title"),
        ):
            answer = await tool.post(
                "/api/uploads/tool",
                files={"files": ("a.png", picture("c"), "image/png")},
                data=said,
                headers=headers,
            )
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    assert [each async for each in objects(ada_in.artist_id)] == []


# --- previews ---


def test_a_picture_that_would_be_a_bomb_is_measured_and_not_unpacked(monkeypatch):
    monkeypatch.setattr(previews, "MOST_PIXELS", 1000)
    assert previews.look(picture("x", (100, 100))) == previews.Seen(100, 100)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    assert previews.look(picture("x", (100, 100))).preview is None


def test_a_header_that_promises_a_bomb_takes_no_memory():
    import resource

    made = bytearray(picture("x"))
    made[16:24] = (30_000).to_bytes(4, "big") * 2  # width and height
    import zlib

    made[29:33] = zlib.crc32(bytes(made[12:29])).to_bytes(4, "big")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert previews.look(bytes(made)).preview is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n", picture("x")[:-30], picture("x")[:40], MP4])
def test_what_is_damaged_has_no_preview(content):
    assert previews.look(content).preview is None


def test_a_picture_on_its_side_is_turned():
    to = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (200, 100)).save(to, "JPEG", exif=exif)
    seen = previews.look(to.getvalue())
    assert (seen.width, seen.height) == (100, 200)
    assert Image.open(io.BytesIO(seen.preview)).size == (100, 200)


def test_what_is_transparent_stays_so():
    to = io.BytesIO()
    Image.new("RGBA", (20, 20), (0, 0, 0, 0)).save(to, "PNG")
    small = Image.open(io.BytesIO(previews.look(to.getvalue()).preview))
    assert small.convert("RGBA").getpixel((0, 0))[3] == 0
