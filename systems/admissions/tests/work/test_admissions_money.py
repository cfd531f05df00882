"""Money: webhooks in any order and often, withdrawals that give back, and nobody who pays twice."""

from __future__ import annotations

import json

import admissions_kit as kit
import pytest
import stripe
from admissions.outside.errors import Refused
from admissions.work.hearing import take
from admissions.work.withdrawing import withdraw
from admissions_server import SERVER

from holdfast.testing import drain
from simulators.stripe.state import WEBHOOK_SECRET
from simulators.stripe.webhooks import signature


def at_stripe():
    return stripe.StripeClient("sk_test_simulator", base_addresses={"api": SERVER.url})


async def until_payment(hf, clock, **options):
    application = await kit.submitted(**options)
    await clock.run(drain(hf, raise_dead=True))
    return application


async def hear(hf, event, *, at=None, body=None):
    sent = json.dumps(event).encode()
    signed = signature(sent, int(at if at is not None else await hf.now()))
    async with hf.transaction() as tx:
        return await take(body or sent, signed, WEBHOOK_SECRET, tx)


async def entries(hf):
    async with hf.transaction() as tx:
        return sorted(amount for (amount,) in await tx.fetch("SELECT amount FROM entries"))


async def test_webhooks_come_twice_and_change_nothing_again(manual_clock, portal, stripe_simulator, box):
    application = await until_payment(portal, manual_clock)
    intent = (await kit.payment(application))["intent"]
    at_stripe().v1.payment_intents.confirm(intent, {"payment_method": "pm_card_visa"})
    [event] = [each for each in stripe_simulator.state.events if each["type"] == "payment_intent.succeeded"]
    assert [await hear(portal, event) for _ in range(3)] == [True, False, False]
    await manual_clock.run(drain(portal, raise_dead=True))
    assert (await kit.row(application))["state"] == "completed"
    assert await entries(portal) == [7500]


async def test_a_refund_that_is_told_before_its_charge(manual_clock, portal, stripe_simulator, box):
    application = await until_payment(portal, manual_clock)
    intent = (await kit.payment(application))["intent"]
    client = at_stripe()
    client.v1.payment_intents.confirm(intent, {"payment_method": "pm_card_visa"})
    client.v1.refunds.create({"payment_intent": intent})
    by_type = {each["type"]: each for each in stripe_simulator.state.events}
    for kind in ("charge.refunded", "payment_intent.succeeded"):
        await hear(portal, by_type[kind])
        await manual_clock.run(drain(portal, raise_dead=True))
    assert await entries(portal) == [-7500, 7500]
    assert (await kit.payment(application))["state"] == "refunded"


@pytest.mark.parametrize("moved", [-301, 301])
async def test_an_old_or_a_future_webhook_is_refused(manual_clock, portal, stripe_simulator, moved):
    event = {"id": "evt_1", "object": "event", "type": "payment_intent.succeeded", "data": {"object": {}}}
    with pytest.raises(Refused):
        await hear(portal, event, at=await portal.now() + moved)


async def test_a_changed_body_is_refused(manual_clock, portal, stripe_simulator):
    event = {"id": "evt_1", "object": "event", "type": "x", "data": {"object": {"amount": 7500}}}
    with pytest.raises(Refused):
        await hear(portal, event, body=json.dumps(event).replace("7500", "7501").encode())


async def test_a_withdrawal_before_the_payment(manual_clock, portal, stripe_simulator, box):
    application = await until_payment(portal, manual_clock)
    await withdraw.start(application, "I have changed my mind", id=f"withdraw:{application}")
    await manual_clock.run(drain(portal, raise_dead=True))
    assert (await kit.row(application))["state"] == "withdrawn"
    intent = (await kit.payment(application))["intent"]
    assert stripe_simulator.state.intents[intent].status == "canceled"
    assert stripe_simulator.ledger.find("charged") == []
    assert "withdrawn" in box.of("anh@example.org")[-1].subject


async def test_a_withdrawal_gives_the_money_back_once(manual_clock, portal, stripe_simulator, box):
    application = await until_payment(portal, manual_clock)
    await kit.pay(application)
    await manual_clock.run(drain(portal, raise_dead=True))
    stripe_simulator.faults.put("refund", "lost", times=1)
    for _ in range(2):
        await withdraw.start(application, "moved away", id=f"withdraw:{application}")
    for _ in range(8):
        await manual_clock.run(drain(portal))
        manual_clock.advance(60)
    assert (await kit.row(application))["state"] == "withdrawn"
    assert [each["amount"] for each in stripe_simulator.ledger.find("refunded")] == [7500]
    assert await entries(portal) == [-7500, 7500]
    assert (await kit.payment(application))["state"] == "refunded"
    assert sum("withdrawn" in mail.subject for mail in box.of("anh@example.org")) == 1


async def test_a_withdrawal_while_the_payment_is_under_way(manual_clock, portal, stripe_simulator, box):
    """The charge went through in the last moment, and nobody has told us: it is found, booked, and given back."""
    application = await until_payment(portal, manual_clock)
    intent = (await kit.payment(application))["intent"]
    at_stripe().v1.payment_intents.confirm(intent, {"payment_method": "pm_card_visa"})
    await withdraw.start(application, "moved away", id=f"withdraw:{application}")
    await manual_clock.run(drain(portal, raise_dead=True))
    assert (await kit.row(application))["state"] == "withdrawn"
    assert await entries(portal) == [-7500, 7500]


async def test_who_pays_in_two_windows_pays_once(manual_clock, portal, stripe_simulator, box):
    application = await until_payment(portal, manual_clock)
    await kit.pay(application)
    with pytest.raises(AssertionError):
        await kit.pay(application)
    await manual_clock.run(drain(portal, raise_dead=True))
    assert len(stripe_simulator.ledger.find("charged")) == 1


async def test_a_500_that_stripe_keeps_for_its_key_stops_no_payment(
    manual_clock, portal, stripe_simulator, box
):
    """Its key answers so for a day: another intent is made, which takes no money either."""
    stripe_simulator.faults.put("create", "server-error", times=1)
    application = await kit.submitted()
    for _ in range(4):
        manual_clock.advance(5)
        await manual_clock.run(drain(portal))
    assert (await kit.row(application))["state"] == "awaiting_payment"
    await kit.pay(application)
    await manual_clock.run(drain(portal, raise_dead=True))
    assert len(stripe_simulator.ledger.find("charged")) == 1
