"""SQLAlchemy's own tests of dialects, run against ours: what fails or is skipped is known, with its reason."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import sqlalchemy

SUITE = Path(__file__).parent / "suite"
SETUP = """
[sqla_testing]
requirement_cls=suite_requirements:Requirements
profile_file=profiles.txt
[db]
default=sqlite+holdfast:///suite.db
"""
INI = "[pytest]\naddopts = -p no:cacheprovider -p no:xdist -p no:randomly\nasyncio_default_fixture_loop_scope = function\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """(outcome, test, message) for each test of theirs."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "setup.cfg").write_text(SETUP)
    (folder / "pytest.ini").write_text(INI)
    (folder / "test_suite.py").write_text("from sqlalchemy.testing.suite import *\n")
    shutil.copy(SUITE / "suite_conftest.py", folder / "conftest.py")
    shutil.copy(SUITE / "suite_requirements.py", folder)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "--junitxml=results.xml"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=800, check=False
    )
    assert (folder / "results.xml").exists(), done.stdout[-3000:] + done.stderr[-3000:]
    return folder, list(outcomes(folder / "results.xml"))


def outcomes(path):
    for case in ET.parse(path).iter("testcase"):
        test = (
            re.sub(r"_sqlite\+[^.]*$", "", case.get("classname").partition(".")[2]) + "::" + case.get("name")
        )
        ends = [each for each in case if each.tag in ("failure", "error", "skipped")]
        if not ends:
            yield "passed", test, ""
        for each in ends:
            yield each.tag, test, each.get("message") or ""


def known():
    lines = (SUITE / "known.txt").read_text().splitlines()
    return {line.partition("  ")[0] for line in lines if line and not line.startswith("#")}


@pytest.mark.timeout(900)
def test_what_fails_is_known(results):
    _, found = results
    failed = {test for outcome, test, _ in found if outcome in ("failure", "error")}
    assert sorted(failed - known()) == []
    if sqlalchemy.__version__.startswith("2.1."):  # an older suite has fewer tests
        assert sorted(known() - failed) == []


def test_most_of_them_run(results):
    """A wrong word in the requirements would skip hundreds, and nobody would notice."""
    _, found = results
    counts = Counter(outcome for outcome, _, _ in found)
    assert counts["passed"] > (1500 if sqlalchemy.__version__.startswith("2.1.") else 1000)
    assert counts["skipped"] < 320


def test_no_second_sqlite_library_is_loaded(results):
    folder, _ = results
    assert (folder / "libraries.txt").read_text() == ""
