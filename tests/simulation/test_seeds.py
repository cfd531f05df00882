"""A few hundred seeds on the real SQLite store, and those that found a bug before."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing.simulation.simulate import simulate

BLOCK = 20
REGRESSIONS = Path(__file__).with_name("regressions.txt")


@pytest.mark.parametrize("first", range(0, 240, BLOCK))
def test_no_invariant_breaks(template, first):
    for seed in range(first, first + BLOCK):
        assert simulate(seed, template).violations == [], (
            f"python -m holdfast.testing.simulation --seed {seed} --shrink"
        )


def _regressions():
    lines = (line.partition("#")[0].strip() for line in REGRESSIONS.read_text("utf-8").splitlines())
    return [int(line) for line in lines if line]


@pytest.mark.parametrize("seed", _regressions())
def test_what_was_found_before_stays_fixed(template, seed):
    assert simulate(seed, template).violations == []
