"""A run's deadline stays where it is, however often its lease is renewed."""

from __future__ import annotations

from holdfast.jobs.run import Run
from holdfast.kernel.clock import monotonic
from holdfast.store.records import Claim


def test_a_renewed_lease_gives_no_more_time():
    claim = Claim("j", 1, 130.0, "t", "q", "[]", 1, 0, False, 99.0, 0, deadline=105.0)
    run = Run(claim, None, monotonic() + 30)
    assert 4 < run.time_left() <= 5
    run.until += 10
    assert 4 < run.time_left() <= 5


def test_a_deadline_that_has_passed_leaves_nothing():
    claim = Claim("j", 1, 130.0, "t", "q", "[]", 1, 0, False, 99.0, 0, deadline=99.5)
    assert Run(claim, None, monotonic() + 30).time_left() == 0.0
