"""The page on blobs prints what it says."""

from __future__ import annotations

from docs_examples import blocks
from test_pages import pasted


def test_the_page_on_blobs_prints_what_it_says(tmp_path):
    printed = pasted("docs/blobs.md", tmp_path)
    assert printed
    assert printed == "".join(blocks("docs/blobs.md", "text"))
