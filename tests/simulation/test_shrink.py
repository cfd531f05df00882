"""A failing schedule is made small, still fails, and the command that is printed replays it."""

from __future__ import annotations

import shlex

from holdfast.testing.simulation import __main__ as cli
from holdfast.testing.simulation import report
from holdfast.testing.simulation.checkers import SURPRISE
from holdfast.testing.simulation.kinds import make_plan
from holdfast.testing.simulation.mutants import planted
from holdfast.testing.simulation.shrink import shrink
from holdfast.testing.simulation.simulate import Choices, simulate

MUTANT = "no fence"  # who writes late has stood still


def _first_failing(template):
    for seed in range(200):
        if len(make_plan(seed, "store").faults) >= 4:
            result = simulate(seed, template)
            if result.violations:
                return result
    raise AssertionError("no seed fails")


def _faults(seed):
    return frozenset(fault.number for fault in make_plan(seed, "store").faults)


def test_faults_that_do_not_matter_are_left_out(template, capsys):
    with planted(MUTANT):
        failed = _first_failing(template)
        choices, smallest = shrink(
            failed, lambda choices: simulate(failed.seed, template, choices), Choices()
        )
        without_any = simulate(failed.seed, template, Choices(_faults(failed.seed)))
    invariant = failed.violations[0].invariant
    assert invariant != SURPRISE, "the planted bug no longer fits the code"
    assert choices.without_faults
    assert choices.fifo_after is not None
    assert invariant in {violation.invariant for violation in smallest.violations}

    told = report.failure(smallest, choices, MUTANT)
    kept = len(_faults(failed.seed) - choices.without_faults)
    assert kept >= 1
    assert without_any.violations == [], "it takes a fault to make a zombie"
    assert told.count("\n  fault ") == kept
    command = shlex.split(told.splitlines()[-1])
    assert command[:3] == ["python", "-m", "holdfast.testing.simulation"]
    assert cli.main(command[3:]) == 1
    assert invariant in capsys.readouterr().out
