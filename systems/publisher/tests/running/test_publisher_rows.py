"""The table of rows names code and tests that exist, and leaves none out; decisions name what was not chosen."""

from __future__ import annotations

import re
from functools import cache

from deployed import ROOT

SYSTEM = ROOT / "systems/publisher"
ROWS = (SYSTEM / "docs/rows.md").read_text()
LINES = [
    line for line in ROWS.splitlines() if line.startswith("| ") and not line.startswith(("| Row", "| #"))
]


@cache
def known():
    """All names of tests, and of their files."""
    found = set()
    for folder in (SYSTEM / "tests", ROOT / "tests"):
        for path in folder.rglob("test_*.py"):
            found |= {path.name, *re.findall(r"def (test_\w+)", path.read_text())}
    return found


def test_every_row_has_a_line():
    named = {name for line in LINES for name in re.findall(r"\b[PX]N?\d+\b", line.split("|")[1])}
    assert {f"P{number}" for number in range(1, 114)} <= named
    numbers = [line.split("|")[1].strip() for line in LINES if line.split("|")[1].strip().isdecimal()]
    assert [int(each) for each in numbers] == [*range(1, 16)] * 2, "fifteen complaints, fifteen expectations"


def test_every_test_that_a_row_names_is_there():
    missing = {
        name
        for line in LINES
        for name in re.findall(r"test_\w+(?:\.py)?", line)
        if name not in known() and not (SYSTEM / "tests/proof" / name).exists()
    }
    assert not missing
    assert all(re.search(r"`(?:\w+/)*test_\w+", line) for line in LINES)


def test_every_file_that_a_row_names_is_there():
    for line in LINES:
        for name in re.findall(r"`([\w/.-]+)`", line.split("|")[3] if line.count("|") > 4 else ""):
            places = [SYSTEM / "publisher" / name, SYSTEM / name, SYSTEM / "publisher/web/api" / name]
            assert any(place.exists() for place in places), (name, line)


def test_decisions_name_their_alternatives():
    """P108, P109: what was chosen, what else there is, and what follows; the four of the original's lock."""
    texts = [path.read_text() for path in sorted((SYSTEM / "docs/decisions").glob("*.md"))]
    assert len(texts) == 3
    for text in texts:
        assert "**Context.**" in text
        assert "**Choice.**" in text
        assert "**Consequence.**" in text
        assert "**Other ways.**" in text or "alternatives" in text
    for alternative in ("Redlock", "FOR UPDATE", "Deduplication", "Keys of the provider"):
        assert alternative in texts[1]
