"""Whether a saga still has to end: one that needs a person has, and so has who waits for it."""

from __future__ import annotations

import apsw

from holdfast.testing.simulation.fleet import Fleet

_ALL = "SELECT id, state, parent, waits FROM holdfast_saga WHERE finished_at IS NULL"
_STUCK = ("needs_operator", "parked")


def pending(_: Fleet, watcher: apsw.Connection) -> list[str]:
    rows = watcher.execute(_ALL).fetchall()
    held = {saga_id for saga_id, state, _, _ in rows if state in _STUCK}
    parents = {saga_id: parent for saga_id, _, parent, _ in rows}
    for saga_id in [*held]:
        while (saga_id := parents.get(saga_id)) is not None:
            held.add(saga_id)
    return [
        f"saga {saga_id} is {state} ({waits})" for saga_id, state, _, waits in rows if saga_id not in held
    ]
