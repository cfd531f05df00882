"""The demo keeps its promises, on real processes, and says so with its exit code."""

from __future__ import annotations

import subprocess
import sys


def test_the_demo():
    command = [sys.executable, "-m", "holdfast.runtime.demo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lost 0   doubled 0   ghosts 0" in done.stdout
    assert "is killed (SIGKILL)" in done.stdout
    assert "late writes are refused" in done.stdout
    assert done.stdout.rstrip().endswith("Every promise was kept.")
