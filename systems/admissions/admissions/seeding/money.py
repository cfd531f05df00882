"""Intents, charges and refunds at Stripe (or its simulator), so that what is planted can be paid and given back."""

from __future__ import annotations

import asyncio

from admissions.core import settings
from admissions.outside.payments import Payments
from admissions.seeding.rows import Planted

_AT_ONCE = 8


async def open_all(planted: list[Planted]) -> None:
    """Those that have a payment: an intent, its charge when it is paid, and its refund when it is withdrawn."""
    client, slots = Payments(settings), asyncio.Semaphore(_AT_ONCE)

    async def one(each: Planted) -> None:
        async with slots:
            await asyncio.to_thread(_open, client, each)

    wanted = ("awaiting_payment", "declined", "completed", "told", "withdrawn")
    await asyncio.gather(*(one(each) for each in planted if each.kind in wanted and each.fee))


def _open(client: Payments, each: Planted) -> None:
    made = client.create(each.id, each.fee, settings.currency, f"seed:{each.id}")
    each.intent = made.id
    if each.kind in ("awaiting_payment", "declined"):
        return
    paid = client.confirm(made.id, "pm_card_visa", f"seed-pay:{each.id}")
    each.entries.append((str(paid.charge), paid.received))
    if each.kind == "withdrawn":
        refund = client.refund(made.id, paid.received, f"seed-refund:{each.id}")
        each.entries.append((refund.id, -refund.amount))
