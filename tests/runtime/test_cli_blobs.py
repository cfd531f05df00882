"""`holdfast blobs`: list, quarantine, sweep and check, on each store; and the doctor's look at the place."""

from __future__ import annotations

import asyncio
import os
import time

import pytest
from cli_kit import write_program

from holdfast import Holdfast, within
from holdfast.blobs.files import SUFFIX

PROGRAM = '''"""A shop."""

from holdfast import Holdfast

hf = Holdfast()
'''


@pytest.fixture
def filled(shop, monkeypatch, tmp_path, on_store):
    write_program(tmp_path, PROGRAM)
    monkeypatch.setenv("HOLDFAST_BLOBS_URL", f"file:{tmp_path / 'blobs'}")

    async def fill():
        async with Holdfast(os.environ["HOLDFAST_URL"]) as hf:
            await hf.blobs.put("shared.txt", b"x", content_type="text/plain")
            with within(tenant="ada"):
                await hf.blobs.put("p/1.png", b"12345", content_type="image/png")
                await hf.blobs.put("p/2.png", b"12", content_type="image/png")

    async def drop(store):
        async with store.transaction() as tx:
            table = "holdfast_blob" if type(store).__name__ == "SqliteStore" else "holdfast.blob"
            await tx.execute(f"DELETE FROM {table}")

    on_store(drop)
    asyncio.run(fill())
    yield tmp_path / "blobs"
    on_store(drop)


def test_list(line, filled):
    assert line("blobs") == 0
    assert [row.split()[:4] for row in line.out.splitlines()[1:]] == [
        ["-", "shared.txt", "kept", "1"],
        ["ada", "p/1.png", "kept", "5"],
        ["ada", "p/2.png", "kept", "2"],
    ]
    assert [
        each["name"] for each in line.json("blobs", "list", "--tenant", "ada", "--limit", "1")["blobs"]
    ] == ["ada/p/1.png"]
    assert len(line.json("blobs", "list", "--after", "ada/p/1.png")["blobs"]) == 1
    assert line("blobs", "list", "--state", "missing") == 0
    assert "no such files" in line.out
    assert line("blobs", "list", "--tenant", "../ada") == 2


def test_quarantine_and_release_leave_audit_rows(line, filled, on_store):
    assert line("blobs", "quarantine", "p/1.png", "--tenant", "ada", "--reason", "a virus") == 0
    assert "nobody reads it" in line.out
    assert line("blobs", "quarantine", "p/1.png", "--tenant", "ada", "--reason", "again") == 1
    assert line("blobs", "quarantine", "p/1.png", "--reason", "of nobody") == 1
    assert line.json("blobs", "list", "--state", "quarantined")["blobs"][0]["reason"] == "a virus"
    assert line("doctor") in {0, 1}
    assert "blobs quarantined" in line.out
    assert (
        line.json("blobs", "release", "p/1.png", "--tenant", "ada", "--reason", "it is none")["done"] is True
    )
    found = []

    async def look(store):
        found.extend(await store.audit.find(subject="blob:ada/p/1.png"))

    on_store(look)
    assert [each.action for each in found] == ["blob.released", "blob.quarantined"]
    assert "a virus" in found[1].after


def test_sweep_and_check(line, filled):
    assert line("blobs", "sweep") == 0
    assert "brought 0 files" in line.out
    assert line("blobs", "check") == 0
    assert "3 files and 0 objects" in line.out, "their jobs have not run: they are staged"
    strange = filled / "kept" / "ada" / f"x.1{SUFFIX}"
    strange.parent.mkdir(parents=True)
    staged = next((filled / "staging" / "ada").iterdir())
    strange.write_bytes(staged.read_bytes())
    os.utime(strange, (time.time() - 200_000,) * 2)
    staged.unlink()
    assert line("blobs", "check") == 1
    assert "orphan:  kept/ada/x.1\n" in line.out
    assert "missing: ada/p/" in line.out
    assert line("blobs", "check", "--remove-orphans") == 0
    assert not strange.exists()


def test_the_doctor_looks_at_the_place(line, filled):
    line("doctor")
    assert "takes and removes objects" in line.out
    filled.rename(filled.with_name("gone"))
    filled.write_text("a file where the folder should be")
    assert line("doctor") == 1
    assert "BAD" in line.out
    assert "HOLDFAST_BLOBS_URL" in line.out


def test_a_program_without_blobs_says_what_to_set(line, shop, monkeypatch):
    assert line("blobs", "sweep") == 2
    assert "HOLDFAST_BLOBS_URL" in line.err
