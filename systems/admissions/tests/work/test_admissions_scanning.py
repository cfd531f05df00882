"""The scanner: clamd of Debian with a signature of our own, and what a file that it finds means for its applicant."""

from __future__ import annotations

import os
import shutil
import socket as socketlib
import subprocess
import tempfile
import time
from pathlib import Path

import admissions_kit as kit
import pytest
from admissions.outside.errors import Refused
from admissions.outside.scanning import BUILT_IN, Clamd
from admissions.settings import settings_of
from debian import tool
from test_admissions_outages import scanner_at

from holdfast import within
from holdfast.settings import WrongSettings
from holdfast.testing import drain

BAD = b"%PDF-1.7\nan-unmistakable-piece-of-malware-of-ours\n%%EOF\n"
SIGNATURE = f"Ours.Test:0:*:{b'an-unmistakable-piece-of-malware-of-ours'.hex()}\n"


@pytest.fixture(scope="module")
def clamd():
    """A real one on a socket, which knows one signature. Skipped where Debian's package cannot be had."""
    program = tool("clamd", "clamav-daemon")
    folder = Path(tempfile.mkdtemp(prefix="clamd-"))
    (folder / "db").mkdir()
    (folder / "db" / "ours.ndb").write_text(SIGNATURE)
    socket = folder / "clamd.sock"
    told = [
        f"LocalSocket {socket}",
        f"DatabaseDirectory {folder / 'db'}",
        "Foreground yes",
        "StreamMaxLength 1M",
        f"LogFile {folder / 'log'}",
    ]
    if os.geteuid() == 0:
        told.append("User root")
    (folder / "clamd.conf").write_text("\n".join(told) + "\n")
    with subprocess.Popen(
        [program, "--config-file", str(folder / "clamd.conf")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            end = time.monotonic() + 60
            while not listens(socket):
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < end, "clamd does not start"
                time.sleep(0.05)
            yield str(socket)
        finally:
            process.terminate()
    shutil.rmtree(folder)


def listens(path):
    with socketlib.socket(socketlib.AF_UNIX) as line:
        return line.connect_ex(str(path)) == 0


async def pieces(content):
    for begin in range(0, len(content), 1000):
        yield content[begin : begin + 1000]


async def test_a_real_scanner_finds_what_it_knows(clamd):
    """A35."""
    scanner = Clamd(clamd)
    assert (await scanner.scan(pieces(kit.PDF))).found == ""
    assert (await scanner.scan(pieces(BAD))).found == "Ours.Test.UNOFFICIAL"
    with pytest.raises(Refused, match="larger than clamd takes"):
        await scanner.scan(pieces(bytes(3_000_000)))


async def test_a_file_that_a_real_scanner_finds_can_be_replaced(
    manual_clock, portal, stripe_simulator, box, clamd, monkeypatch
):
    """A34, A35, A36: marked, quarantined, told, and not failed."""
    scanner_at(monkeypatch, clamd)
    application = await kit.submitted(files=(kit.PDF, BAD))
    await manual_clock.run(drain(portal, raise_dead=True))
    async with portal.transaction() as tx:
        rows = await tx.fetch(
            "SELECT name, state, scanner, found, key FROM documents WHERE application_id = $1 ORDER BY name",
            application,
        )
    assert [row[:4] for row in rows] == [
        ("0.pdf", "clean", "clamd", ""),
        ("1.pdf", "infected", "clamd", "Ours.Test.UNOFFICIAL"),
    ]
    assert (await kit.row(application))["state"] == "needs_files"
    assert "1.pdf" in box.of("anh@example.org")[-1].text
    with within(tenant=application):
        assert (await portal.blobs.get(rows[1][4])).state == "quarantined"
        assert (await portal.blobs.get(rows[0][4])).state == "kept"


async def test_a_result_belongs_to_the_bytes_that_were_uploaded(manual_clock, portal, stripe_simulator, box):
    """A38: others under the same name are not found clean for them."""
    application = await kit.submitted()
    async with portal.transaction() as tx:
        await tx.execute("UPDATE documents SET sha256 = 'of-other-bytes'")
    for _ in range(6):
        await manual_clock.run(drain(portal))
        manual_clock.advance(5)
    row = await kit.row(application)
    assert (row["state"], row["failed_in"]) == ("failed", "verifying")
    async with portal.transaction() as tx:
        assert await tx.fetch("SELECT state FROM documents") == [("new",)]


async def test_the_stand_in_says_that_it_is_one(manual_clock, portal, stripe_simulator, box):
    """A35: in each document, and production refuses it."""
    await kit.submitted(files=(kit.PDF, kit.PDF + b"/JavaScript (app.alert())"))
    await manual_clock.run(drain(portal, raise_dead=True))
    async with portal.transaction() as tx:
        rows = await tx.fetch("SELECT scanner, found FROM documents ORDER BY name")
    assert rows == [(BUILT_IN, ""), (BUILT_IN, "PDF with JavaScript")]
    with pytest.raises(WrongSettings, match="CLAMD_ADDRESS"):
        settings_of({"ADMISSIONS_ENV": "production"})
