"""Webhooks of Stripe: signed, of now, once each, and in any order; answered at once and handled by a job."""

from __future__ import annotations

import json

import pytest
from admissions.core import hf
from admissions_visitors import Visitor, number_of

from holdfast.testing import drain
from simulators.stripe.webhooks import signature

PLACE = "/webhooks/stripe"


@pytest.fixture
async def stripe(site):
    """Who has no cookie."""
    async with Visitor(site) as opened:
        yield opened


async def sends(stripe, event, *, at=None, secret=None, body=None, header=None):
    body = json.dumps(event).encode() if body is None else body
    at = int(await hf.now()) if at is None else at
    told = signature(body, at) if secret is None else signature(body, at, secret)
    headers = {"content-type": "application/json", "stripe-signature": told if header is None else header}
    return await stripe.post(PLACE, content=body, headers=headers)


@pytest.fixture
async def paid(manual_clock, anh, term, stripe_simulator, box):
    """An application that was paid at Stripe, of which we have not heard: the events that tell of it."""
    application = await anh.submitted(term)
    await manual_clock.run(drain(hf, raise_dead=True))
    [intent] = stripe_simulator.state.intents.values()
    from admissions.core import settings
    from admissions.outside.payments import Payments

    payments = Payments(settings)
    payments.confirm(intent.id, "pm_card_visa", "elsewhere")
    return application


def of(simulator, kind):
    return next(each for each in simulator.state.events if each["type"] == kind)


async def test_a_webhook_is_answered_at_once_and_heard_by_a_job(
    manual_clock, paid, stripe, anh, stripe_simulator
):
    calls = len(stripe_simulator.ledger.find("call"))
    answer = await sends(stripe, of(stripe_simulator, "payment_intent.succeeded"))
    assert (answer.status_code, answer.json()) == (200, {"isNew": True}), answer.text
    assert len(stripe_simulator.ledger.find("call")) == calls, "nobody is asked while Stripe waits"
    assert await number_of("entries") == 0
    await manual_clock.run(drain(hf, raise_dead=True))
    found = (await anh.get(f"/api/applications/{paid}/status")).json()
    assert (found["status"], found["paymentStatus"]) == ("completed", "paid")


async def test_the_same_event_ten_times_is_booked_once(manual_clock, paid, stripe, stripe_simulator):
    event = of(stripe_simulator, "payment_intent.succeeded")
    told = [(await sends(stripe, event)).json()["isNew"] for _ in range(5)]
    await manual_clock.run(drain(hf, raise_dead=True))
    told += [(await sends(stripe, event)).json()["isNew"] for _ in range(5)]
    await manual_clock.run(drain(hf, raise_dead=True))
    assert told == [True] + [False] * 9
    assert await number_of("entries") == 1


async def test_all_events_backwards_and_a_refund_before_the_success(
    manual_clock, paid, stripe, stripe_simulator
):
    from admissions.core import settings
    from admissions.outside.payments import Payments

    [intent] = stripe_simulator.state.intents.values()
    Payments(settings).refund(intent.id, 2500, "elsewhere-2")
    for event in reversed(stripe_simulator.state.events):
        assert (await sends(stripe, event)).status_code == 200, event["type"]
    await manual_clock.run(drain(hf, raise_dead=True))
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT amount FROM entries WHERE application_id = $1 ORDER BY amount", paid)
    assert [int(amount) for (amount,) in rows] == [-2500, 7500]


async def test_what_is_not_stripes_is_refused_and_changes_nothing(paid, stripe, stripe_simulator):
    event = of(stripe_simulator, "payment_intent.succeeded")
    body, now = json.dumps(event).encode(), int(await hf.now())
    changed = bytes([*body[:-3], body[-3] ^ 1, *body[-2:]])
    tried = {
        "another secret": {"secret": "whsec_other"},
        "old": {"at": now - 301},
        "from the future": {"at": now + 301},
        "one byte of the body changed": {"body": changed, "header": signature(body, now)},
        "of another body": {"header": signature(b"{}", now)},
        "its time changed": {"header": signature(body, now).replace(f"t={now}", f"t={now - 1}")},
        "no signature": {"header": ""},
        "no time": {"header": signature(body, now).partition(",")[2]},
        "nonsense": {"header": "t=,v1=,v1"},
        "a giant time": {"header": f"t={'9' * 5000},v1=00"},
    }
    seen = set()
    for what, how in tried.items():
        answer = await sends(stripe, event, **how)
        assert (answer.status_code, answer.json()["code"]) == (400, "SIGNATURE_WRONG"), what
        seen.add(
            json.dumps({name: value for name, value in answer.json().items() if name != "correlation_id"})
        )
    assert len(seen) == 1, "nobody learns how near it was"
    assert await number_of("webhook_events") == 0


@pytest.mark.parametrize("seconds", [-299, 299])
async def test_clocks_may_differ_by_five_minutes(paid, stripe, stripe_simulator, seconds):
    event = of(stripe_simulator, "payment_intent.succeeded")
    answer = await sends(stripe, event, at=int(await hf.now()) + seconds)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"{", b'{"id": "evt_1"}', b'{"id": 1, "type": [], "object": "event"}', b"\xff\xfe",
     b'{"id": "evt_1", "object": "event", "type": "charge.refunded", "data": {"object": {"object": "charge", "payment_intent": null}}}',
     b'{"id": "evt_1", "object": "event", "type": "payment_intent.succeeded", "data": {}}', b"[" * 100_000],
)  # fmt: skip
async def test_a_signed_body_that_is_no_event_of_ours_is_no_fault_of_ours(site, stripe, body):
    answer = await sends(stripe, None, body=body)
    assert answer.status_code in (200, 400), answer.text
    assert list(await drain(hf)) == []


async def test_events_that_nobody_waits_for_are_taken_and_forgotten(site, stripe):
    event = {
        "id": "evt_1",
        "object": "event",
        "type": "customer.created",
        "data": {"object": {"object": "customer", "id": "cus_1"}},
    }
    assert (await sends(stripe, event)).json() == {"isNew": True}
    assert (await sends(stripe, event)).json() == {"isNew": False}
    assert await drain(hf) == []


async def test_money_of_an_intent_that_is_not_ours_is_shown_to_finance(
    manual_clock, site, stripe, stripe_simulator
):
    from admissions.core import settings
    from admissions.outside.payments import Payments

    payments = Payments(settings)
    made = payments.create("elsewhere", 1200, "usd", "k-1")
    payments.confirm(made.id, "pm_card_visa", "k-2")
    await sends(stripe, of(stripe_simulator, "payment_intent.succeeded"))
    await manual_clock.run(drain(hf, raise_dead=True))
    async with Visitor(site) as finance:
        await finance.log_in("fin@uni.example", "finance")
        [found] = (await finance.get("/api/payments/unmatched")).json()
    assert (found["intent"], found["amount"]) == (made.id, 1200)


async def test_a_large_body_is_not_read_to_its_end(site, stripe):
    answer = await sends(stripe, None, body=b"x" * 300_000)
    assert answer.status_code == 413
