"""A few hundred seeds of both kinds on the real SQLite store, and those that found a bug before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from holdfast.testing.simulation.kinds import KINDS
from holdfast.testing.simulation.simulate import simulate
from holdfast.testing.simulation.sometimes import ENOUGH, missing

REGRESSIONS = Path(__file__).with_name("regressions.txt")


@pytest.mark.parametrize("kind", KINDS)
def test_no_invariant_breaks_and_everything_was_seen(template, kind):
    counts = Counter()
    for seed in range(ENOUGH[kind]):
        result = simulate(seed, template, kind=kind)
        assert result.violations == [], (
            f"python -m holdfast.testing.simulation --kind {kind} --seed {seed} --shrink"
        )
        counts.update(result.counts)
    assert missing(counts, kind) == [], "what never happened proves nothing"


def _regressions():
    lines = (line.partition("#")[0].split() for line in REGRESSIONS.read_text("utf-8").splitlines())
    return [(line[0], int(line[1])) for line in lines if line]


@pytest.mark.parametrize(("kind", "seed"), _regressions())
def test_what_was_found_before_stays_fixed(template, kind, seed):
    assert simulate(seed, template, kind=kind).violations == []
