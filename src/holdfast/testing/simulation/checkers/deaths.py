"""What follows a death: the rows of on_dead are there once, in the transaction that made the job dead, or its failure is noted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.service.tasks import DOOMED, TASKS


def told(run: Run) -> Iterator[str]:
    if run.plan.kind != "worker":
        return
    rows = {entry.id: entry for entry in run.ledger.of("row") if entry.reason == "on_dead"}
    number = Counter(entry.id for entry in run.ledger.of("row") if entry.reason == "on_dead")
    noted = {event.data[1] for event in run.history.happened("note") if event.data[0] == "on_dead.failed"}
    dead = {entry.id: entry for entry in run.ledger.of("moved") if entry.state == "dead"}
    for job_id in rows.keys() - dead.keys():
        yield f"job {job_id}: on_dead was called, and it is not dead"
    for job_id, entry in dead.items():
        task = run.ledger.made[job_id].task
        if task not in TASKS:
            continue
        if number[job_id] > 1:
            yield f"job {job_id}: it died once, and its handler wrote {number[job_id]} times"
        if task == DOOMED and job_id not in noted:
            yield f"job {job_id}: its handler failed, and nobody was told"
        if task != DOOMED and not number[job_id]:
            yield f"job {job_id}: dead at {entry.moment:.3f} s, and its handler has written nothing"
        if job_id in rows and rows[job_id].process != entry.process:
            yield f"job {job_id}: made dead by {entry.process}, told by {rows[job_id].process}"
