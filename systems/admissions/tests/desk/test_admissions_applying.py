"""Applying: drafts, documents, deadlines, and one submission for each person and term."""

from __future__ import annotations

import asyncio

import admissions_kit as kit
import pytest
from admissions.desk import applying, paying, status
from admissions.desk.refusals import Changed, Closed, Invalid, NotHere, TooLate
from admissions.ids import new_id

from holdfast import within
from holdfast.testing import drain

STEPS = {
    "person": {"name": "Ánh", "birth": "2004-02-29", "phone": "", "address": "Hà Nội"},
    "statement": {"statement": "I want to study here."},
    "documents": {"declared": True},
}


async def drafted(hf, who, term, *, files=1):
    found = await applying.begin(who, term)
    for step, answers in STEPS.items():
        await applying.save(who, found, step, answers)
    for number in range(files):
        await add(hf, who, found, f"{number}.pdf")
    return found


async def add(hf, who, application, name="more.pdf", content=kit.PDF):
    with within(tenant=application):
        staged = await hf.blobs.stage(content, content_type="application/pdf")
    return await applying.add_document(who, application, "transcript", name, staged)


async def test_a_draft_becomes_an_application(manual_clock, any_portal, stripe_simulator, box):
    hf = any_portal
    who, term = await kit.person(), await kit.term()
    application = await drafted(hf, who, term)
    receipt = await applying.submit(who, application, arrived_at=await hf.now())
    assert receipt.number.startswith("2030-")  # the year of the manual clock
    assert [each.name for each in receipt.documents] == ["0.pdf"]
    await manual_clock.run(drain(hf, raise_dead=True))
    found = await status.of(who, application)
    assert (found["status"], found["progress"], found["documentsVerified"]) == ("awaiting_payment", 25, True)
    assert found["number"] == receipt.number
    assert box.of("anh@example.org")[0].subject.startswith("We have your application")


async def test_what_is_typed_is_kept_right_or_wrong(portal):
    who, term = await kit.person(), await kit.term()
    application = await applying.begin(who, term)
    await applying.save(who, application, "person", {"name": "", "birth": "yesterday", "address": "x"})
    draft = await applying.draft_of(who, application)
    assert (draft.answers.birth, draft.version) == ("yesterday", 2)
    assert {each.field for each in await applying.wrongs(who, application, "person")} == {"name", "birth"}
    with pytest.raises(Invalid):
        await applying.submit(who, application, arrived_at=await portal.now())


async def test_two_windows_do_not_overwrite_each_other(portal):
    who, term = await kit.person(), await kit.term()
    application = await applying.begin(who, term)
    await applying.save(who, application, "statement", {"statement": "first"}, version=1)
    with pytest.raises(Changed) as told:
        await applying.save(who, application, "statement", {"statement": "second"}, version=1)
    assert told.value.version == 2


async def test_beginning_twice_is_the_same_draft(portal):
    who, term = await kit.person(), await kit.term()
    assert await applying.begin(who, term) == await applying.begin(who, term)


async def test_one_stands_for_each_person_and_term(manual_clock, any_portal, box):
    hf = any_portal
    who, term = await kit.person(), await kit.term()
    first = await drafted(hf, who, term)
    await applying.submit(who, first, arrived_at=await hf.now())
    second = new_id()
    with within(tenant=second):
        staged = await hf.blobs.stage(kit.PDF, content_type="application/pdf")
    with pytest.raises(Closed, match="one_for_each_term"):
        async with hf.transaction() as tx:
            await applying.submit_whole(
                who, term, kit.ANSWERS, [("transcript", "a.pdf", staged)], application_id=second, arrived_at=await hf.now(), tx=tx
            )  # fmt: skip
    async with hf.transaction() as tx:
        assert await tx.fetch("SELECT count(*) FROM applications") == [(1,)]


async def test_an_impatient_double_click_makes_one(manual_clock, any_portal, box):
    hf = any_portal
    who, term = await kit.person(), await kit.term()
    application = await drafted(hf, who, term)
    now = await hf.now()
    told = await asyncio.gather(
        *(applying.submit(who, application, arrived_at=now) for _ in range(8)), return_exceptions=True
    )
    assert sum(isinstance(each, applying.Receipt) for each in told) == 1
    await manual_clock.run(drain(hf))
    assert sum(mail.subject.startswith("We have") for mail in box.of("anh@example.org")) == 1


