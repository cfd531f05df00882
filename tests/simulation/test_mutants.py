"""Every planted bug is found, within the seeds that are known to find it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.testing.simulation.checkers import SURPRISE
from holdfast.testing.simulation.hunt import known
from holdfast.testing.simulation.mutants import MUTANTS, planted, schema_of
from holdfast.testing.simulation.mutants.planting import rewrite
from holdfast.testing.simulation.simulate import simulate
from holdfast.testing.simulation.template import template as made_template

SEEDS = 200
# What found each of them last, to begin with: `make sim-mutants ARGS="--write tests/simulation/first_seeds.json"`.
FIRST_SEEDS = Path(__file__).with_name("first_seeds.json")
FIRST = known(FIRST_SEEDS)


@pytest.mark.parametrize("name", MUTANTS)
def test_it_is_found(name):
    first = [FIRST[name]] if name in FIRST else []
    with made_template(schema_of(name)) as template, planted(name):
        broken = (
            violation
            for seed in [*first, *range(SEEDS)]
            for violation in simulate(seed, template, kind=MUTANTS[name].kind).violations
            if violation.invariant != SURPRISE  # a planting that no longer fits the code proves nothing
        )
        assert next(broken, None) is not None, f"{name} survived"


def test_where_to_begin_is_said_of_mutants_that_there_are():
    assert FIRST.keys() <= MUTANTS.keys()


def test_a_statement_that_is_broken_by_mistake_is_no_planted_bug(template):
    with ExitStack() as stack, pytest.raises(AssertionError, match="write the mutant anew"), stack:
        rewrite(stack, ("WHERE seq = ? AND token = ?", "WHERE no_such_column = ? AND token = ?"))
        simulate(0, template)


def test_a_mutant_is_taken_out_again(template):
    with planted("no fence"):
        pass
    assert simulate(0, template).violations == []
