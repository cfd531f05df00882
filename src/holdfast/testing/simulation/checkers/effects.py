"""I6: rows written in the transaction that finishes a job are there once, if and only if that finish was accepted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run


def with_the_finish(run: Run) -> Iterator[str]:
    rows = [(entry.id, entry.number) for entry in run.ledger.of("row") if entry.reason == "effect"]
    over = {(entry.id, entry.token) for entry in run.ledger.of("over") if entry.state == "succeeded"}
    for job_id, number in Counter(job_id for job_id, _ in rows).items():
        if number > 1:
            yield f"job {job_id}: its rows were committed {number} times"
    for job_id, token in rows:
        if (job_id, token) not in over:
            yield f"job {job_id}: its rows are committed without its success under token {token}"
    for call in run.history.of("finish"):
        job_id, token, outcome, _ = call.asked[0]
        if outcome != "effect":
            continue
        if call.kind == "ok" and (job_id, token) not in rows:
            yield f"job {job_id}: it was told that its rows are committed; they are not"
        if (job_id, token) in over and (job_id, token) not in rows:
            yield f"job {job_id}: it succeeded without its rows"
