"""docs/faults.md names tests that exist, and every test of this folder is named there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "faults.md").read_text()
NAMED = re.findall(r"`([\w/]+\.py)::((?:\w+::)*)(\w+)`", TABLE)


def test_every_named_test_exists():
    assert len(NAMED) > 50
    for file, _, name in NAMED:
        assert re.search(rf"def {name}\(", (ROOT / file).read_text()), f"{file} has no {name}"


def test_every_test_is_named():
    named = {name for _, _, name in NAMED}
    for file in Path(__file__).parent.glob("test_*_faults.py"):
        for name in re.findall(r"^async def (test_\w+)", file.read_text(), re.MULTILINE):
            assert name in named, f"{file.name}::{name} is missing in docs/faults.md"


def test_rows_are_in_order_and_have_four_facts():
    rows = re.findall(r"^\| (\d+) \|(.*)\|$", TABLE, re.MULTILINE)
    numbers = [int(number) for number, _ in rows]
    assert numbers == sorted(set(numbers))
    assert all(
        len(cells.split("|")) == 4 and all(cell.strip() for cell in cells.split("|")) for _, cells in rows
    )
