"""Withdraw an application: its work is stopped, its money goes back, its documents go, and its owner is told; each step done, or stated as final."""

from __future__ import annotations

from functools import partial

import msgspec

from admissions.core import STAGES, Told, hf, key_of, settings
from admissions.core import stripe as guard
from admissions.domain.ledger import Source
from admissions.domain.states import State
from admissions.outside.errors import Refused
from admissions.outside.payments import Intent, Payments, Refund
from admissions.steps import happened, move
from admissions.work import letters
from admissions.work.booking import book, book_refund
from holdfast import Backoff, RunningSaga, within

PATIENT = Backoff(attempts=50, first=5, ceiling=600)


class Paid(msgspec.Struct, frozen=True):
    """What was taken for an application, and not given back."""

    intent: str = ""
    amount: int = 0
    currency: str = ""


@hf.saga("admissions.withdraw", undo_retry=STAGES)
async def withdraw(saga: RunningSaga, application_id: str, reason: str) -> int:
    """From the first step on there is no way back: an application that was withdrawn is not taken up again."""
    closed = await saga.step("close", close, application_id, reason, pivot=True)
    if not closed:
        return 0
    intent = await saga.step("stop", stop, application_id, retry=PATIENT)
    if intent:
        ended = await saga.step("end_intent", end_intent, application_id, intent, retry=PATIENT, guard=guard)
        await saga.step("book_late", book_late, ended, retry=PATIENT)
    paid = await saga.step("paid", what_was_paid, application_id, retry=PATIENT)
    if paid.amount > 0:
        refund = await saga.step(
            "refund", partial(give_back, application_id), paid, retry=PATIENT, guard=guard
        )
        await saga.step("book", book_it, refund, paid.currency, retry=PATIENT)
    await saga.step("files", remove_files, application_id, retry=PATIENT)
    await saga.step("tell", tell, application_id, paid.amount, retry=PATIENT)
    return int(paid.amount)


async def close(application_id: str, reason: str) -> bool:
    """Whether it was open. It is closed by a person, and again by a repetition of this step."""
    async with hf.transaction() as tx:
        if await move(tx, application_id, State.WITHDRAWN, reason=reason):
            await happened(tx, application_id, "withdrawn", reason=reason)
            told = Told(application_id, reason)
            await hf.emit("application.withdrawn", told, key=key_of(application_id), tx=tx)
        rows = await tx.fetch("SELECT state FROM applications WHERE id = $1", application_id)
    return bool(rows) and rows[0][0] == State.WITHDRAWN


async def stop(application_id: str) -> str:
    """What waits is not begun any more. The intent, or nothing."""
    async with hf.transaction() as tx:
        for each in await hf.jobs.find(unique=f"confirm:{application_id}", tx=tx):
            await hf.jobs.cancel(each.id, "the application was withdrawn", running=False, tx=tx)
        rows = await tx.fetch("SELECT intent FROM payments WHERE application_id = $1", application_id)
    return str(rows[0][0] or "") if rows else ""


def end_intent(application_id: str, intent: str) -> Intent:
    """After this it takes no money. One that has taken it says so."""
    payments = Payments(settings)
    try:
        return payments.cancel(intent, f"cancel:{application_id}")
    except Refused:  # it has succeeded, or was cancelled before
        return payments.look(intent)


async def book_late(intent: Intent) -> None:
    """What was paid in the last moment is booked, and then refunded with the rest."""
    async with hf.transaction() as tx:
        await book(tx, intent, Source.LOOK)


async def what_was_paid(application_id: str) -> Paid:
    """By our entries: the intent is over, so nothing comes later."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT intent, currency, sum(amount) FROM entries WHERE application_id = $1 GROUP BY intent, currency",
            application_id,
        )
    found = [Paid(intent, int(total), currency) for intent, currency, total in rows if total > 0]
    return found[0] if found else Paid()


def give_back(application_id: str, paid: Paid) -> Refund:
    """The key is that of the application: it gets its money back once."""
    return Payments(settings).refund(paid.intent, paid.amount, f"withdraw:{application_id}")


async def book_it(refund: Refund, currency: str) -> None:
    async with hf.transaction() as tx:
        await book_refund(tx, refund, currency, Source.RETURN)


async def remove_files(application_id: str) -> int:
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT key FROM documents WHERE application_id = $1", application_id)
        keys = [key for (key,) in rows]
        with within(tenant=application_id):
            if keys:
                await hf.blobs.delete(*keys, tx=tx)
        await tx.execute("UPDATE documents SET state = 'replaced' WHERE application_id = $1", application_id)
    return len(keys)


async def tell(application_id: str, refunded: int) -> None:
    async with hf.transaction() as tx:
        await letters.withdrawn(tx, application_id, refunded=refunded)
