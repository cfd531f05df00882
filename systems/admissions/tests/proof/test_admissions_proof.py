"""The portal's proof in small: what `make proof SYSTEM=admissions` does with a sixteenth of the applications."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.processes import SOURCE

ROOT = Path(__file__).parents[4]


def test_every_application_is_there_and_charged_once():
    command = [sys.executable, "-m", "tools.proof", "admissions", "--small", "--store", "sqlite"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, str(ROOT)])}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]
    assert "admissions on sqlite, KEPT: " in done.stdout
    assert "lost 0" in done.stdout
