"""Whether anything about events still has to end: to be published, delivered, read by a view, or published again."""

from __future__ import annotations

import apsw

from holdfast.testing.simulation.events.broker import SimulatedBroker
from holdfast.testing.simulation.fleet import Fleet

_POSITION = "SELECT value FROM holdfast_counter WHERE name = 'position'"
_WAITING = """
    SELECT id FROM holdfast_outbox AS o WHERE state = 'waiting' AND NOT (?1 AND EXISTS (
        SELECT 1 FROM holdfast_outbox AS q WHERE q.state = 'quarantined' AND q.key = o.key AND q.version < o.version))"""
_VIEWS = """
    SELECT view, state FROM holdfast_view
    WHERE state = 'building' OR (state = 'serving' AND position < (SELECT value FROM holdfast_counter WHERE name = 'position'))"""
_ASIDE = """
    SELECT DISTINCT view FROM holdfast_view_aside JOIN holdfast_view USING (view, generation) WHERE state = 'serving'"""


def pending(fleet: Fleet, watcher: apsw.Connection) -> list[str]:
    stream = fleet.plan.stream
    assert stream is not None
    found = [f"event {event_id} waits" for (event_id,) in watcher.execute(_WAITING, (stream.holds_key,))]
    found += [f"the view {view} is {state} and behind" for view, state in watcher.execute(_VIEWS)]
    found += [f"the view {view} has not taken all" for (view,) in watcher.execute(_ASIDE)]
    if stream.transport == "store":
        sql = f"SELECT name FROM holdfast_event_group WHERE position < ({_POSITION})"  # noqa: S608  our own text
        return [*found, *(f"the group {name} is behind" for (name,) in watcher.execute(sql))]
    broker: SimulatedBroker = fleet.provider.broker
    found += [
        f"{broker.backlog(group)} messages wait for {group}"
        for group in broker.groups()
        if broker.backlog(group)
    ]
    return [*found, *(f"what was lost at {at:.3f} s is not published again" for at, _ in broker.lost)]
