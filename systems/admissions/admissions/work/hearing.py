"""Webhooks of Stripe: taken once each, answered fast, and handled by a job. In any order, they come to the same."""

from __future__ import annotations

from functools import partial

from admissions.core import PAY, STAGES, hf
from admissions.core import stripe as guard
from admissions.domain.ledger import Source
from admissions.outside.errors import Refused
from admissions.outside.payments import Intent, Payments, Refund, event_of, signed_at
from admissions.steps import happened
from admissions.work.booking import book, book_refund
from holdfast import Job, Tx

TOLERANCE = 300.0  # seconds, in both directions
HEARD = frozenset(
    {
        "payment_intent.succeeded",
        "payment_intent.payment_failed",
        "payment_intent.canceled",
        "charge.refunded",
    }
)


async def take(body: bytes, signature: str, secret: str, tx: Tx) -> bool:
    """Whether it was new. Raises Refused when it is not Stripe's, too old, or from the future."""
    event = event_of(body, signature, secret)
    now = await hf.now()
    if abs(signed_at(signature) - now) > TOLERANCE:
        raise Refused("The webhook was signed too long ago, or in the future.")
    new = await tx.execute(
        "INSERT INTO webhook_events (id, type, at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING",
        event.id,
        event.type,
        now,
    )
    intent = event.data.object.intent if event.type in HEARD else None
    if not new or intent is None:
        return bool(new)
    await hear.options(tx=tx).enqueue(event.type, intent)  # type: ignore[call-arg]  # its worker gives it the client
    return True


@hf.task(name="admissions.hear", queue=PAY, retry=STAGES, priority=10)
async def hear(job: Job, kind: str, intent_id: str, payments: Payments) -> str:
    """What an event says is only a reason to ask: the order in which events come, and how often, changes nothing."""
    intent = await job.step("look", partial(_look, payments), intent_id, guard=guard)
    refunds = []
    if kind == "charge.refunded":
        refunds = await job.step("refunds", partial(_refunds, payments), intent_id, guard=guard)
    async with job.commit(intent.status) as tx:
        await book(tx, intent, Source.WEBHOOK)
        for each in refunds:
            await book_refund(tx, each, intent.currency, Source.WEBHOOK)
        if kind == "payment_intent.payment_failed" and intent.application_id:
            await happened(tx, intent.application_id, "card_declined", inner=True, code=intent.declined)
    return str(intent.status)


def _look(payments: Payments, intent: str) -> Intent:
    return payments.look(intent)


def _refunds(payments: Payments, intent: str) -> list[Refund]:
    return payments.refunds(intent)
