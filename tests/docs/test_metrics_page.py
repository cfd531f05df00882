"""The page on metrics prints what it says, and names what there is."""

from __future__ import annotations

import re

from docs_examples import ROOT, blocks
from test_pages import pasted

from holdfast.observe.metrics import catalog
from holdfast.observe.metrics.kinds import Metric


def test_the_page_on_metrics_prints_what_it_says(tmp_path):
    assert pasted("docs/metrics.md", tmp_path) == "".join(blocks("docs/metrics.md", "text"))


def test_the_page_names_what_there_is():
    ours = {each.name for each in vars(catalog).values() if isinstance(each, Metric)}
    named = set(re.findall(r"holdfast_[a-z_]+", (ROOT / "docs/metrics.md").read_text()))
    assert named <= ours
    unnamed = {"holdfast_metrics_lost_total", "holdfast_worker_last_turn_seconds"}
    assert ours - named == unnamed
