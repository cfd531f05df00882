"""The browser tests without a Chromium: they say what is missing, and are not passed over in silence where CI is set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools import chromium

ROOT = Path(__file__).parents[2]


def run_without(tmp_path, **environment):
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "tests/browser/test_swap.py", "-k", "becomes"],
        cwd=ROOT,
        env={**kept, **environment, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )  # fmt: skip


def test_they_are_skipped_by_name(tmp_path):
    done = run_without(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "There is no Chromium" in done.stdout
    assert "apt-get install chromium" in done.stdout


def test_they_fail_where_ci_is_set(tmp_path):
    done = run_without(tmp_path, CI="true")
    assert done.returncode == 1
    assert "There is no Chromium" in done.stdout


def test_it_is_installed_only_where_it_is_missing_and_one_may(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(chromium, "install", lambda: asked.append("install"))
    monkeypatch.setattr(chromium.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert chromium.main() == 0
    assert asked == []
    monkeypatch.setattr(
        chromium.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None
    )
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 1000)
    assert chromium.main() == 0
    assert asked == []
    assert "There is no Chromium" in capsys.readouterr().err
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 0)
    assert chromium.main() == 0
    assert asked == ["install"]
