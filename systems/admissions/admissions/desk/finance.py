"""Finance: payments and their entries, refunds, what belongs to nobody, and where we and the provider disagree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from admissions.core import PAY, STAGES, hf
from admissions.core import stripe as guard
from admissions.desk.audit import looked
from admissions.desk.inside import inside
from admissions.desk.refusals import Invalid, NotHere, TooLate
from admissions.domain.forms import Wrong
from admissions.domain.ledger import Source
from admissions.outside.errors import NOT_DONE
from admissions.outside.payments import Payments, Refund
from admissions.work.booking import book_refund
from holdfast import Job, Tx


@dataclass(frozen=True)
class PaymentRow:
    application_id: str
    number: str
    name: str
    state: str
    amount: int
    currency: str
    booked: int
    changed_at: float


async def payments(
    *,
    state: str | None = None,
    before: tuple[float, str] | None = None,
    after: tuple[float, str] | None = None,
    limit: int = 50,
) -> list[PaymentRow]:
    """The newest first; or those after a row, the next one first. `odd` are those that somebody must look at."""
    sign, way = (">", "ASC") if after is not None else ("<", "DESC")
    place = after or before or (1e18, "")
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT y.application_id, a.number, p.name, y.state, y.amount, y.currency, "  # noqa: S608  our own words
            "coalesce((SELECT sum(e.amount) FROM entries e WHERE e.application_id = y.application_id), 0), y.changed_at "
            "FROM payments y JOIN applications a ON a.id = y.application_id JOIN people p ON p.id = a.person_id "
            f"WHERE ($1 = '' OR y.state = $1) AND (y.changed_at, y.application_id) {sign} ($2, $3) "
            f"ORDER BY y.changed_at {way}, y.application_id {way} LIMIT $4",
            state or "", *place, limit,
        )  # fmt: skip
    return [
        PaymentRow(found, number, name, its, amount, currency, int(booked), at)
        for found, number, name, its, amount, currency, booked, at in rows
    ]


@dataclass(frozen=True)
class Unmatched:
    reference: str
    intent: str
    amount: int
    currency: str
    at: float


async def unmatched() -> list[Unmatched]:
    """Money of an intent that no application has."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT reference, intent, amount, currency, at FROM entries WHERE application_id IS NULL ORDER BY at DESC LIMIT 200"
        )
    return [Unmatched(*row) for row in rows]


async def refund(
    officer_id: str, application_id: str, amount: int, reason: str, *, tx: Tx | None = None
) -> str:
    """By a job, whose key is its own: it is given back once. No more than was paid."""
    async with inside(tx) as own:
        rows = await own.fetch("SELECT sum(amount) FROM entries WHERE application_id = $1", application_id)
        if not await own.fetch("SELECT 1 FROM payments WHERE application_id = $1", application_id):
            raise NotHere
        paid = int(rows[0][0] or 0)
        if not 0 < amount <= paid:
            raise Invalid([Wrong("amount", "refund_too_much", (amount, paid))])
        if not reason.strip():
            raise Invalid([Wrong("reason", "reason_missing")])
        handle = await give_back.options(unique=f"refund:{application_id}", tx=own).enqueue(
            application_id, amount
        )  # type: ignore[call-arg]  # its worker gives it the client
        if not handle.created:  # one at a time: nobody knows yet what is left
            raise TooLate("refund_under_way", "refunding")
        await looked(own, officer_id, "payment.refunded", application_id, f"{amount}: {reason.strip()[:200]}")
        return handle.id


@hf.task(name="admissions.refund", queue=PAY, retry=STAGES)
async def give_back(job: Job, application_id: str, amount: int, client: Payments) -> str:
    async with hf.transaction() as tx:
        [(intent, currency)] = await tx.fetch(
            "SELECT intent, currency FROM payments WHERE application_id = $1", application_id
        )
    made: Refund = await job.effect(
        "refund",
        partial(_refund, client, job.key_for("refund")),
        intent,
        amount,
        policy="keyed",
        key_ttl=23 * 3600.0,
        not_done=NOT_DONE,
        guard=guard,
    )
    async with job.commit(made.id) as tx:
        await book_refund(tx, made, currency, Source.RETURN)
    return made.id


def _refund(client: Payments, key: str, intent: str, amount: int) -> Refund:
    return client.refund(intent, amount, key)
