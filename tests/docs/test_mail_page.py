"""The page on mail prints what it says."""

from __future__ import annotations

from docs_examples import blocks
from test_pages import pasted


def test_the_page_on_mail_prints_what_it_says(tmp_path):
    assert pasted("docs/mail.md", tmp_path) == "".join(blocks("docs/mail.md", "text"))
    assert len(list((tmp_path / "outbox").glob("*.eml"))) == 2
