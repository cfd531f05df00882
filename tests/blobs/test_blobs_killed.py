"""Processes are killed at each step of stage, commit, move, sweep and purge. Afterwards rows and objects fit, and nothing that was committed is lost."""

from __future__ import annotations

import asyncio
import hashlib
import signal
import sys
from contextlib import suppress

import pytest

from holdfast import Holdfast
from holdfast.blobs import BlobMissing, BlobSettings
from holdfast.kernel.crashpoints import Crash, armed
from holdfast.kernel.ids import new_id
from holdfast.runtime.blobs import settling, sweeping
from holdfast.runtime.blobs.areas import home_of
from holdfast.testing.conformance.blob_kit import names

PROGRAM = """
import asyncio, os, signal, sys
from holdfast import Holdfast
from holdfast.kernel.crashpoints import armed
from holdfast.runtime.blobs import sweeping
from holdfast.testing import drain

def plant():
    # What was copied is removed before the row says so.
    from holdfast.runtime.blobs import settling

    async def move(row, target, rows, objects):
        await objects.copy(row.object, target)
        await objects.delete([row.object])
        settling.crashpoint("blob.copied")
        await rows.move(row.name, source=row.object, target=target)
        return True

    settling._move = move

point, turn = sys.argv[1], int(sys.argv[2])
if len(sys.argv) > 3:
    plant()
passed = 0

def die(name):
    global passed
    passed += 1
    if passed == turn:
        os.kill(os.getpid(), signal.SIGKILL)

async def quiet(text): ...

async def main():
    hf = Holdfast({url!r}, blobs={place!r})
    async with hf:
        with armed(point, die):
            await hf.blobs.stage(b"nobody commits this")
            for number in range(3):
                staged = await hf.blobs.stage(b"content %d" % number)
                async with hf.transaction() as tx:
                    await tx.execute("INSERT INTO files VALUES ($1)", f"f/{{number}}")
                    await hf.blobs.commit(staged, f"f/{{number}}", tx=tx)
                print("committed", f"f/{{number}}", flush=True)
            await drain(hf)
            await hf.blobs.quarantine("f/0", "why not")
            await drain(hf)
            await hf.blobs.release("f/0", "never mind")
            await drain(hf)
            print("deleting f/1", flush=True)
            await hf.blobs.delete("f/1")
            await sweeping.sweep(hf.store.blobs, hf.blobs.place(), unused=-5, restorable=0, beat=quiet)

asyncio.run(main())
"""
POINTS = [
    ("blob.staged", 1), ("blob.staged", 3), ("transaction.before_commit", 1), ("transaction.before_commit", 2), ("transaction.after_commit", 1),
    ("blob.copied", 1), ("blob.copied", 4), ("blob.copied", 5), ("blob.moved", 1), ("blob.moved", 4), ("blob.moved", 5), ("blob.tidied", 2),
    ("blob.tidied", 4), ("blob.swept", 1), ("blob.purged", 1),
]  # fmt: skip


@pytest.fixture(params=["folder", "s3"])
def place(request, tmp_path):
    """S3 with one store is enough: the two do not meet."""
    if request.param == "folder":
        return f"file:{tmp_path / 'blobs'}"
    if request.node.callspec.params["url"] == "postgres":
        pytest.skip("the S3 is tried with SQLite")
    return request.getfixturevalue("seaweed").url.replace("?", f"/{new_id()}?")


async def quiet(text): ...


@pytest.mark.parametrize(("point", "turn"), POINTS, ids=lambda each: str(each))
async def test_rows_and_objects_fit_after_a_kill(url, place, point, turn, monkeypatch):
    await killed(url, place, monkeypatch, point, str(turn))


async def test_a_planted_bug_is_found(url, tmp_path, monkeypatch):
    with pytest.raises((AssertionError, BlobMissing)):
        await killed(url, f"file:{tmp_path / 'blobs'}", monkeypatch, "blob.copied", "1", "bug")


async def killed(url, place, monkeypatch, *arguments):
    async with Holdfast(url, blobs=BlobSettings(url=place)) as hf:
        async with hf.transaction() as tx:
            await tx.execute("CREATE TABLE IF NOT EXISTS files (key TEXT)")
            await tx.execute("DELETE FROM files")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM.format(url=url, place=place), *arguments, stdout=asyncio.subprocess.PIPE
        )  # fmt: skip
        said, _ = await asyncio.wait_for(process.communicate(), 120)
        if process.returncode != -signal.SIGKILL:
            raise RuntimeError("it has not passed the point")
        monkeypatch.setattr(sweeping, "_LATE", 0.0)
        for _ in range(2):  # the second finds nothing left to do
            swept = await sweeping.sweep(
                hf.store.blobs, hf.blobs.place(), unused=-5, restorable=0, beat=quiet
            )
        assert swept == sweeping.Swept()
        await fits(hf, said.decode().split("\n"))


async def fits(hf, said):
    rows = await hf.store.blobs.find(limit=100)
    assert sorted(await names(hf.blobs.place())) == sorted(row.object for row in rows)
    async with hf.transaction() as tx:
        files = {row[0] for row in await tx.fetch("SELECT key FROM files")}
    committed = {line.partition(" ")[2] for line in said if line.startswith("committed")}
    kept = {row.name.removeprefix("-/") for row in rows}
    assert committed <= files
    assert files - {"f/1"} == kept - {"f/1"}, "the program's rows and ours are those of one transaction"
    assert "f/1" in kept or "f/1" not in files or "deleting f/1" in said
    for row in rows:
        number = row.name[-1]
        assert row.settled
        if row.state != "quarantined":
            found = await hf.blobs.read(f"f/{number}")
            assert (found, row.sha256) == (b"content %s" % number.encode(), hashlib.sha256(found).hexdigest())
    assert (await hf.blobs.check()).missing == ()


async def test_a_mover_that_comes_late_removes_nothing_that_is_needed(url, tmp_path):
    """One is stopped at each point; others do everything, and then it goes on with what it had read."""

    def crash(name):
        raise Crash

    async with Holdfast(url, blobs=f"file:{tmp_path / 'blobs'}") as hf:
        rows, place, read = hf.store.blobs, hf.blobs.place(), []
        await hf.blobs.put("a", b"content")
        for verb in ("quarantine", "release", "quarantine", "release", None):
            for point in ("blob.copied", "blob.moved", "blob.tidied"):
                read.append(await rows.get("-/a"))
                with armed(point, crash), suppress(Crash):
                    await settling.settle("-/a", rows, place)
            await settling.settle("-/a", rows, place)
            read.append(await rows.get("-/a"))
            for late in read:
                await go_on(late, rows, place)
            row = await rows.get("-/a")
            assert await place.stat(row.object) is not None
            assert row.state in {"kept", "quarantined"}
            if verb is not None:
                await getattr(hf.blobs, verb)("a", "why not")
        assert await hf.blobs.read("a") == b"content"
        assert len(await names(place)) == 1


async def go_on(row, rows, place):
    target = home_of(row.state, row.object)
    if target != row.object:
        await settling._move(row, target, rows, place)
    await settling._tidy(row, rows, place)
