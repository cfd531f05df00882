"""A SeaweedFS for each process of the run, and the two places of the conformance suite."""

from __future__ import annotations

import http.client
import time
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from holdfast.blobs import BlobSettings, open_blobs
from holdfast.kernel.ids import new_id
from holdfast.kernel.reality import Reality
from holdfast.testing import ManualClock
from holdfast.testing.conformance.blob_kit import Answer
from holdfast.web import SignedFiles
from tools.seaweed_server import SeaweedServer


@pytest.fixture(scope="session")
def seaweed():
    server = SeaweedServer()
    yield server
    server.stop()


class FolderHarness:
    def __init__(self, folder):
        self.world, self._folder = ManualClock(), folder

    async def open(self):
        self.place = open_blobs(BlobSettings(url=f"file:{self._folder}", public="http://shop.test/files"))
        return self.place

    async def send(self, method, url, headers, body):
        app = Starlette(routes=[Mount("/files", SignedFiles(self.place))])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app)) as client:
            answer = await client.request(method, url, headers=headers, content=body)
        return Answer(answer.status_code, dict(answer.headers), answer.content)

    async def expire(self, link):
        self.world.advance(2)

    async def close(self):
        await self.place.close()


class SeaweedHarness:
    world = Reality()

    def __init__(self, server):
        self._url = server.url.replace("?", f"/{new_id()}?")

    async def open(self):
        self.place = open_blobs(BlobSettings(url=self._url))
        return self.place

    async def send(self, method, url, headers, body):
        """As it stands: a client that tidies the path up would hide what the server makes of it."""
        parts = urlsplit(url)
        line = http.client.HTTPConnection(parts.netloc, timeout=20)
        line.request(method, f"{parts.path}?{parts.query}", body=body, headers=dict(headers))
        answer = line.getresponse()
        found = Answer(
            answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        )
        line.close()
        return found

    async def expire(self, link):
        while time.time() < link.expires + 1:
            time.sleep(0.05)

    async def close(self):
        await self.place.close()


@pytest.fixture(params=["folder", "s3"])
def harness(request, tmp_path):
    if request.param == "folder":
        return FolderHarness(tmp_path / "blobs")
    return SeaweedHarness(request.getfixturevalue("seaweed"))
