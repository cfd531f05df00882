"""docs/security.md names tests that exist."""

from __future__ import annotations

import re

from docs_examples import ROOT

TABLE = (ROOT / "docs" / "security.md").read_text()
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", TABLE)


def test_every_named_test_exists():
    assert len(NAMED) > 30
    for file, name in NAMED:
        assert re.search(rf"def {name}\(", (ROOT / file).read_text()), f"{file} has no {name}"


def test_every_row_is_there_in_order_with_its_tests():
    rows = re.findall(r"^\| (\d+) \|(.*)\|$", TABLE, re.MULTILINE)
    assert [int(number) for number, _ in rows] == [3, 4, 5, 8, 14, 20, 21, 22, 25, 26, 27]
    assert all("`tests/" in cells for _, cells in rows)
