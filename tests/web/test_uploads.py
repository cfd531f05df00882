"""Forms with files: streamed into staging, limited, told by content; what is refused leaves nothing behind."""

from __future__ import annotations

import asyncio
import hashlib

import pytest
from edge import client
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route
from test_kinds import HTML, JPEG, PNG, POLYGLOTS

from holdfast import Holdfast
from holdfast.blobs import BlobSettings
from holdfast.errors import UsageError
from holdfast.testing.conformance.blob_kit import names
from holdfast.web import BodyLimits, IdempotencyKeys, ProblemError, Problems, Uploads, request_tx


@pytest.fixture
async def hf(url, tmp_path):
    async with Holdfast(url, blobs=BlobSettings(url=f"file:{tmp_path / 'blobs'}")) as opened:
        yield opened


class Gallery:
    def __init__(self, hf, **options):
        self.hf, self.runs, self.fail = hf, 0, False
        self.uploads = Uploads(
            hf.blobs, **{"types": ["image/png", "image/jpeg", "text/plain"], "total": 2_000_000, **options}
        )

    async def add(self, request):
        self.runs += 1
        form = await self.uploads.receive(request)
        async with request_tx(request) as tx:
            blobs = [await self.hf.blobs.commit(each.staged, tx=tx) for each in form.files]
            if self.fail:
                raise ZeroDivisionError
        return JSONResponse(
            {
                "fields": list(form.fields),
                "files": [
                    [each.field, each.filename, each.staged.content_type, each.staged.size]
                    for each in form.files
                ],
                "keys": [blob.key for blob in blobs],
            }
        )

    def app(self, *, limits=None, **keys):
        routes = [Route("/pictures", self.add, methods=["POST"])]
        app = IdempotencyKeys(Starlette(routes=routes, middleware=[Middleware(Problems)]), self.hf, **keys)
        return app if limits is None else BodyLimits(app, **limits)


async def posted(app, **form):
    async with client(app) as http:
        return await http.post("/pictures", **form)


async def nothing_is_left(hf):
    assert await names(hf.blobs.place()) == []
    assert await hf.blobs.list() == []


async def test_a_form_is_received(hf):
    text = "a text " * 50_000
    files = [
        ("cover", ("..\\..\\C:\\me.png", PNG, "text/html")),
        ("more", ("notes.txt", text, "application/x-sh")),
    ]
    answer = await posted(Gallery(hf).app(), data={"title": "Grüezi", "tag": ["a", "b"]}, files=files)
    assert answer.status_code == 200
    told = answer.json()
    assert sorted(map(tuple, told["fields"])) == [("tag", "a"), ("tag", "b"), ("title", "Grüezi")]
    assert told["files"] == [
        ["cover", "me.png", "image/png", len(PNG)],
        ["more", "notes.txt", "text/plain", len(text)],
    ]
    assert await hf.blobs.read(told["keys"][0]) == PNG
    assert (await hf.blobs.get(told["keys"][1])).sha256 == hashlib.sha256(text.encode()).hexdigest()


async def test_a_field_for_a_file_that_was_left_empty_is_none(hf):
    part = b'--x\r\nContent-Disposition: form-data; name="a"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n\r\n'
    answer = await posted(
        Gallery(hf).app(),
        content=part + b"--x--\r\n",
        headers={"Content-Type": "multipart/form-data; boundary=x"},
    )
    assert answer.json() == {"fields": [], "files": [], "keys": []}


async def test_an_empty_file_is_told_by_its_field_where_no_text_is_taken(hf):
    app = Gallery(hf).app()
    answer = await posted(app, files={"cover": ("me.png", b"", "image/png")})
    assert answer.status_code == 200, "a text may be empty"
    picky = Problems(Uploading(Uploads(hf.blobs, types=["image/png"])))
    for content, code in ((b"", "FILE_EMPTY"), (b"no picture", "TYPE_NOT_TAKEN")):
        answer = await posted(picky, files={"cover": ("a\u200c\u200db.png", content, "image/png")})
        [told] = answer.json()["errors"]
        assert (answer.json()["code"], told["field"]) == (code, "cover")
        assert told["message"].startswith("a\u200c\u200db.png: ")


