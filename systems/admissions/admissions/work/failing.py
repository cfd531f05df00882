"""When a stage has failed for good: the application says so, in the transaction of that end, and a replay lets it go on."""

from __future__ import annotations

from typing import Any

from admissions.core import Told, hf, key_of
from admissions.domain.states import OPEN, State
from admissions.steps import happened
from holdfast import Job, Tx

# For the owner: what it means to them. What has happened inside is for officers.
WORDS = {
    "verify": "We could not look at your documents. Somebody of us looks after it; there is nothing to do for you.",
    "payment": "The payment could not be prepared. Somebody of us looks after it; nothing was taken.",
    "mail": "Your confirmation could not be sent. Somebody of us looks after it; your application is safe.",
    "complete": "The last step did not succeed. Somebody of us looks after it; your application is safe.",
}


def fails_with(handler: Any, stage: str) -> None:
    """A dead delivery of this handler makes its application `failed`."""

    async def has_failed(job: Job, tx: Tx) -> None:
        await fail(tx, str(job.event.data.application_id), stage, job.id)

    hf.on_dead(handler)(has_failed)


async def fail(tx: Tx, application_id: str, stage: str, job_id: str) -> None:
    """Its owner reads why, officers read which job it was."""
    states = [str(each) for each in sorted(OPEN - {State.FAILED})]
    places = ", ".join(f"${4 + number}" for number in range(len(states)))
    changed = await tx.execute(
        "UPDATE applications SET failed_in = state, state = 'failed', reason = $1, changed_at = $2, version = version + 1 "  # noqa: S608
        f"WHERE id = $3 AND state IN ({places})",
        WORDS[stage],
        await hf.now(),
        application_id,
        *states,
    )
    if changed:
        await happened(tx, application_id, "failed", stage=stage)
        await happened(tx, application_id, "failed_inside", inner=True, stage=stage, job=job_id)
        told = Told(application_id, WORDS[stage])
        await hf.emit("application.failed", told, key=key_of(application_id), tx=tx)
