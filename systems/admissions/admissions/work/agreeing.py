"""Whether we and Stripe have the same money: charges and refunds of the last days, one by one. Where not, an alarm says so."""

from __future__ import annotations

from functools import partial

from admissions.core import PAY, STAGES, hf
from admissions.core import stripe as guard
from admissions.domain.ledger import Source, disagreements
from admissions.outside.payments import Intent, Page, Payments, Refund
from admissions.steps import happened
from admissions.work.booking import ALARM, book, book_refund, cause_of
from holdfast import Job, Tx

BACK = 3 * 86_400.0  # seconds: the longest for which Stripe repeats a webhook


@hf.cron("17 * * * *", name="admissions.agree", queue=PAY)
async def agree() -> None:
    async with hf.transaction() as tx:
        since = int(await hf.now() - BACK)
        await compare.options(unique="agree", tx=tx).enqueue(since, "")  # type: ignore[call-arg]  # its worker gives it the client


@hf.task(name="admissions.compare", queue=PAY, retry=STAGES, priority=-10)
async def compare(job: Job, since: int, after: str, payments: Payments) -> int:
    """One page of Stripe's list; the next one is a job of its own. How many intents had money."""
    page: Page = await job.step("page", partial(_page, payments), since, after, guard=guard)
    paid = [each for each in page.intents if each.received]
    refunds: dict[str, list[Refund]] = {}
    for each in paid:
        if each.refunded:
            look = partial(_refunds, payments)
            refunds[each.id] = await job.step(f"refunds:{each.id}", look, each.id, guard=guard)
    async with job.commit(len(paid)) as tx:
        for each in paid:
            await _compared(tx, each, refunds.get(each.id, []))
        if page.more:
            await compare.options(tx=tx).enqueue(since, page.intents[-1].id)  # type: ignore[call-arg]
    return len(paid)


def _page(payments: Payments, since: int, after: str) -> Page:
    return payments.made(since, after)


def _refunds(payments: Payments, intent: str) -> list[Refund]:
    return payments.refunds(intent)


async def _compared(tx: Tx, intent: Intent, refunds: list[Refund]) -> None:
    """What nobody has told us of is booked first: late is not wrong."""
    owner = intent.application_id
    known = await book(tx, intent, Source.LOOK)
    for each in refunds:
        await book_refund(tx, each, intent.currency, Source.LOOK)
    [(ours,)] = await tx.fetch("SELECT coalesce(sum(amount), 0) FROM entries WHERE intent = $1", intent.id)
    [(intents,)] = await tx.fetch(
        "SELECT count(DISTINCT intent) FROM entries WHERE intent = $1 OR application_id = $2",
        intent.id,
        owner,
    )
    found = disagreements(int(ours), intent.received - intent.refunded, int(intents))
    if known is None:
        found.append("It is the intent of no application here.")
    if not found:
        await hf.alerts.over(ALARM, cause_of(intent.id), tx=tx)
        return
    await hf.alerts.raise_(ALARM, cause_of(intent.id), tx=tx)
    if await tx.fetch("SELECT 1 FROM applications WHERE id = $1", owner):
        await _tell_once(tx, owner, " ".join(found))


async def _tell_once(tx: Tx, application_id: str, why: str) -> None:
    """In the history, for officers; not anew each hour."""
    rows = await tx.fetch(
        "SELECT words FROM steps WHERE application_id = $1 AND kind = 'disagrees' ORDER BY id DESC LIMIT 1",
        application_id,
    )
    if not rows or why not in rows[0][0]:
        await happened(tx, application_id, "disagrees", inner=True, why=why)
