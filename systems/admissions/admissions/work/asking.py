"""Stripe is asked where no webhook came: what was paid is booked, and what disagrees is told to finance."""

from __future__ import annotations

from functools import partial

from admissions.core import PAY, STAGES, hf, settings
from admissions.core import stripe as guard
from admissions.domain.ledger import Source
from admissions.outside.payments import Intent, Payments
from admissions.steps import happened
from admissions.work.booking import book
from holdfast import Job, State, Tx

_MANY = 500


@hf.cron("* * * * *", name="admissions.ask_stripe", queue=PAY)
async def ask_for_payments() -> None:
    """Each payment that is open or being confirmed, and was not asked for lately; the longer it is open, the seldomer."""
    now = await hf.now()
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT application_id FROM payments WHERE (state = 'confirming' AND changed_at < $1) "
            "OR (state IN ('open', 'declined') AND coalesce(asked_at, changed_at) < $2 - 0.1 * ($2 - changed_at) AND changed_at < $1) "
            "ORDER BY changed_at LIMIT $3",
            now - settings.look_every_s,
            now - settings.look_every_s,
            _MANY,
        )
        for (application_id,) in rows:
            await ask.options(unique=f"ask:{application_id}", tx=tx).enqueue(application_id)  # type: ignore[call-arg]  # its worker gives it the client


@hf.task(name="admissions.ask", queue=PAY, retry=STAGES, priority=-5)
async def ask(job: Job, application_id: str, payments: Payments) -> str:
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT intent, state FROM payments WHERE application_id = $1", application_id)
    if not rows or rows[0][0] is None:
        return "nothing to ask"
    intent: Intent = await job.step("look", partial(_look, payments), rows[0][0], guard=guard)
    async with job.commit(intent.status) as tx:
        await tx.execute(
            "UPDATE payments SET asked_at = $1 WHERE application_id = $2", await hf.now(), application_id
        )
        if intent.status == "succeeded":
            await book(tx, intent, Source.LOOK)
        elif rows[0][1] == "confirming" and intent.status == "requires_payment_method":
            await _not_confirmed(tx, application_id)
    return intent.status


def _look(payments: Payments, intent: str) -> Intent:
    return payments.look(intent)


async def _not_confirmed(tx: Tx, application_id: str) -> None:
    """Stripe knows of no payment: unless the try is still under way, the applicant may pay again."""
    tries = await hf.jobs.find(unique=f"confirm:{application_id}", tx=tx)
    if any(each.state in (State.QUEUED, State.RUNNING, State.UNKNOWN) for each in tries):
        return
    changed = await tx.execute(
        "UPDATE payments SET state = 'open', changed_at = $1 WHERE application_id = $2 AND state = 'confirming'",
        await hf.now(),
        application_id,
    )
    if changed:
        await happened(tx, application_id, "not_confirmed")