class Uploading:
    """An app that receives, and does nothing with it."""

    def __init__(self, uploads):
        self._uploads = uploads

    async def __call__(self, scope, receive, send):
        await self._uploads.receive_from(scope, receive)


async def test_files_commit_with_the_answer(hf):
    gallery = Gallery(hf)
    gallery.fail = True
    answer = await posted(gallery.app(), files={"cover": PNG})
    assert answer.status_code == 500
    assert await hf.blobs.list() == []


async def test_a_form_that_is_sent_again_with_its_key_is_stored_once(hf):
    gallery = Gallery(hf)
    app = gallery.app(required=True)
    async with client(app) as http:
        first, again = [
            await http.post("/pictures", files={"cover": ("me.png", PNG)}, headers={"Idempotency-Key": "one"})
            for _ in range(2)
        ]
        other = await http.post(
            "/pictures", files={"cover": ("me.png", JPEG)}, headers={"Idempotency-Key": "one"}
        )
    assert (first.status_code, first.content, gallery.runs) == (200, again.content, 1)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert other.status_code == 422
    assert len(await names(hf.blobs.place())) == 1


@pytest.mark.parametrize(
    ("options", "form", "status", "code"),
    [
        ({"total": 1000}, {"files": {"a": ("a", b"x" * 1001)}}, 413, "REQUEST_TOO_LARGE"),
        ({"part": 1000}, {"files": [("a", ("a", PNG)), ("b", ("b", b"x" * 1001))]}, 413, "FILE_TOO_LARGE"),
        ({"parts": 2}, {"files": [("a", ("a", PNG))] * 3}, 413, "TOO_MANY_PARTS"),
        ({"field": 100}, {"data": {"a": "x" * 101}, "files": {"b": PNG}}, 413, "FIELD_TOO_LARGE"),
        ({}, {"files": [("a", ("a.png", PNG)), ("b", ("b.png", HTML, "image/png"))]}, 415, "TYPE_NOT_TAKEN"),
        ({}, {"files": {"a": ("a.png", bytes(range(256)), "image/png")}}, 415, "TYPE_NOT_TAKEN"),
        *(({}, {"files": [("a", ("a.png", PNG)), ("b", ("b", POLYGLOTS[name]))]}, 415, "TYPE_AMBIGUOUS") for name in ("png and page", "jpeg and zip", "png and zip")),
        ({}, {"data": {"a": "b"}}, 415, "NOT_A_FORM"),
        ({}, {"json": {"a": "b"}}, 415, "NOT_A_FORM"),
    ],
)  # fmt: skip
async def test_what_is_refused_leaves_nothing(hf, options, form, status, code):
    answer = await posted(Gallery(hf, **options).app(), **form)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    await nothing_is_left(hf)