@pytest.mark.parametrize(("seconds", "works"), [(0, True), (0.999, True), (1.0, False)])
async def test_the_time_of_arrival_counts(portal, seconds, works):
    """The server may be as slow as it likes."""
    who, term = await kit.person(), await kit.term()
    application = await drafted(portal, who, term)
    async with portal.transaction() as tx:
        [(closes_at,)] = await tx.fetch("SELECT closes_at FROM terms WHERE id = $1", term)
    if works:
        assert await applying.submit(who, application, arrived_at=closes_at + seconds)
    else:
        with pytest.raises(Closed, match="term_over"):
            await applying.submit(who, application, arrived_at=closes_at + seconds)


async def test_a_door_that_is_closed_by_a_flag(portal):
    who, term = await kit.person(), await kit.term()
    await portal.flags.set("new-submissions", False, by="ada", reason="maintenance")
    with pytest.raises(Closed, match="door_closed"):
        await applying.begin(who, term)


async def test_somebody_elses_application_is_not_there(portal):
    who, other, term = await kit.person(), await kit.person("bob@example.org"), await kit.term()
    application = await drafted(portal, who, term)
    for wish in (
        applying.draft_of(other, application), applying.submit(other, application, arrived_at=0),
        applying.save(other, application, "person", {}), status.of(other, application), paying.page(other, application),
        paying.pay(other, application, "pm_card_visa"), applying.withdraw(other, application, ""),
    ):  # fmt: skip
        with pytest.raises(NotHere):
            await wish


async def test_a_refused_file_is_replaced_and_it_goes_on(manual_clock, portal, stripe_simulator, box):
    who, term = await kit.person(), await kit.term()
    application = await drafted(portal, who, term)
    await add(portal, who, application, "bad.pdf", kit.PDF + kit.EICAR)
    await applying.submit(who, application, arrived_at=await portal.now())
    await manual_clock.run(drain(portal, raise_dead=True))
    assert (await status.of(who, application))["documentsRejected"] == 1
    await add(portal, who, application, "good.pdf")
    await manual_clock.run(drain(portal, raise_dead=True))
    found = await status.of(who, application)
    assert (found["status"], found["documentsTotal"], found["documentsClean"]) == ("awaiting_payment", 2, 2)
    with pytest.raises(TooLate):
        await add(portal, who, application, "late.pdf")


async def test_paying_from_the_page(manual_clock, portal, stripe_simulator, box):
    who, term = await kit.person(), await kit.term()
    application = await drafted(portal, who, term)
    await applying.submit(who, application, arrived_at=await portal.now())
    await manual_clock.run(drain(portal, raise_dead=True))
    page = await paying.page(who, application)
    assert (page.amount, page.currency, page.state) == (7500, "usd", "open")
    await paying.pay(who, application, "pm_card_visa")
    with pytest.raises(TooLate, match="payment_under_way"):
        await paying.pay(who, application, "pm_card_visa")
    await manual_clock.run(drain(portal, raise_dead=True))
    assert (await paying.page(who, application)).state == "paid"
    assert (await status.of(who, application))["emailSent"] is True
    assert len(stripe_simulator.ledger.find("charged")) == 1


async def test_the_fee_is_that_of_the_submission(manual_clock, portal, stripe_simulator, box):
    who, term = await kit.person(), await kit.term()
    application = await drafted(portal, who, term)
    await applying.submit(who, application, arrived_at=await portal.now())
    async with portal.transaction() as tx:
        await tx.execute("UPDATE terms SET fee = 9900 WHERE id = $1", term)
    await manual_clock.run(drain(portal, raise_dead=True))
    assert [each["amount"] for each in stripe_simulator.ledger.find("intent")] == [7500]


async def test_withdrawn_one_may_apply_again(manual_clock, portal, stripe_simulator, box):
    who, term = await kit.person(), await kit.term()
    application = await drafted(portal, who, term)
    await applying.submit(who, application, arrived_at=await portal.now())
    await manual_clock.run(drain(portal))
    await applying.withdraw(who, application, "another programme")
    await manual_clock.run(drain(portal))
    manual_clock.advance(1)  # of two that were begun in the same moment, neither is the newer one
    again = await drafted(portal, who, term)
    assert again != application
    await applying.submit(who, again, arrived_at=await portal.now())
    assert [each[0].state for each in await applying.mine(who)] == ["submitted", "withdrawn"]
