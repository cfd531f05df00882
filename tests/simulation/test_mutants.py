"""Every planted bug is found, within the seeds that are known to find it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.testing.simulation.checkers import SURPRISE, Violation
from holdfast.testing.simulation.hunt import is_proof, known
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
        results = (simulate(seed, template, kind=MUTANTS[name].kind) for seed in [*first, *range(SEEDS)])
        assert any(map(is_proof, results)), f"{name} survived, or no longer fits the code"


@pytest.mark.parametrize(
    ("surprise", "proves"),
    [
        ("upkeep: StoreError: SQLite refused", True),
        ("consumer.failed {'error': \"TypeError('deliver() got an unexpected keyword argument')\"}", False),
        ("relay.failed {'error': \"AttributeError('no answers')\"}", False),
    ],
)
def test_a_planting_that_does_not_fit_the_code_proves_nothing(template, surprise, proves):
    """Its group is never served, and so every promise seems broken."""
    found = simulate(0, template)
    found.violations += [Violation("I13 all work ends", "a job waits"), Violation(SURPRISE, surprise)]
    assert is_proof(found) is proves
    found.violations = [Violation(SURPRISE, "StoreError")]
    assert not is_proof(found)


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
