"""A real server: it is killed in the middle of an upload, and serves signed links."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import httpx
import pytest

from holdfast import Holdfast
from holdfast.runtime.blobs import sweeping
from holdfast.testing.conformance.blob_kit import names
from tools.local_server import free_port

PROGRAM = """
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from holdfast import Holdfast
from holdfast.web import IdempotencyKeys, Problems, SignedFiles, Uploads, request_tx

hf = Holdfast({url!r}, blobs={place!r})
@asynccontextmanager
async def lifespan(app):
    async with hf:
        yield

uploads = Uploads(hf.blobs, types=["text/plain"], total=100_000_000)

async def add(request):
    form = await uploads.receive(request)
    async with request_tx(request) as tx:
        keys = [(await hf.blobs.commit(each.staged, tx=tx)).key for each in form.files]
    return JSONResponse(keys)

async def allow(request):
    upload = await hf.blobs.link_put(content_type="text/plain", length=int(request.query_params["length"]))
    return JSONResponse({{"id": upload.id, "url": upload.link.url, "headers": upload.link.headers}})

async def done(request):
    staged = await hf.blobs.receive(request.path_params["id"])
    blob = await hf.blobs.commit(staged)
    link = await hf.blobs.link_get(blob.key, download="notes.txt")
    return JSONResponse({{"url": link.url, "sha256": blob.sha256}})

routes = [Route("/add", add, methods=["POST"]), Route("/allow", allow), Route("/done/{{id}}", done), Mount("/blobs", SignedFiles(hf.blobs))]
app = IdempotencyKeys(Starlette(routes=routes, middleware=[Middleware(Problems)], lifespan=lifespan), hf, routes=["POST /add"])
"""
PART = b'--x\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\n'


async def quiet(text): ...


class Server:
    def __init__(self, folder):
        self.port, self._folder = free_port(), folder
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "uploading:app",
            "--port",
            str(self.port),
            "--log-level",
            "warning",
        ]
        self._process = subprocess.Popen(command, cwd=self._folder)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                httpx.get(f"{self.url}/nothing")
                return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("it does not start")

    def kill(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture
async def hf(url, tmp_path):
    async with Holdfast(url, blobs=f"file:{tmp_path / 'blobs'}") as opened:
        yield opened


@pytest.fixture
def server(hf, url, tmp_path):
    (tmp_path / "uploading.py").write_text(PROGRAM.format(url=url, place=f"file:{tmp_path / 'blobs'}"))
    running = Server(tmp_path)
    yield running
    running.kill()


async def test_a_server_killed_in_an_upload_leaves_no_row_and_its_bytes_are_swept(hf, server, tmp_path):
    whole = PART + b"whole " * 1000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(
            b"POST /add HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 50000000\r\n\r\n"
        )
        line.sendall(whole + PART + b"half " * 1_000_000)
        end = time.monotonic() + 30
        while not (await names(hf.blobs.place()) and [*(tmp_path / "blobs" / ".parts").iterdir()]):
            assert time.monotonic() < end, "one file is staged and another under way"
            time.sleep(0.02)
        server.kill()
    assert await hf.blobs.list() == []
    swept = await sweeping.sweep(hf.store.blobs, hf.blobs.place(), unused=-5, restorable=0, beat=quiet)
    assert (swept.unused, swept.remains) == (1, 1)
    assert await names(hf.blobs.place()) == []
    server.start()
    answer = httpx.post(
        f"{server.url}/add",
        content=whole + b"--x--\r\n",
        headers={"Content-Type": "multipart/form-data; boundary=x"},
    )
    (key,) = answer.json()
    assert await hf.blobs.read(key) == b"whole " * 1000


async def test_signed_links_over_a_real_server(server):
    content = b"some text " * 500_000
    upload = httpx.get(f"{server.url}/allow", params={"length": len(content)}).json()
    target = server.url + upload["url"]
    assert httpx.put(target, content=content[:-1], headers={"Content-Type": "text/plain"}).status_code == 403
    assert (
        httpx.put(target, content=iter([content]), headers={"Content-Type": "text/plain"}).status_code == 403
    ), "chunked: no length"
    assert httpx.put(target, content=content, headers=upload["headers"]).status_code == 200
    link = httpx.get(f"{server.url}/done/{upload['id']}").json()
    answer = httpx.get(server.url + link["url"])
    assert (answer.status_code, answer.content) == (200, content)
    assert answer.headers["content-disposition"].startswith('attachment; filename="notes.txt"')
    assert answer.headers["x-content-type-options"] == "nosniff"
    part = httpx.get(server.url + link["url"], headers={"Range": "bytes=-10"})
    assert (part.status_code, part.content) == (206, content[-10:])
    assert httpx.head(server.url + link["url"]).headers["content-length"] == str(len(content))
    beyond = httpx.get(server.url + link["url"], headers={"Range": f"bytes={len(content)}-"})
    assert beyond.status_code == 416
