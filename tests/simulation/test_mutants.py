"""Every planted bug is found, within the seeds that are known to find it."""

from __future__ import annotations

import pytest

from holdfast.testing.simulation.checkers import SURPRISE
from holdfast.testing.simulation.mutants import MUTANTS, planted, schema_of
from holdfast.testing.simulation.simulate import simulate
from holdfast.testing.simulation.template import template as made_template

SEEDS = 200  # `make sim-mutants` says which is the first that finds each


@pytest.mark.parametrize("name", MUTANTS)
def test_it_is_found(name):
    with made_template(schema_of(name)) as template, planted(name):
        broken = (
            violation
            for seed in range(SEEDS)
            for violation in simulate(seed, template, kind=MUTANTS[name].kind).violations
            if violation.invariant != SURPRISE  # a planting that no longer fits the code proves nothing
        )
        assert next(broken, None) is not None, f"{name} survived"


def test_a_mutant_is_taken_out_again(template):
    with planted("no fence"):
        pass
    assert simulate(0, template).violations == []
