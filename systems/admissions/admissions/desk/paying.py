"""The fee: what the pay page shows, and a payment that nobody can make twice."""

from __future__ import annotations

from dataclasses import dataclass

from admissions.core import hf
from admissions.desk.inside import inside
from admissions.desk.refusals import NotHere, TooLate
from admissions.steps import happened
from admissions.work.paying import confirm
from holdfast import Tx


@dataclass(frozen=True)
class PayPage:
    """`state`: none, open, confirming, declined, paid, refunded, odd."""

    application_id: str
    number: str
    amount: int
    currency: str
    state: str
    words: str


async def page(person_id: str, application_id: str) -> PayPage:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT a.id, a.number, a.fee, a.currency, coalesce(p.state, 'none'), coalesce(p.words, '') FROM applications a "
            "LEFT JOIN payments p ON p.application_id = a.id WHERE a.id = $1 AND a.person_id = $2 AND a.number IS NOT NULL",
            application_id,
            person_id,
        )
    if not rows:
        raise NotHere
    return PayPage(*rows[0])


async def pay(person_id: str, application_id: str, method: str, *, tx: Tx | None = None) -> None:
    """One payment at a time: while one is being confirmed, no other begins."""
    async with inside(tx) as own:
        owner = await own.fetch(
            "SELECT 1 FROM applications WHERE id = $1 AND person_id = $2", application_id, person_id
        )
        if not owner:
            raise NotHere
        changed = await own.execute(
            "UPDATE payments SET state = 'confirming', words = '', changed_at = $1 WHERE application_id = $2 AND state IN ('open', 'declined')",
            await hf.now(),
            application_id,
        )
        if not changed:
            rows = await own.fetch("SELECT state FROM payments WHERE application_id = $1", application_id)
            raise TooLate(
                "payment_under_way" if rows and rows[0][0] == "confirming" else "nothing_to_pay",
                rows[0][0] if rows else "none",
            )
        await happened(own, application_id, "confirming")
        await confirm.options(tx=own).enqueue(application_id, method)  # type: ignore[call-arg]  # its worker gives it the client
