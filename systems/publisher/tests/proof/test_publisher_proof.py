"""The publisher's proof in small: what `make proof SYSTEM=publisher` does with a tenth of the posts, on both stores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.processes import SOURCE

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_nothing_is_lost_and_nothing_published_twice(store):
    command = [sys.executable, "-m", "tools.proof", "publisher", "--small", "--store", store]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, str(ROOT)])}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]
    assert f"publisher on {store}, KEPT: " in done.stdout
    assert "twice 0, lost 0" in done.stdout
