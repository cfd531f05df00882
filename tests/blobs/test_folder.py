"""The folder: what a kill leaves, what strangers put into it, and how links are signed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from holdfast.blobs import BlobRefused, BlobSettings, BlobUnavailable, LinkRefused, open_blobs
from holdfast.kernel.clock import now
from holdfast.testing.conformance.blob_kit import names, whole

WRITER = """
import asyncio, sys
from holdfast.blobs import BlobSettings, open_blobs

async def main():
    place = open_blobs(BlobSettings(url={url!r}))
    async def content():
        while True:
            print("more", flush=True)
            yield b"x" * 2_000_000
    await place.put("x", content())

asyncio.run(main())
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "blobs"


@pytest.fixture
def place(folder):
    return open_blobs(BlobSettings(url=f"file:{folder}"))


async def test_a_writer_that_is_killed_leaves_no_object_and_its_remains_are_removed(
    place, folder, manual_clock
):
    await place.put("x", b"before")
    program = WRITER.format(url=f"file:{folder}")
    writer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    for _ in range(3):
        await asyncio.to_thread(writer.stdout.readline)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    assert await whole(place, "x") == b"before"
    assert await names(place) == ["x"]
    assert len([*(folder / ".parts").iterdir()]) == 1
    assert await place.tidy(before=0) == 0
    assert await place.tidy(before=2**40) == 1
    assert [*(folder / ".parts").iterdir()] == []


async def test_folders_come_and_go_under_writers(place, folder):
    async def busy(number):
        for turn in range(30):
            await place.put(f"a/b/{number}", b"x" * turn)
            assert len(await whole(place, f"a/b/{number}")) == turn
            await place.delete([f"a/b/{number}"])

    await asyncio.gather(*(busy(number) for number in range(8)))
    assert await names(place) == []
    assert not (folder / "a").exists()


async def test_what_strangers_put_there_is_named(place, folder):
    folder.mkdir()
    (folder / "strange~").write_bytes(b"not ours")
    (folder / "readme.txt").write_text("for people: no object, and left alone")
    with pytest.raises(BlobUnavailable, match="no file that Holdfast has written"):
        await place.get("strange")
    (folder / "strange~").unlink()
    assert await names(place) == []


async def test_it_does_not_follow_a_folder_out_of_itself(place, folder, tmp_path):
    await place.put("a", b"x")
    other = open_blobs(BlobSettings(url=f"file:{tmp_path / 'other'}"))
    await other.put("secret", b"x")
    (folder / "way").symlink_to(tmp_path / "other")
    assert await names(place) == ["a"]


async def test_a_full_disk_is_for_now(place, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BlobUnavailable, match="No space left"):
        await place.put("x", b"x")
    monkeypatch.undo()
    assert await names(place) == []


async def test_what_is_taken_away_under_a_writer_is_told(place, folder):
    async def content():
        yield b"x"
        for part in (folder / ".parts").iterdir():
            part.unlink()

    with pytest.raises(BlobRefused, match="No such file"):
        await place.put("x", content())
    assert await names(place) == []


async def test_all_processes_sign_with_one_key_and_no_other_folder_does(place, folder, tmp_path):
    again, other = (open_blobs(BlobSettings(url=f"file:{path}")) for path in (folder, tmp_path / "other"))
    link = place.link_get("a", expires=60)
    query = dict(pair.split("=") for pair in link.url.partition("?")[2].split("&"))
    assert again.signer.granted("GET", "a", query).expires > now()
    with pytest.raises(LinkRefused, match="not made here"):
        other.signer.granted("GET", "a", query)
    assert (folder / ".signing-key").stat().st_mode & 0o777 == 0o600
