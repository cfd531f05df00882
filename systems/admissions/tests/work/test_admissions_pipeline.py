"""One application through the pipeline: scanned, paid once, told, completed; whatever fails on the way."""

from __future__ import annotations

import admissions_kit as kit
import pytest

from holdfast.testing import drain


async def steps_of(hf, application):
    async with hf.transaction() as tx:
        return [
            kind
            for (kind,) in await tx.fetch(
                "SELECT kind FROM steps WHERE application_id = $1 ORDER BY id", application
            )
        ]


async def until_payment(hf, clock):
    application = await kit.submitted()
    await clock.run(drain(hf, raise_dead=True))
    assert (await kit.row(application))["state"] == "awaiting_payment"
    return application


async def test_an_application_goes_through(manual_clock, any_portal, stripe_simulator, box):
    hf = any_portal
    application = await until_payment(hf, manual_clock)
    assert stripe_simulator.ledger.find("charged") == []  # an intent is no payment
    await kit.pay(application)
    await manual_clock.run(drain(hf, raise_dead=True))
    row = await kit.row(application)
    assert (row["state"], row["progress"]) == ("completed", 100)
    [charge] = stripe_simulator.ledger.find("charged")
    assert (charge["amount"], charge["metadata"]) == (7500, {"application": application})
    assert [mail.subject.partition(" ")[0] for mail in box.of("anh@example.org")] == ["We", "Pay", "Your"]
    assert await steps_of(hf, application) == [
        "verifying",
        "verified",
        "payment_opened",
        "paid",
        "mailed",
        "completed",
    ]


async def test_an_infected_file_is_told_and_does_not_fail_it(manual_clock, portal, box):
    application = await kit.submitted(files=(kit.PDF, kit.PDF + kit.EICAR))
    await manual_clock.run(drain(portal, raise_dead=True))
    assert (await kit.row(application))["state"] == "needs_files"
    async with portal.transaction() as tx:
        rows = await tx.fetch(
            "SELECT name, state FROM documents WHERE application_id = $1 ORDER BY name", application
        )
    assert rows == [("0.pdf", "clean"), ("1.pdf", "infected")]
    assert "1.pdf" in box.of("anh@example.org")[-1].text


async def test_a_declined_card_can_be_followed_by_another(manual_clock, portal, stripe_simulator, box):
    application = await until_payment(portal, manual_clock)
    await kit.pay(application, "pm_card_chargeDeclinedInsufficientFunds")
    await manual_clock.run(drain(portal, raise_dead=True))
    assert await kit.payment(application) | {"intent": ""} == {
        "intent": "", "state": "declined", "words": "The bank says that there is not enough money."
    }  # fmt: skip
    await kit.pay(application)
    await manual_clock.run(drain(portal, raise_dead=True))
    assert (await kit.row(application))["state"] == "completed"
    assert len(stripe_simulator.ledger.find("charged")) == 1


@pytest.mark.parametrize("kind", ["lost", "server-error"])
async def test_a_lost_answer_to_a_payment_charges_once(manual_clock, portal, stripe_simulator, box, kind):
    application = await until_payment(portal, manual_clock)
    stripe_simulator.faults.put("confirm", kind, times=1)
    await kit.pay(application)
    for _ in range(6):
        await manual_clock.run(drain(portal))
        manual_clock.advance(61)
    assert (await kit.row(application))["state"] == "completed"
    assert len(stripe_simulator.ledger.find("charged")) == 1


async def test_stripe_away_for_a_while_fails_and_charges_nothing(manual_clock, portal, stripe_simulator, box):
    applications = [await kit.submitted(mail=f"a{number}@example.org") for number in range(8)]
    stripe_simulator.faults.put("*", "unavailable")
    for _ in range(12):
        await manual_clock.run(drain(portal))
        manual_clock.advance(10)
    assert {(await kit.row(each))["state"] for each in applications} == {"verified"}
    stripe_simulator.faults.clear()
    for _ in range(12):
        manual_clock.advance(30)
        await manual_clock.run(drain(portal))
    assert {(await kit.row(each))["state"] for each in applications} == {"awaiting_payment"}
    assert len(stripe_simulator.ledger.find("intent")) == 8


async def test_a_stage_that_fails_for_good_says_so_and_a_replay_goes_on(
    manual_clock, portal, stripe_simulator, box, monkeypatch
):
    from admissions.outside import payments as outside

    def wrong(*_):
        raise outside.Refused("Invalid API Key provided.")

    monkeypatch.setattr(outside.Payments, "create", wrong)
    application = await kit.submitted()
    for _ in range(6):
        await manual_clock.run(drain(portal))
        manual_clock.advance(10)
    row = await kit.row(application)
    assert (row["state"], row["failed_in"], row["progress"]) == ("failed", "verified", 25)
    assert "nothing was taken" in row["reason"]
    monkeypatch.undo()
    [dead] = await portal.dead.find()
    await portal.dead.replay([dead.id], actor="officer")
    await manual_clock.run(drain(portal))
    await kit.pay(application)
    await manual_clock.run(drain(portal))
    assert (await kit.row(application))["progress"] == 100
    assert len(stripe_simulator.ledger.find("charged")) == 1


async def test_a_payment_without_a_word_is_found_by_asking(manual_clock, portal, stripe_simulator, box):
    """A42: paid at Stripe, and neither answer nor webhook came."""
    application = await until_payment(portal, manual_clock)
    intent = stripe_simulator.state.intents[(await kit.payment(application))["intent"]]
    import stripe
    from admissions_server import SERVER

    client = stripe.StripeClient("sk_test_simulator", base_addresses={"api": SERVER.url})
    client.v1.payment_intents.confirm(intent.id, {"payment_method": "pm_card_visa"})
    for _ in range(4):
        manual_clock.advance(61)
        await manual_clock.run(drain(portal))
    assert (await kit.row(application))["state"] == "completed"


async def test_a_programme_without_a_fee_goes_on(manual_clock, portal, stripe_simulator, box):
    application = await kit.submitted(fee=0)
    await manual_clock.run(drain(portal, raise_dead=True))
    assert (await kit.row(application))["state"] == "completed"
    assert stripe_simulator.ledger.find("intent") == []


async def test_an_address_that_takes_no_mail_fails_nothing(manual_clock, portal, stripe_simulator, box):
    box.refuse("anh@example.org")
    application = await until_payment(portal, manual_clock)
    await kit.pay(application)
    await manual_clock.run(drain(portal))
    assert (await kit.row(application))["state"] == "completed"
    assert "mail_refused" in await steps_of(portal, application)


async def test_mails_are_in_the_language_of_their_reader(manual_clock, portal, box):
    await kit.submitted(language="vi")
    await manual_clock.run(drain(portal))
    assert [mail.subject.split()[0] for mail in box.of("anh@example.org")] == ["Chúng", "Nộp"]