async def test_a_hundred_thousand_parts_are_refused_at_once(hf):
    sent = 0

    async def endless():
        nonlocal sent
        for number in range(100_000):
            sent += 1
            yield b'--x\r\nContent-Disposition: form-data; name="a%d"\r\n\r\n1\r\n' % number
        yield b"--x--\r\n"

    for app in (
        Gallery(hf, total=2**30).app(body=2**30),
        Gallery(hf, total=2**30).app(limits={"total": 2**30, "parts": 50}),
    ):
        answer = await posted(
            app, content=endless(), headers={"Content-Type": "multipart/form-data; boundary=x"}
        )
        assert answer.status_code == 413
    await nothing_is_left(hf)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--x\r\n",
        b'--x\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\nhalf of a te',
        b'--x\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\ntext\r\n',
        b'--x\r\nContent-Disposition: form-data; filename="a"\r\n\r\ntext\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: attachment; name="a"\r\n\r\ntext\r\n--x--\r\n',
        b"--x\r\nX-Nothing: a\r\n\r\ntext\r\n--x--\r\n",
        b"--x\r\n" + b"X-A: b\r\n" * 5000 + b"\r\n\r\n--x--\r\n",
        b"--y\r\n\r\n\r\n--y--\r\n",
        b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xff\xfe\r\n--x--\r\n',
    ],
)
async def test_what_is_no_whole_form_is_refused(hf, body):
    answer = await posted(
        Gallery(hf).app(), content=body, headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert answer.status_code == 400, answer.text
    await nothing_is_left(hf)


async def test_a_client_that_hangs_up_leaves_nothing(hf):
    """One file is whole by then, and another half."""
    body = (
        b'--x\r\nContent-Disposition: form-data; name="a"; filename="a.png"\r\n\r\n' + PNG
        + b'\r\n--x\r\nContent-Disposition: form-data; name="b"; filename="b"\r\n\r\n' + b"text " * 100_000
    )  # fmt: skip
    messages = [{"type": "http.request", "body": body, "more_body": True}, {"type": "http.disconnect"}]
    scope = {
        "type": "http",
        "method": "POST",
        "headers": [(b"content-type", b"multipart/form-data; boundary=x")],
    }

    async def receive():
        return messages.pop(0)

    from holdfast.web import ProblemError

    with pytest.raises(ProblemError, match="hung up"):
        await Gallery(hf).uploads.receive_from(scope, receive)
    await nothing_is_left(hf)


async def test_a_request_that_is_cancelled_leaves_nothing(hf):
    began = asyncio.Event()

    async def slow():
        yield b'--x\r\nContent-Disposition: form-data; name="a"; filename="a.png"\r\n\r\n' + PNG
        yield b'\r\n--x\r\nContent-Disposition: form-data; name="b"; filename="b"\r\n\r\n' + b"text " * 10_000
        began.set()
        await asyncio.Event().wait()

    pieces = slow()

    async def receive():
        return {"type": "http.request", "body": await anext(pieces), "more_body": True}

    scope = {
        "type": "http",
        "method": "POST",
        "headers": [(b"content-type", b"multipart/form-data; boundary=x")],
    }
    task = asyncio.ensure_future(Gallery(hf).uploads.receive_from(scope, receive))
    await began.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    await nothing_is_left(hf)


async def test_a_body_limit_outside_is_obeyed(hf):
    app = Gallery(hf).app(limits={"total": 100_000})
    answer = await posted(app, files={"a": ("a", b"text " * 50_000)})
    assert answer.status_code == 413
    await nothing_is_left(hf)


def test_what_must_be_said():
    for wrong in ("image/png", [], ["PNG"], ["Image/PNG"]):
        with pytest.raises(UsageError, match="types"):
            Uploads(None, types=wrong)


async def test_names_of_files_are_for_people(hf):
    for sent, shown in (
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\y.png", "y.png"),
        ("a" * 500, "a" * 200),
        ("a\u202eb.png", "ab.png"),
    ):
        answer = await posted(Gallery(hf).app(), files={"a": (sent, PNG)})
        assert answer.json()["files"][0][1] == shown


async def _sent(hf, content, told="image/png"):
    upload = await hf.blobs.link_put(content_type=told, length=len(content))
    await hf.blobs.place().put(f"incoming/-/{upload.id}", content, content_type=told)
    return upload.id


async def test_what_a_client_has_sent_by_a_link_is_looked_at(hf):
    uploads = Uploads(hf.blobs, types=["image/png", "image/jpeg"], part=100_000)
    staged = await uploads.receive_sent(await _sent(hf, PNG), content_type="image/png", length=len(PNG))
    assert (staged.size, staged.sha256) == (len(PNG), hashlib.sha256(PNG).hexdigest())
    await hf.blobs.discard(staged)
    refused = [
        (b"MZ" + b"\0" * 100, "image/png", "TYPE_NOT_TAKEN"),
        (JPEG, "image/png", "TYPE_NOT_ANNOUNCED"),
        (PNG + b"\0" * 100_000, "image/png", "FILE_TOO_LARGE"),
        *(
            (content, "image/png", "TYPE_AMBIGUOUS")
            for name, content in POLYGLOTS.items()
            if name.startswith("png")
        ),
    ]
    for content, told, code in refused:
        upload = await _sent(hf, content, told)
        with pytest.raises(ProblemError) as error:
            await uploads.receive_sent(upload, content_type=told, length=len(content))
        assert error.value.problem.code == code
    await nothing_is_left(hf)
