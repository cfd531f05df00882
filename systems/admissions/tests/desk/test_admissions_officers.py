"""Officers: queue, case, assignment by version, requests, decisions by two, refunds, and every look in the audit log."""

from __future__ import annotations

import admissions_kit as kit
import pytest
from admissions.desk import applying, audit, cases, decisions, finance
from admissions.desk.refusals import Changed, Invalid, NotHere, Refusal, TooLate
from admissions.domain.decisions import Outcome
from admissions.domain.states import State

from holdfast import within
from holdfast.testing import drain


async def completed(hf, clock, mail="anh@example.org"):
    application = await kit.submitted(mail=mail)
    await clock.run(drain(hf, raise_dead=True))
    await kit.pay(application)
    await clock.run(drain(hf, raise_dead=True))
    return application


async def staff():
    return [await kit.person(f"{name}@uni.example", role="officer") for name in ("ada", "bob")]


async def test_the_queue_goes_by_pages_and_finds(manual_clock, any_portal, stripe_simulator, box):
    ids = []
    for number in range(7):
        ids.append(await kit.submitted(mail=f"a{number}@example.org"))
        manual_clock.advance(10)
    found, after = [], None
    while page := await cases.queue(after=after, limit=3):
        found += [each.id for each in page]
        after = page[-1].submitted_at, page[-1].id
    assert found == ids
    assert [each.mail for each in await cases.queue(search="A3@example")] == ["a3@example.org"]
    assert await cases.queue(search="100%") == []
    assert await cases.queue(states=[State.COMPLETED]) == []
    assert len(await cases.queue(officer_id="nobody", decision="none")) == 7


async def test_two_officers_on_one_case(manual_clock, portal, stripe_simulator, box):
    application = await completed(portal, manual_clock)
    ada, bob = await staff()
    seen = (await cases.case(ada, application)).row.version
    await cases.assign(ada, application, ada, version=seen)
    with pytest.raises(Changed) as told:
        await cases.assign(bob, application, bob, version=seen)
    assert told.value.version == seen + 1
    assert (await cases.case(bob, application)).row.officer_id == ada


async def test_every_look_is_in_the_audit_log(manual_clock, portal, stripe_simulator, box):
    application = await completed(portal, manual_clock)
    ada, _ = await staff()
    case = await cases.case(ada, application)
    await cases.open_file(ada, application, case.documents[0].id)
    await cases.note(ada, application, "looks good")
    logged = await audit.log(person_id=ada)
    assert [each.what for each in logged] == ["case.noted", "file.read", "case.read"]


async def test_a_file_that_was_not_found_clean_is_not_opened(manual_clock, portal, stripe_simulator, box):
    application = await kit.submitted(files=(kit.PDF + kit.EICAR,))
    ada, _ = await staff()
    case = await cases.case(ada, application)
    with pytest.raises(TooLate, match="file_not_clean"):
        await cases.open_file(ada, application, case.documents[0].id)
    await manual_clock.run(drain(portal))
    with pytest.raises(TooLate, match="file_not_clean"):
        await cases.open_file(ada, application, case.documents[0].id)


async def test_a_document_is_asked_for_and_comes(manual_clock, portal, stripe_simulator, box):
    application = await completed(portal, manual_clock)
    ada, _ = await staff()
    await cases.ask_for(ada, application, "transcript", "the transcript of your second year")
    await manual_clock.run(drain(portal))
    assert "second year" in box.of("anh@example.org")[-1].text
    async with portal.transaction() as tx:
        [(owner,)] = await tx.fetch("SELECT person_id FROM applications WHERE id = $1", application)
    with within(tenant=application):
        staged = await portal.blobs.stage(kit.PDF, content_type="application/pdf")
    await applying.add_document(owner, application, "transcript", "second.pdf", staged)
    assert "second.pdf" in {each.name for each in (await cases.case(ada, application)).documents}
    assert (await kit.row(application))["progress"] == 100


async def test_a_decision_needs_two_people(manual_clock, portal, stripe_simulator, box):
    application = await completed(portal, manual_clock)
    ada, bob = await staff()
    version = await decisions.draft(ada, application, Outcome.ACCEPT, "Welcome.")
    with pytest.raises(Refusal, match="check_own"):
        await decisions.check(ada, application, version=version)
    with pytest.raises(Changed):
        await decisions.draft(bob, application, Outcome.REJECT, "")  # did not see the first one
    await decisions.check(bob, application, version=version)
    term = (await cases.case(ada, application)).row.term_id
    assert await decisions.ready(term) == {"none": 0, "drafted": 0, "checked": 1, "released": 0}
    await decisions.release(ada, term)
    await manual_clock.run(drain(portal, raise_dead=True))
    assert box.of("anh@example.org")[-1].subject.startswith("You are accepted")
    with pytest.raises(TooLate, match="decision_released"):
        await decisions.draft(ada, application, Outcome.REJECT, "", version=3)


async def test_no_decision_before_the_case_is_complete(portal, stripe_simulator):
    application = await kit.submitted()
    ada, _ = await staff()
    with pytest.raises(TooLate, match="not_complete"):
        await decisions.draft(ada, application, Outcome.ACCEPT, "")


async def test_a_refund_is_given_once_and_no_more_than_was_paid(manual_clock, portal, stripe_simulator, box):
    application = await completed(portal, manual_clock)
    ada, _ = await staff()
    with pytest.raises(Invalid):
        await finance.refund(ada, application, 7501, "too much")
    stripe_simulator.faults.put("refund", "lost", times=1)
    await finance.refund(ada, application, 2500, "waiver")
    for _ in range(5):
        await manual_clock.run(drain(portal))
        manual_clock.advance(60)
    [row] = await finance.payments()
    assert (row.booked, row.state) == (5000, "odd")
    assert [each["amount"] for each in stripe_simulator.ledger.find("refunded")] == [2500]
    assert (await kit.row(application))["state"] == "completed"


async def test_what_has_failed_is_let_go_on_by_an_officer(
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
    assert (await kit.row(application))["state"] == "failed"
    monkeypatch.undo()
    ada, _ = await staff()
    await cases.resume(ada, application)
    await manual_clock.run(drain(portal))
    assert (await kit.row(application))["state"] == "awaiting_payment"
    with pytest.raises(TooLate, match="not_failed"):
        await cases.resume(ada, application)


async def test_what_is_not_there_is_said_so(portal):
    ada, _ = await staff()
    for wish in (cases.case(ada, "none"), cases.resume(ada, "none"), decisions.check(ada, "none", version=1)):
        with pytest.raises(NotHere):
            await wish
