"""The parts of the checkers that could be wrong by themselves: the oracle for nominal times, and what must be seen."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.jobs.cron import fires
from holdfast.kernel.errors import UnsupportedStore
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.simulation.checkers.schedules import nominal_times
from holdfast.testing.simulation.kinds import KINDS
from holdfast.testing.simulation.plan import JUMPS, ZONES
from holdfast.testing.simulation.simulate import simulate
from holdfast.testing.simulation.sometimes import REQUIRED, missing


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "expression", ["30 2 * * *", "15 1 * * *", "*/20 * * * *", "45 1,2 * * *", "5 * * * *"]
)
def test_two_ways_to_find_nominal_times_agree(zone, expression):
    for jump in JUMPS:
        after = datetime.fromtimestamp(jump, UTC) - timedelta(hours=30)
        until = after + timedelta(hours=60)
        engine = [moment.timestamp() for moment in fires(expression, zone, after, until)]
        assert engine == list(nominal_times(expression, zone, after, until))


@pytest.mark.parametrize("kind", KINDS)
def test_what_never_happened_is_missing(kind):
    counts = Counter(dict.fromkeys(REQUIRED[kind], 1))
    assert missing(counts, kind) == []
    last = REQUIRED[kind][-1]
    counts[last] = 0
    assert missing(counts, kind) == [last]


@pytest.mark.parametrize("kind", KINDS)
def test_a_fleet_that_cannot_open_its_store_does_not_pass(template, monkeypatch, kind):
    async def refuse(self):
        raise UnsupportedStore("not here")

    monkeypatch.setattr(SqliteStore, "open", refuse)
    assert any("not here" in violation.text for violation in simulate(3, template, kind=kind).violations)
