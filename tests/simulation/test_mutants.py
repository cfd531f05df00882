"""Every planted bug is found, within the seeds that are known to find it."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from holdfast.testing.simulation.checkers import SURPRISE
from holdfast.testing.simulation.mutants import MUTANTS, planted, schema_of
from holdfast.testing.simulation.mutants.planting import rewrite
from holdfast.testing.simulation.simulate import simulate
from holdfast.testing.simulation.template import template as made_template

SEEDS = 200
# Of those that are rarely found, where to begin. `make sim-mutants` begins at 0, and says which seed is the first.
FIRST = {
    "unknown is taken for refused": 118,
    "a lease for everyone": 16,
    "a lease renewed by anyone": 20,
    "a lease ended by anyone": 20,
    "a key finished by anyone": 29,
    "a lost key keeps its token": 18,
    "not handled yet is handled": 34,
    "dies with an open effect": 15,
    "refused after unknown": 13,
    "repair decides": 14,
    "cancel passes nothing on": 29,
    "rescue passes nothing on": 42,
    "release goes to the back": 53,
    "who leaves cuts off a claim": 21,
    "a schedule begins at every look": 13,
    "a finish is forgotten": 74,
    "one node opens it for all": 10,
    "who begins asks nobody": 27,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_it_is_found(name):
    first = FIRST.get(name, 0)
    with made_template(schema_of(name)) as template, planted(name):
        broken = (
            violation
            for seed in range(first, first + SEEDS)
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
