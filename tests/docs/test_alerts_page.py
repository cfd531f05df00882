"""The page on alerts prints what it says."""

from __future__ import annotations

from docs_examples import blocks
from test_pages import pasted


def test_the_page_on_alerts_prints_what_it_says(tmp_path):
    assert pasted("docs/alerts.md", tmp_path) == "".join(blocks("docs/alerts.md", "text"))
