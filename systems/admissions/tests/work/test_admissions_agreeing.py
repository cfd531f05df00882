"""The ledger that proves that nobody paid twice: webhook, answer and look-up agree, or there is an alarm."""

from __future__ import annotations

import admissions_kit as kit
from admissions.domain.ledger import Source
from admissions.outside.payments import Intent
from admissions.work.agreeing import compare
from admissions.work.booking import ALARM, book
from test_admissions_money import at_stripe, entries, until_payment

from holdfast.testing import drain


async def compared(hf, clock):
    await compare.options(unique="agree").enqueue(0, "")
    await clock.run(drain(hf, raise_dead=True))
    async with hf.transaction() as tx:
        return [
            row[0] for row in await tx.fetch("SELECT cause FROM holdfast_alert_cause WHERE kind = $1", ALARM)
        ]


async def lines(hf, application):
    async with hf.transaction() as tx:
        return [
            words
            for (words,) in await tx.fetch(
                "SELECT words FROM steps WHERE application_id = $1 AND kind = 'disagrees'", application
            )
        ]


async def test_what_agrees_raises_nothing(manual_clock, portal, stripe_simulator, box):
    application = await until_payment(portal, manual_clock)
    await kit.pay(application)
    await manual_clock.run(drain(portal, raise_dead=True))
    assert await compared(portal, manual_clock) == []
    assert await entries(portal) == [7500]


async def test_a_charge_that_nobody_told_us_of_is_booked(manual_clock, portal, stripe_simulator, box):
    application = await until_payment(portal, manual_clock)
    intent = (await kit.payment(application))["intent"]
    at_stripe().v1.payment_intents.confirm(intent, {"payment_method": "pm_card_visa"})
    assert await compared(portal, manual_clock) == []
    assert (await kit.row(application))["state"] == "completed"


async def test_a_refund_that_was_made_at_stripe_is_booked(manual_clock, portal, stripe_simulator, box):
    application = await until_payment(portal, manual_clock)
    await kit.pay(application)
    await manual_clock.run(drain(portal, raise_dead=True))
    intent = (await kit.payment(application))["intent"]
    at_stripe().v1.refunds.create({"payment_intent": intent, "amount": 2500})
    assert await compared(portal, manual_clock) == []
    assert await entries(portal) == [-2500, 7500]


async def test_who_has_paid_twice_is_told_to_finance(manual_clock, portal, stripe_simulator, box):
    """A second intent for one application, made by hand at Stripe, and paid."""
    application = await until_payment(portal, manual_clock)
    await kit.pay(application)
    await manual_clock.run(drain(portal, raise_dead=True))
    client = at_stripe()
    params = {"amount": 7500, "currency": "usd", "metadata": {"application": application}}
    second = client.v1.payment_intents.create(params)
    client.v1.payment_intents.confirm(second.id, {"payment_method": "pm_card_visa"})
    assert await compared(portal, manual_clock) == [f"intent:{second.id}"]
    assert await compared(portal, manual_clock) == [f"intent:{second.id}"]
    [line] = await lines(portal, application)
    assert "2 intents" in line
    assert (await kit.payment(application))["state"] == "paid"


async def test_amounts_that_differ_are_told_until_they_agree(manual_clock, portal, stripe_simulator, box):
    application = await until_payment(portal, manual_clock)
    await kit.pay(application)
    await manual_clock.run(drain(portal, raise_dead=True))
    async with portal.transaction() as tx:
        await tx.execute("UPDATE entries SET amount = 7000")
    intent = (await kit.payment(application))["intent"]
    assert await compared(portal, manual_clock) == [f"intent:{intent}"]
    assert "70.00" in (await lines(portal, application))[0]
    async with portal.transaction() as tx:
        await tx.execute("UPDATE entries SET amount = 7500")
    assert await compared(portal, manual_clock) == []


async def test_a_source_that_tells_another_amount_raises_the_alarm(
    manual_clock, portal, stripe_simulator, box
):
    """Webhook, answer and look-up each tell of one charge, and one of them says something else."""
    application = await until_payment(portal, manual_clock)
    await kit.pay(application)
    await manual_clock.run(drain(portal, raise_dead=True))
    intent = (await kit.payment(application))["intent"]
    charge = stripe_simulator.state.intents[intent].latest_charge
    told = Intent(intent, "succeeded", 7500, "usd", 15_000, charge, application)
    async with portal.transaction() as tx:
        await book(tx, told, Source.WEBHOOK)
    async with portal.transaction() as tx:
        assert await tx.fetch("SELECT cause FROM holdfast_alert_cause WHERE kind = $1", ALARM) == [
            (f"intent:{intent}",)
        ]
    assert await entries(portal) == [7500]


async def test_the_comparison_goes_over_many_pages(manual_clock, portal, stripe_simulator, box):
    client = at_stripe()
    for number in range(101):
        client.v1.payment_intents.create({"amount": 7500 + number, "currency": "usd"})
    application = await until_payment(portal, manual_clock)
    intent = (await kit.payment(application))["intent"]
    at_stripe().v1.payment_intents.confirm(intent, {"payment_method": "pm_card_visa"})
    stripe_simulator.state.intents[intent].created -= 1  # it is the last one of the list
    assert await compared(portal, manual_clock) == []
    assert await entries(portal) == [7500]
    assert stripe_simulator.ledger.calls["list"] == 2
