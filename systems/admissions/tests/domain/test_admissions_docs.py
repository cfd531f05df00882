"""The tables of the documentation name what is there."""

from __future__ import annotations

import re
from pathlib import Path

SYSTEM = Path(__file__).parents[2]


def functions():
    return {
        name
        for path in SYSTEM.glob("tests/**/test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }


def test_the_table_of_patterns_names_files_and_tests():
    """A73: eight rows."""
    readme = (SYSTEM / "README.md").read_text()
    rows = [
        line
        for line in readme.split("## The patterns")[1].splitlines()
        if line.startswith("| ") and "Pattern |" not in line
    ]
    assert len(rows) == 8
    assert all((SYSTEM / place).exists() for place in re.findall(r"\]\((\S+?)\)", readme))
    files = {path.name for path in SYSTEM.glob("tests/**/test_*.py")}
    for row in rows:
        assert set(re.findall(r"`(test_\w+\.py)`", row)) & files, row


def test_each_row_names_a_test_that_is_there():
    table = (SYSTEM / "docs/rows.md").read_text()
    known = functions()
    assert {f"A{number}" for number in range(1, 75)} <= set(re.findall(r"^\| (\w+) \|", table, re.MULTILINE))
    assert [name for name in re.findall(r"`(test_\w+)`", table) if name not in known] == []
