"""What users of other portals complain of, one test each, named after the complaint. Two do not apply: there is no blind reading, and no wait-list that moves."""

from __future__ import annotations

import asyncio

import admissions_kit as kit
import pytest
from admissions.desk import account, applying, decisions, paying, people, story
from admissions.desk.refusals import Changed, TooLate
from admissions.domain.ledger import Source
from admissions.outside.payments import Intent
from admissions.tables import Base
from admissions.work.booking import book, book_refund
from admissions.work.releasing import release
from test_admissions_money import at_stripe, entries, hear, until_payment
from test_admissions_release import decided

from holdfast import within
from holdfast.testing import drain


async def draft(portal, mail="anh@example.org"):
    """All is typed, one file is there. Its owner and its id."""
    owner = await kit.person(mail)
    found = await applying.begin(owner, await kit.term())
    for step in ("person", "statement", "documents"):
        await applying.save(owner, found, step, ANSWERS)
    with within(tenant=found):
        staged = await portal.blobs.stage(kit.PDF, content_type="application/pdf")
    await applying.add_document(owner, found, "transcript", "grades.pdf", staged)
    return owner, found


ANSWERS = {
    "name": "Ánh", "birth": "2004-02-29", "phone": "", "address": "Hà Nội", "statement": "I want to study here.", "declared": True,
}  # fmt: skip


async def test_1_impatient_clicks_make_two_equal_applications_the_second_without_its_files(
    portal, stripe_simulator, box
):
    owner, found = await draft(portal)
    at = await portal.now()
    told = await asyncio.gather(
        *(applying.submit(owner, found, arrived_at=at) for _ in range(20)), return_exceptions=True
    )
    receipts = [each for each in told if not isinstance(each, BaseException)]
    assert len(receipts) == 1
    assert {type(each) for each in told if isinstance(each, BaseException)} == {TooLate}
    assert [each.name for each in receipts[0].documents] == ["grades.pdf"]


async def test_2_a_draft_is_not_saved_and_nobody_says_so(portal, stripe_simulator):
    owner, found = await draft(portal)
    version = (await applying.draft_of(owner, found)).version
    saved = await applying.save(
        owner, found, "statement", {"statement": "of the first window"}, version=version
    )
    assert saved.changed_at > 0
    with pytest.raises(Changed) as refused:
        await applying.save(owner, found, "statement", {"statement": "of the second one"}, version=version)
    assert refused.value.version == saved.version
    assert (await applying.draft_of(owner, found)).answers.statement == "of the first window"


async def test_3_a_file_is_gone(manual_clock, portal, stripe_simulator, box):
    owner, found = await draft(portal)
    receipt = await applying.submit(owner, found, arrived_at=await portal.now())
    await manual_clock.run(drain(portal, raise_dead=True))
    [document] = (await story.of(owner, found)).documents
    assert (document.state, document.sha256) == ("clean", receipt.documents[0].sha256)
    with within(tenant=found):
        assert await portal.blobs.read(document.key) == kit.PDF


async def test_4_charged_and_the_page_says_failed_so_it_is_paid_again(
    manual_clock, portal, stripe_simulator, box
):
    application = await until_payment(portal, manual_clock)
    owner = await owner_of(portal, application)
    stripe_simulator.faults.put("confirm", "lost", times=1)
    await paying.pay(owner, application, "pm_card_visa")
    await manual_clock.run(drain(portal))
    assert (await paying.page(owner, application)).state == "confirming"
    with pytest.raises(TooLate):
        await paying.pay(owner, application, "pm_card_mastercard")
    for _ in range(4):
        manual_clock.advance(61)
        await manual_clock.run(drain(portal))
    assert (await paying.page(owner, application)).state == "paid"
    assert len(stripe_simulator.ledger.find("charged")) == 1


async def owner_of(portal, application):
    async with portal.transaction() as tx:
        [(owner,)] = await tx.fetch("SELECT person_id FROM applications WHERE id = $1", application)
    return owner


async def test_5_provider_and_portal_differ(manual_clock, portal, stripe_simulator, box):
    """No answer and no webhook of twenty payments: all are found by asking."""
    stripe_simulator.settings.webhook_off = True
    applications = [
        await until_payment(portal, manual_clock, mail=f"a{number}@example.org") for number in range(5)
    ]
    for each in applications:
        intent = (await kit.payment(each))["intent"]
        at_stripe().v1.payment_intents.confirm(intent, {"payment_method": "pm_card_visa"})
    for _ in range(4):
        manual_clock.advance(61)
        await manual_clock.run(drain(portal))
    assert await entries(portal) == [7500] * 5
    assert {(await kit.row(each))["state"] for each in applications} == {"completed"}


async def test_6_the_refund_of_a_double_kills_the_paid_order(manual_clock, portal, stripe_simulator, box):
    from admissions.outside.payments import Refund

    application = await until_payment(portal, manual_clock)
    await kit.pay(application)
    await manual_clock.run(drain(portal, raise_dead=True))
    intent = (await kit.payment(application))["intent"]
    double = Intent(intent, "succeeded", 7500, "usd", 7500, "ch_double", application)
    async with portal.transaction() as tx:
        await book(tx, double, Source.WEBHOOK)
    assert (await kit.payment(application))["state"] == "odd"
    async with portal.transaction() as tx:
        await book_refund(tx, Refund("re_double", intent, 7500), "usd", Source.WEBHOOK)
    assert (await kit.payment(application))["state"] == "paid"
    assert (await kit.row(application))["state"] == "completed"


