"""The page on traces prints what it says, and names every attribute that spans have."""

from __future__ import annotations

import re

from docs_examples import ROOT, blocks
from test_pages import pasted

from holdfast.observe.traces import names


def test_the_page_on_traces_prints_what_it_says(tmp_path):
    assert pasted("docs/traces.md", tmp_path) == "".join(blocks("docs/traces.md", "text"))


def test_the_page_names_every_attribute_of_ours():
    ours = {each for each in vars(names).values() if isinstance(each, str) and each.startswith("holdfast.")}
    page = (ROOT / "docs/traces.md").read_text()
    assert {
        each for each in ours if f"`{each}`" not in page and not each.startswith("holdfast.observe")
    } == set()
    assert set(re.findall(r"`(holdfast\.(?!observe|web)[a-z._]+)`", page)) <= ours
