"""The measurement of the edge runs."""

from __future__ import annotations

from bench.web.__main__ import main


def test_the_edge_is_measured(capsys):
    assert main(["--tiny", "--store", "sqlite"]) == 0
    said = capsys.readouterr().out
    for word in ("key, row, job, event", "p99", "RateLimits", "sqlite, 20 at once"):
        assert word in said
