"""What follows an unknown or a cancelled job: a row of its handler for each such end, in the transaction of that end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.ledger import Entry
from holdfast.testing.simulation.service.tasks import NEWER, TASKS


def told(run: Run) -> Iterator[str]:
    if run.plan.kind != "worker":
        return
    written = Counter((entry.id, entry.commit) for entry in run.ledger.of("row") if entry.reason == "on_end")
    ends = Counter((entry.id, entry.commit) for entry in run.ledger.entries if _is_end(entry))
    for (job_id, commit), number in written.items():
        if number > ends[job_id, commit]:
            yield f"job {job_id}: its handler has written {number} times, and in that commit it ended {ends[job_id, commit]} times"
    for (job_id, commit), number in ends.items():
        task = run.ledger.made[job_id].task
        # Of the newer task some programs know nothing: what they end, is told by nobody.
        if task in TASKS and task != NEWER and written[job_id, commit] < number:
            yield f"job {job_id} of {task}: it was cancelled or is unknown, and its handler has written nothing with that"


def _is_end(entry: Entry) -> bool:
    if entry.state == "cancelled":
        return entry.was_state != "cancelled" and entry.what in ("over", "moved")
    return entry.what == "moved" and entry.state == "unknown" and entry.was_state != "unknown"
