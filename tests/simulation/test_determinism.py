"""The same seed gives the same trace: twice here, and in processes whose strings hash differently."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.testing.simulation.simulate import simulate

SEEDS = (3, 17, 31)
CASES = [(seed, kind) for seed in SEEDS for kind in ("store", "worker")]
CASES += [
    (18, "guards"),
    (4, "events"),
    (9, "events"),
    (5, "sagas"),
    (7, "alerts"),
]  # with jobs; with a cache and over a broker
PROGRAM = f"""
from holdfast.testing.simulation.simulate import simulate
from holdfast.testing.simulation.template import template
with template() as made:
    print([simulate(seed, made, kind=kind).trace for seed, kind in {CASES}])
"""


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_twice_the_same(template, seed, kind):
    first, second = simulate(seed, template, kind=kind), simulate(seed, template, kind=kind)
    assert (first.trace, first.steps, first.counts) == (second.trace, second.steps, second.counts)


def test_whatever_strings_hash_to():
    traces = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert traces[0] == traces[1] != ""
