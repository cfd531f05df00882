"""I6: rows written in the transaction that finishes a job are there once, if and only if that finish was accepted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.history import Call, Event


def with_the_finish(run: Run) -> Iterator[str]:
    if run.plan.kind in ("events", "alerts"):
        return  # those rows are looked at with their events, and with their alerts
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


def claims_with_the_finish(run: Run) -> Iterator[str]:
    """finish_and_claim is one commit. Looked at when only one finish of the process was under way."""
    ends = {
        (entry.id, entry.token): entry for entry in run.ledger.entries if entry.ended and not entry.rescued
    }
    claimed = {(entry.id, entry.token): entry for entry in run.ledger.entries if entry.claimed}
    for event in run.history.happened("claimed with finish"):
        calls = [
            call
            for call in run.lives[event.process].calls
            if call.verb == "finish" and _is_during(call, event)
        ]
        if len(calls) != 1:
            continue
        steps = {  # of this call: an earlier one may have written it, and its answer got lost
            end.step
            for asked in calls[0].asked
            if (end := ends.get(asked[:2])) is not None and calls[0].spans(end)
        }
        for claim in event.data:
            if steps and claim in claimed and claimed[claim].step not in steps:
                yield f"job {claim[0]} was claimed by {event.process} at step {claimed[claim].step}, and the finish with it was at {steps}"


def _is_during(call: Call, event: Event) -> bool:
    return call.invoked.step <= event.step and (call.answered is None or event.step <= call.answered.step)
