"""Second stage: one intent for each application, which takes no money; what the applicant pays is confirmed by a job of its own."""

from __future__ import annotations

from functools import partial
from typing import Any

from admissions.core import PAY, STAGES, PaymentOpened, Verified, hf, key_of, settings
from admissions.core import stripe as guard
from admissions.domain.ledger import Source
from admissions.domain.states import State
from admissions.outside.errors import NOT_DONE, Declined
from admissions.outside.payments import Intent, Payments
from admissions.steps import happened, move, state_of
from admissions.work import letters
from admissions.work.booking import book, finish_free
from admissions.work.failing import fails_with
from holdfast import Event, Job, Reject

KEY_LASTS = 23 * 3600.0  # Stripe keeps keys for a day


@hf.on(
    "document.verified",
    group="payment",
    name="open_payment",
    queue=PAY,
    concurrency=settings.pay_at_once,
    retry=STAGES,
)
async def open_payment(event: Event[Verified], job: Job, payments: Payments) -> None:
    """The amount is that of the submission, whatever the fee is by now."""
    application_id = event.data.application_id
    async with hf.transaction() as tx:
        if await state_of(tx, application_id) not in (State.VERIFIED, State.FAILED):
            return  # withdrawn meanwhile
        [(fee, currency)] = await tx.fetch(
            "SELECT fee, currency FROM applications WHERE id = $1", application_id
        )
    if fee == 0:
        async with job.commit() as tx:
            await finish_free(tx, application_id)
        return
    intent = await job.effect(
        "intent",
        partial(_create, payments, job.key_for("intent")),
        application_id,
        fee,
        currency,
        policy="keyed",
        key_ttl=KEY_LASTS,
        not_done=NOT_DONE,
        guard=guard,
    )
    async with job.commit() as tx:
        await _store(tx, application_id, intent.id, fee, currency)


def _create(payments: Payments, key: str, application_id: str, fee: int, currency: str) -> Intent:
    return payments.create(application_id, fee, currency, key)


async def _store(tx: Any, application_id: str, intent: str, fee: int, currency: str) -> None:
    if not await move(tx, application_id, State.AWAITING_PAYMENT):
        return
    await tx.execute(
        "INSERT INTO payments (application_id, intent, state, amount, currency, words, changed_at) "
        "VALUES ($1, $2, 'open', $3, $4, '', $5) ON CONFLICT (application_id) DO NOTHING",
        application_id,
        intent,
        fee,
        currency,
        await hf.now(),
    )
    await happened(tx, application_id, "payment_opened", amount=fee, currency=currency)
    told = PaymentOpened(application_id, fee, currency)
    await hf.emit("payment.opened", told, key=key_of(application_id), tx=tx)
    await letters.pay_now(tx, application_id)


fails_with(open_payment, "payment")


# --- what the applicant pays ---


@hf.task(name="admissions.confirm", queue=PAY, retry=STAGES, priority=20, unique="confirm:{application_id}")
async def confirm(job: Job, application_id: str, method: str, payments: Payments) -> str:
    """Confirm the intent with this card: once for each try of the applicant. What becomes of it stands in the payment's row."""
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT intent, state FROM payments WHERE application_id = $1", application_id)
    if not rows or rows[0][1] != "confirming":
        return "over"
    [(intent_id, _)] = rows
    try:
        intent = await job.effect(
            "confirm",
            partial(_confirm, payments, job.key_for("confirm")),
            intent_id,
            method,
            policy="keyed",
            key_ttl=KEY_LASTS,
            not_done=NOT_DONE,
            guard=guard,
        )
    except Declined as declined:
        async with job.commit("declined") as tx:
            await _decline(tx, application_id, declined.words)
        return "declined"
    async with job.commit("paid") as tx:
        await book(tx, intent, Source.RETURN)
    return "paid"


def _confirm(payments: Payments, key: str, intent_id: str, method: str) -> Intent:
    return payments.confirm(intent_id, method, key)


async def _decline(tx: Any, application_id: str, words: str) -> None:
    changed = await tx.execute(
        "UPDATE payments SET state = 'declined', words = $1, changed_at = $2 WHERE application_id = $3 AND state = 'confirming'",
        words,
        await hf.now(),
        application_id,
    )
    if changed:
        await happened(tx, application_id, "payment_declined", words=words)


@hf.on_dead(confirm)
async def nobody_confirmed(job: Job, tx: Any) -> None:
    """The look-up asks Stripe; until then nobody is offered a second payment."""
    await happened(tx, job.arguments["application_id"], "confirm_failed", inner=True, job=job.id)


def refuse_live_cards() -> None:
    """Numbers of real cards must not pass through here."""
    if not settings.stripe_key.reveal().startswith("sk_test"):
        raise Reject("Cards are taken here with a key for testing only.")
