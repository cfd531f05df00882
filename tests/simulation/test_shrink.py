"""A failing schedule is made small, still fails, and the command that is printed replays it."""

from __future__ import annotations

import shlex

from holdfast.testing.simulation import __main__ as cli
from holdfast.testing.simulation import report
from holdfast.testing.simulation.kinds import make_plan
from holdfast.testing.simulation.mutants import planted
from holdfast.testing.simulation.shrink import shrink
from holdfast.testing.simulation.simulate import Choices, simulate

MUTANT = "no fence"


def _first_failing(template):
    for seed in range(200):
        result = simulate(seed, template)
        if result.violations and len(make_plan(seed, "store").faults) >= 4:
            return result
    raise AssertionError("no seed fails")


def test_faults_that_do_not_matter_are_left_out(template, capsys):
    with planted(MUTANT):
        failed = _first_failing(template)
        choices, smallest = shrink(
            failed, lambda choices: simulate(failed.seed, template, choices), Choices()
        )
    invariant = failed.violations[0].invariant
    assert choices.without_faults
    assert choices.fifo_after is not None
    assert invariant in {violation.invariant for violation in smallest.violations}

    told = report.failure(smallest, choices, MUTANT)
    kept = len(make_plan(failed.seed, "store").faults) - len(choices.without_faults)
    assert kept >= 1, "it takes a fault to make a zombie"
    assert told.count("\n  fault ") == kept
    command = shlex.split(told.splitlines()[-1])
    assert command[:3] == ["python", "-m", "holdfast.testing.simulation"]
    assert cli.main(command[3:]) == 1
    assert invariant in capsys.readouterr().out
