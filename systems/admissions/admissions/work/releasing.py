"""Tell the decisions of a whole round at one time: in portions, each a commit of its own, so that it can be killed and goes on."""

from __future__ import annotations

from admissions.core import STAGES, hf
from admissions.domain.decisions import Stage
from admissions.steps import happened
from admissions.work import letters
from holdfast import Backoff, RunningSaga

PORTION = 100
PATIENT = Backoff(attempts=50, first=1, ceiling=60)


@hf.saga("admissions.release", undo_retry=STAGES)
async def release(saga: RunningSaga, term_id: str) -> int:
    """How many were told. A decision that is drafted or not checked stays as it is."""
    at = await saga.step("open", open_round, term_id, pivot=True)
    told, number = 0, 0
    while True:
        portion = await saga.step(f"portion:{number}", tell_some, term_id, at, retry=PATIENT)
        told, number = told + portion, number + 1
        if portion == 0:
            return int(told)


async def open_round(term_id: str) -> float:
    """The time that all of them have, whenever their letters leave."""
    now = await hf.now()
    async with hf.transaction() as tx:
        await tx.execute(
            "UPDATE terms SET released_at = $1 WHERE id = $2 AND released_at IS NULL", now, term_id
        )
        [(at,)] = await tx.fetch("SELECT released_at FROM terms WHERE id = $1", term_id)
    return float(at)


async def tell_some(term_id: str, at: float) -> int:
    """A decision is released by one statement that says from where; a repetition finds the next ones."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT d.application_id, d.outcome, d.words FROM decisions d JOIN applications a ON a.id = d.application_id "
            "WHERE a.term_id = $1 AND d.stage = $2 AND a.state = 'completed' ORDER BY d.application_id LIMIT $3",
            term_id,
            str(Stage.CHECKED),
            PORTION,
        )
        for application_id, outcome, words in rows:
            changed = await tx.execute(
                "UPDATE decisions SET stage = 'released', released_at = $1, version = version + 1 WHERE application_id = $2 AND stage = 'checked'",
                at,
                application_id,
            )
            if changed:
                await happened(tx, application_id, "decided", outcome=outcome)
                await letters.decided(tx, application_id, outcome=outcome, words=words)
    return len(rows)