async def test_7_the_confirmation_comes_twice(manual_clock, portal, stripe_simulator, box):
    """The answer, the webhook and our own question tell of one payment, all at once."""
    application = await until_payment(portal, manual_clock)
    await kit.pay(application)
    await manual_clock.run(drain(portal))
    [event] = [each for each in stripe_simulator.state.events if each["type"] == "payment_intent.succeeded"]
    await hear(portal, event)
    from admissions.work.asking import ask

    await ask.enqueue(application)
    await manual_clock.run(drain(portal, raise_dead=True))
    assert [mail.subject.split()[0] for mail in box.of("anh@example.org")] == ["We", "Pay", "Your"]


async def test_8_mails_are_silently_not_sent(manual_clock, portal, stripe_simulator, box):
    """After a changed password of the mail server, say: each letter has its state, and leaves when it may."""
    box.refuse("anh@example.org", 454)
    await kit.submitted()
    await manual_clock.run(drain(portal))
    async with portal.transaction() as tx:
        assert await tx.fetch("SELECT kind, state FROM letters ORDER BY kind") == [
            ("pay_now", "stored"),
            ("receipt", "stored"),
        ]
    box.accept("anh@example.org")
    for _ in range(12):
        manual_clock.advance(600)
        await manual_clock.run(drain(portal))
    async with portal.transaction() as tx:
        assert {state for (state,) in await tx.fetch("SELECT state FROM letters")} == {"sent"}


async def test_9_the_wrong_people_get_the_mail(manual_clock, portal, stripe_simulator, box):
    """How many it will be stands there before, and those of another round hear nothing."""
    term = await decided(portal, 6)
    async with portal.transaction() as tx:
        await tx.execute(
            "UPDATE applications SET term_id = $1 WHERE id IN ('app-004', 'app-005')", await another_term(tx)
        )
    assert (await decisions.ready(term))["checked"] == 4
    await release.start(term, id=f"release:{term}")
    await manual_clock.run(drain(portal, raise_dead=True))
    assert sorted(mail.to for mail in box.received) == [f"a{number}@example.org" for number in range(4)]


async def another_term(tx):
    await tx.execute(
        "INSERT INTO terms (id, programme_id, name, opens_at, closes_at, grace, fee, currency, places) "
        "SELECT 'another', programme_id, 'Spring', opens_at, closes_at, grace, fee, currency, places FROM terms"
    )
    return "another"


async def test_10_no_decision_because_its_mail_fails(manual_clock, portal, stripe_simulator, box):
    term = await decided(portal, 3)
    for number in range(3):
        box.refuse(f"a{number}@example.org")
    await release.start(term, id=f"release:{term}")
    await manual_clock.run(drain(portal, raise_dead=True))
    async with portal.transaction() as tx:
        assert await tx.fetch("SELECT count(*) FROM decisions WHERE stage = 'released'") == [(3,)]
        assert await tx.fetch("SELECT count(*) FROM letters WHERE state = 'refused'") == [(3,)]


async def test_11_the_deadline_is_in_another_zone_or_not_kept(portal, stripe_simulator, box):
    """What arrives in the last second counts, however long the server takes; fifty at once."""
    drafts = [await draft(portal, f"a{number}@example.org") for number in range(50)]
    async with portal.transaction() as tx:
        closes = await portal.now() - 60
        await tx.execute("UPDATE terms SET closes_at = $1", closes)
    receipts = await asyncio.gather(*(applying.submit(*each, arrived_at=closes + 0.9) for each in drafts))
    assert len({each.number for each in receipts}) == 50


async def test_12_a_rush_of_mails_delays_links_until_they_are_over(
    manual_clock, portal, stripe_simulator, box
):
    """The link to confirm an address is the first one after a rush, also for somebody new."""
    await portal.queues.pause("send_email")
    await release.start(await decided(portal, 30), id="release")
    await manual_clock.run(drain(portal))
    await people.register("new@example.org", "a long enough password", "New", language="en")
    await portal.queues.resume("send_email")
    await manual_clock.run(drain(portal))
    assert [mail.to for mail in box.received].index("new@example.org") <= 4


async def test_13_what_officers_write_among_themselves_leaks_through_the_history(
    manual_clock, portal, stripe_simulator, box
):
    application = await kit.submitted()
    owner = await owner_of(portal, application)
    await manual_clock.run(drain(portal))
    await kit.pay(application)
    await manual_clock.run(drain(portal))
    officer = await kit.person("officer@example.org", role="officer")
    await decisions.draft(officer, application, "reject", "his grades are weak")
    shown = repr(await story.of(owner, application)) + repr(await account.copy_of_data(owner))
    assert "weak" not in shown
    assert "decision_drafted" not in shown


async def test_15_an_erasure_is_partial(manual_clock, portal, stripe_simulator, box):
    """Withdrawn and deleted: no table of the portal has the name, the address or a word of the person any more."""
    owner, found = await draft(portal, "canary@example.org")
    async with portal.transaction() as tx:
        await tx.execute(
            "UPDATE people SET password = $1, name = 'Canary'",
            await people.hashed("a long enough password", "password"),
        )
    await applying.save(owner, found, "person", {"name": "Canary", "address": "Canary Street"})
    await applying.submit(owner, found, arrived_at=await portal.now())
    await manual_clock.run(drain(portal))
    await kit.pay(found)
    await manual_clock.run(drain(portal))
    await applying.withdraw(owner, found, "moved")
    await manual_clock.run(drain(portal))
    await account.delete(owner, "a long enough password")
    left = {}
    async with portal.transaction() as tx:
        for table in Base.metadata.tables:
            rows = await tx.fetch(f"SELECT * FROM {table}")
            left[table] = [row for row in rows if "canary" in repr(row).lower()]
    assert {table: rows for table, rows in left.items() if rows} == {}
    async with portal.transaction() as tx:
        assert await tx.fetch("SELECT sum(amount), count(*) FROM entries") == [(0, 2)]
