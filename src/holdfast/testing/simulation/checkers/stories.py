"""The story of a job has each of its claims once: those that did not succeed, as they ended."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run


def complete(run: Run) -> Iterator[str]:
    """As many claims as the file has seen end without a success; a saga that rests is none. Of a long one the oldest are gone."""
    rested = {claim for call in run.history.of("rest") for claim in call.asked}
    for job_id, story in run.stories.items():
        told = [entry for entry in story if entry.outcome != "moved"]
        if story and story[-1].number > len(story):
            continue
        ended = [
            entry
            for entry in run.ledger.by_job.get(job_id, ())
            if entry.ended and entry.state != "succeeded" and (job_id, entry.token) not in rested
        ]
        if len(ended) != sum(entry.times for entry in told):
            yield f"job {job_id}: {len(ended)} claims have ended without a success, and its story tells {told}"
        tokens = {token for entry in told for token in (entry.token, entry.fence)}
        for entry in ended:
            is_counted = any(each.times > 1 and each.attempt == entry.was_attempt for each in told)
            if entry.token not in tokens and not is_counted:
                yield f"job {job_id}: the story does not tell of the claim {entry.token}, which became {entry.state}"
