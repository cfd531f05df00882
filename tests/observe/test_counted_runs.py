"""Batches of ends: counted by task and outcome with their times, and written down before only where somebody could read it."""

from __future__ import annotations

from importlib import import_module
from itertools import count
from types import SimpleNamespace

import pytest

from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead, Done
from holdfast.observe.metrics.jobs import JobCounts
from holdfast.observe.metrics.journal import left_in
from holdfast.observe.metrics.ledger import Ledger
from holdfast.store.records import Claim, Finish

TURNS = count(1_000_000, 10)


@pytest.fixture
def ledger(monkeypatch):
    """Of a process of its own."""
    made = Ledger()
    monkeypatch.delenv("HOLDFAST_METRICS_FOLDER", raising=False)
    for name in ("jobs", "kinds"):  # `holdfast.observe.metrics` is the function of that name, too
        monkeypatch.setattr(import_module(f"holdfast.observe.metrics.{name}"), "ledger", made)
    made.turn = next(TURNS)  # so that no metric takes the places of another test's
    made.begin()
    return made


def batch(*tasks, outcome=Done):
    """Finishes of these tasks, in this order, and the runs that they end: 20 ms each, after 2 s."""
    finishes, runs = [], {}
    for number, task in enumerate(tasks):
        claim = Claim(
            new_id(),
            number + 1,
            9.0,
            task,
            "q",
            "{}",
            1,
            0,
            alone=False,
            enqueued_at=0.0,
            generation=0,
        )
        finishes.append(Finish(claim, outcome() if outcome is Done else outcome("no")))
        runs[claim.job_id, claim.token] = SimpleNamespace(took=0.02, waited=2.0)
    return finishes, runs


def numbers(ledger, *words):
    """The sum of all numbers whose name has these words."""
    found = ledger.cells.read()
    return sum(number for name, number in found.items() if all(f'"{word}"' in name for word in words))


def test_a_batch_of_several_tasks_that_take_turns(ledger):
    flight = JobCounts().flight()
    finishes, runs = batch("eat", "rest", "eat", "rest", "eat")
    flight.sent(finishes)
    flight.ended(finishes, [True, True, True, None, True], runs)
    for task, number in (("eat", 3), ("rest", 1)):
        assert numbers(ledger, "holdfast_job_runs_total", task, "succeeded") == number
        assert numbers(ledger, "b", "holdfast_job_run_seconds", "0.025", "q", task) == number
        assert numbers(ledger, "b", "holdfast_job_wait_seconds", "2.5", "q", task) == number
        assert numbers(ledger, "s", "holdfast_job_run_seconds", "q", task) == pytest.approx(0.02 * number)
        assert numbers(ledger, "s", "holdfast_job_wait_seconds", "q", task) == pytest.approx(2.0 * number)
    again, runs = batch("eat", outcome=Dead)
    flight.sent(again)
    flight.ended(again, [True], runs)
    assert numbers(ledger, "holdfast_job_runs_total", "eat", "dead") == 1


def test_what_dies_with_the_process_is_not_written_down(ledger):
    flight = JobCounts().flight()
    finishes, runs = batch("eat", "eat")
    flight.sent(finishes)
    assert not list(left_in(ledger.cells)), "the numbers are in memory alone: nobody could read it"
    flight.ended(finishes, [True, True], runs)
    assert numbers(ledger, "holdfast_job_runs_total", "eat", "succeeded") == 2


def test_with_a_folder_it_is_written_down_until_it_is_counted(ledger, tmp_path):
    ledger.keep_in(tmp_path)
    flight = JobCounts().flight()
    finishes, runs = batch("eat", "eat")
    flight.sent(finishes)
    [block] = left_in(ledger.cells)
    assert block.what_was_sent().decode().count("succeeded") == 2
    flight.ended(finishes, [True, True], runs)
    assert not list(left_in(ledger.cells))
    assert numbers(ledger, "holdfast_job_runs_total", "eat", "succeeded") == 2
    ledger.cells.close()
