"""Large files pass through with flat memory. HOLDFAST_TEST_BLOB_MB says how large: 1024 is what the page on blobs tells of."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.kernel.ids import new_id

MB = int(os.environ.get("HOLDFAST_TEST_BLOB_MB", "96"))
MOST = 64  # MB more than the idle program
PROGRAM = """
import asyncio, hashlib
from pathlib import Path
from holdfast import Holdfast
from holdfast.web import Uploads

hf = Holdfast("sqlite:///{folder}/x.db", blobs={place!r})
MB, PIECE = {mb}, bytes(range(256)) * 256

async def content():
    for _ in range(MB * 16):
        yield PIECE

async def body():
    yield b'--x\\r\\nContent-Disposition: form-data; name="a"; filename="a"\\r\\n\\r\\n'
    async for piece in content():
        yield piece
    yield b"\\r\\n--x--\\r\\n"

def peak():
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) // 1024

async def main():
    async with hf:
        await hf.blobs.put("small", b"x")
        await hf.blobs.read("small")
        before = peak()
        blob = await hf.blobs.put("large", content())
        found = hashlib.sha256()
        async for piece in await hf.blobs.open("large"):
            found.update(piece)
        assert (blob.size, blob.sha256) == (MB * 2**20, found.hexdigest())
        source = body()
        async def receive():
            try:
                return {{"type": "http.request", "body": await anext(source), "more_body": True}}
            except StopAsyncIteration:
                return {{"type": "http.request", "body": b"", "more_body": False}}
        scope = {{"type": "http", "headers": [(b"content-type", b"multipart/form-data; boundary=x")]}}
        uploads = Uploads(hf.blobs, types=["application/octet-stream"], total=MB * 2**20 + 10_000)
        form = await uploads.receive_from(scope, receive)
        assert form.files[0].staged.sha256 == blob.sha256
        print(peak() - before)

asyncio.run(main())
"""


@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_memory_stays_flat(kind, tmp_path, request):
    place = f"file:{tmp_path / 'blobs'}"
    if kind == "s3":
        place = request.getfixturevalue("seaweed").url.replace("?", f"/{new_id()}?")
    program = PROGRAM.format(folder=tmp_path, place=place, mb=MB)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stderr
    grown = int(done.stdout)
    print(f"{kind}: {MB} MB in, out and by a form; {grown} MB of memory more at most")  # noqa: T201
    assert grown < MOST
