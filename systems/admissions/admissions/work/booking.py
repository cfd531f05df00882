"""One state machine for money: webhook, answer and look-up all end here. Each charge and refund is a row, and paid is their sum."""

from __future__ import annotations

from admissions.core import PaymentCompleted, hf, key_of
from admissions.domain.ledger import Entry, Source, Standing, standing
from admissions.domain.states import State
from admissions.outside.payments import Intent, Refund
from admissions.steps import happened, move
from holdfast import Tx

ALARM = "money"  # we and the provider disagree: somebody looks


def cause_of(intent: str) -> str:
    return f"intent:{intent}"


async def book(tx: Tx, intent: Intent, source: Source) -> Standing | None:
    """What an intent has brought; None: it is of no application that we know, and finance looks at it."""
    if intent.charge is None or intent.received == 0:
        return None
    return await _booked(tx, intent.id, Entry(intent.charge, intent.received), intent.currency, source)


async def book_refund(tx: Tx, refund: Refund, currency: str, source: Source) -> Standing | None:
    return await _booked(tx, refund.intent, Entry(refund.id, -refund.amount), currency, source)


async def _booked(tx: Tx, intent: str, entry: Entry, currency: str, source: Source) -> Standing | None:
    application_id = await _owner(tx, intent)
    new = await tx.execute(
        "INSERT INTO entries (reference, application_id, intent, amount, currency, source, at) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (reference) DO NOTHING",
        entry.reference,
        application_id,
        intent,
        entry.amount,
        currency,
        str(source),
        await hf.now(),
    )
    if not new:
        await _check_same(tx, intent, entry)
    return None if application_id is None else await settle(tx, application_id)


async def _check_same(tx: Tx, intent: str, entry: Entry) -> None:
    """Webhook, answer and look-up tell the same amount of one charge, or somebody hears of it."""
    [(amount,)] = await tx.fetch("SELECT amount FROM entries WHERE reference = $1", entry.reference)
    if amount != entry.amount:
        await hf.alerts.raise_(ALARM, cause_of(intent), tx=tx)


async def _owner(tx: Tx, intent: str) -> str | None:
    """The row is locked: two that book for one application come one after the other."""
    await tx.execute("UPDATE payments SET changed_at = changed_at WHERE intent = $1", intent)
    rows = await tx.fetch("SELECT application_id FROM payments WHERE intent = $1", intent)
    return str(rows[0][0]) if rows else None


async def settle(tx: Tx, application_id: str) -> Standing:
    """What the entries of an application come to, and what follows."""
    rows = await tx.fetch("SELECT reference, amount FROM entries WHERE application_id = $1", application_id)
    [(fee, currency)] = await tx.fetch("SELECT fee, currency FROM applications WHERE id = $1", application_id)
    found = standing(fee, [Entry(*row) for row in rows])
    state = {Standing.PAID: "paid", Standing.REFUNDED: "refunded", Standing.UNPAID: None}.get(found, "odd")
    if state is not None:
        await tx.execute(
            "UPDATE payments SET state = $1, words = '', changed_at = $2 WHERE application_id = $3 AND state <> $1",
            state,
            await hf.now(),
            application_id,
        )
    is_paid = found in (Standing.PAID, Standing.OVERPAID) and not await _was_paid(tx, application_id)
    if is_paid and await move(tx, application_id, State.PAID):
        await happened(tx, application_id, "paid", amount=fee, currency=currency)
        told = PaymentCompleted(application_id, fee, currency)
        await hf.emit("payment.completed", told, key=key_of(application_id), tx=tx)
    if found is Standing.OVERPAID:
        await happened(tx, application_id, "overpaid", inner=True, total=sum(row[1] for row in rows))
    return found


async def _was_paid(tx: Tx, application_id: str) -> bool:
    """One that failed in a later stage waits for a person, and not for another word of the same payment."""
    rows = await tx.fetch("SELECT state, failed_in FROM applications WHERE id = $1", application_id)
    return bool(rows) and rows[0][0] == State.FAILED and rows[0][1] in (State.PAID, State.MAILED)


async def finish_free(tx: Tx, application_id: str) -> None:
    """A programme without a fee: nothing to pay, and the pipeline goes on."""
    if await move(tx, application_id, State.AWAITING_PAYMENT) and await move(tx, application_id, State.PAID):
        await happened(tx, application_id, "nothing_to_pay")
        await hf.emit(
            "payment.completed", PaymentCompleted(application_id, 0, ""), key=key_of(application_id), tx=tx
        )
