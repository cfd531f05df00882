"""A few hundred seeds on the real SQLite store, and those that found a bug before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from holdfast.testing.simulation.simulate import simulate
from holdfast.testing.simulation.sometimes import ENOUGH, missing

REGRESSIONS = Path(__file__).with_name("regressions.txt")


def test_no_invariant_breaks_and_everything_was_seen(template):
    counts = Counter()
    for seed in range(ENOUGH):
        result = simulate(seed, template)
        assert result.violations == [], f"python -m holdfast.testing.simulation --seed {seed} --shrink"
        counts.update(result.counts)
    assert missing(counts) == [], "what never happened proves nothing"


def _regressions():
    lines = (line.partition("#")[0].strip() for line in REGRESSIONS.read_text("utf-8").splitlines())
    return [int(line) for line in lines if line]


@pytest.mark.parametrize("seed", _regressions())
def test_what_was_found_before_stays_fixed(template, seed):
    assert simulate(seed, template).violations == []
