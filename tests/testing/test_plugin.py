"""The pytest plugin: found by its entry point, and nothing of Holdfast is imported for a run that does not use it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_its_entry_point_leads_to_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # Named as the module: a `pytest_plugins` that names it too is then no second registration.
    assert project["entry-points"]["pytest11"] == {"holdfast_pytest": "holdfast_pytest"}
    assert (ROOT / "src" / "holdfast_pytest.py").is_file()


def test_a_run_that_does_not_use_it_imports_nothing(tmp_path):
    (tmp_path / "test_other.py").write_text(
        "import sys\n\n\ndef test_it():\n"
        "    assert [name for name in sys.modules if name.split('.')[0] == 'holdfast'] == []\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "holdfast_pytest", "-p", "no:cacheprovider", "-q"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_its_fixtures_are_told(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "holdfast_pytest", "--fixtures", "-q"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    for name in ("manual_clock", "holdfast_url", "fresh_holdfast"):
        assert f"\n{name} -- " in done.stdout
