"""A folder of numbers on a disk that is full, or that has forgotten what was written last: work goes on, and so does counting."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys

import pytest

from holdfast.observe.metrics.cells import LOST, Cells
from holdfast.observe.metrics.folder import Folder
from holdfast.observe.metrics.ledger import Ledger
from holdfast.observe.metrics.scrape import summed

RUNS = '["c","runs_total"]'

# Runs where a tmpfs of 512 KB is mounted. A page of a mapped file that has no room would kill this process.
FULL = """
import sys
from pathlib import Path
from holdfast.observe.metrics.cells import LOST, Cells
from holdfast.observe.metrics.journal import Journal

cells = Cells(Path(sys.argv[1], "1.cells"))
runs = cells.place(("c", "runs_total"))
journal, taken = Journal(cells), 0
while (block := journal.take()) is not None:
    block.sent(b"x" * 40_000)
    taken += 1
try:
    Path(sys.argv[1], "ballast").write_bytes(b"x" * 600_000)
except OSError:
    pass
places = {cells.place(("c", "orders_total", "x" * 300, str(number))) for number in range(2_000)}
for place in places:
    cells.add(place, 1)
cells.add(runs, 7)
assert LOST in places and taken, (len(places), taken)
print(cells.read()['["c","runs_total"]'])
"""


def test_a_full_disk_kills_nobody_who_counts(tmp_path):
    if any(shutil.which(program) is None for program in ("unshare", "mount")):
        pytest.skip("there is no unshare or mount on this machine")
    (tmp_path / "full.py").write_text(FULL)
    disk = tmp_path / "disk"
    disk.mkdir()
    run = f"mount -t tmpfs -o size=512k tmpfs {disk} && exec {sys.executable} {tmp_path}/full.py {disk}"
    options = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    found = subprocess.run(
        ["unshare", "--mount", *options, "sh", "-c", run], capture_output=True, text=True, check=False
    )
    if "unshare: " in found.stderr or "mount: " in found.stderr:
        pytest.skip(f"a tmpfs cannot be mounted in a namespace here: {found.stderr.strip()}")
    assert (found.returncode, found.stdout.strip()) == (0, "7.0"), found.stderr


@pytest.fixture
def full(monkeypatch):
    """No file becomes larger."""

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)


def test_a_process_that_begins_on_a_full_disk_counts_for_itself(tmp_path, full):
    ledger = Ledger()
    ledger.keep_in(tmp_path)
    place = ledger.cells.place(("c", "runs_total"))
    ledger.cells.add(place, 2)
    assert ledger.cells.read()[RUNS] == 2
    assert list(tmp_path.iterdir()) == []


async def test_the_dead_are_counted_while_nothing_can_be_written(tmp_path, hf, monkeypatch):
    left = Cells(tmp_path / "1.cells")
    left.add(left.place(("c", "runs_total")), 5)
    left.close()

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    ledger = Ledger()
    ledger.folder = tmp_path
    monkeypatch.setitem(summed.__globals__, "ledger", ledger)
    with monkeypatch.context() as full_disk:
        full_disk.setattr(Folder, "_keep", refuse)
        assert (await summed(hf.store))[RUNS] == 5
    assert (await summed(hf.store))[RUNS] == 5
    assert not left.path.exists()


async def test_a_past_that_cannot_be_read_is_a_new_beginning(tmp_path):
    (tmp_path / "past.json").write_bytes(b"")
    left = Cells(tmp_path / "1.cells")
    place = left.place(("c", "runs_total"))
    assert place != LOST
    left.add(place, 5)
    left.close()
    folder = Folder(tmp_path)
    assert folder.read()[RUNS] == 5

    async def nothing(_):
        return []

    await folder.tidy(nothing)
    assert folder.read()[RUNS] == 5
