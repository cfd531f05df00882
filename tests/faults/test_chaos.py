"""A short run of the fault harness: a few kills, zombies and a cut wire, on both stores, and nothing lost or doubled."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import psutil
import pytest
from faultkit import ROOT

from tools.processes import environment


def test_a_short_run(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "chaos", "--short", "--results", str(tmp_path)],
        cwd=ROOT,
        env=environment([ROOT]),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    rows = json.loads((tmp_path / "chaos.json").read_text())
    assert {row["store"] for row in rows} == {"sqlite", "postgres"}
    assert sum(row["kills"] for row in rows) >= 6
    assert sum(row["zombies"] for row in rows) >= 4
    assert all(row["acknowledged"] == row["done"] > 0 for row in rows)
    assert not any(
        row["lost"] or row["doubled"] or row["ghosts"] or row["late"] or row["notes"] for row in rows
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_leaves_nothing_behind(tmp_path, number):
    """Ctrl-C in the middle: every process that it has started is ended."""
    command = [sys.executable, "-m", "chaos", "kills", "--store", "sqlite", "--results", str(tmp_path)]
    given = environment([ROOT], TMPDIR=str(tmp_path))
    with subprocess.Popen(command, cwd=ROOT, env=given, stdout=subprocess.PIPE, text=True) as run:
        family = _family_of(run, wanted=8)
        run.send_signal(number)
        assert run.wait(60) == 130, run.stdout.read()
    assert [pid for pid in family if psutil.pid_exists(pid)] == []


def _family_of(run, wanted):
    end = time.monotonic() + 60
    while len(found := psutil.Process(run.pid).children(recursive=True)) < wanted:
        assert time.monotonic() < end, "it did not start its processes"
        time.sleep(0.1)
    return [each.pid for each in found]
