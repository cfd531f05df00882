"""The whole way by the API, against the simulated Stripe: register, apply, pay, be read, be decided on."""

from __future__ import annotations

import re

import admissions_kit as kit
from admissions.core import hf
from admissions_visitors import PASSWORD, Visitor

from holdfast.testing import drain


def link_in(mail):
    return re.search(r"key=(\S+)", mail.text)[1]


async def test_from_registration_to_decision(manual_clock, site, stripe_simulator, box):
    term = await kit.term()
    async with Visitor(site) as anh, Visitor(site) as ada, Visitor(site) as bob, Visitor(site) as chief:
        await registered(anh, box)
        answer = await anh.submit(term)
        assert answer.status_code == 202, answer.text
        told = answer.json()
        application = told["applicationId"]
        assert told["statusUrl"] == f"/applications/{application}/status"
        assert told["payUrl"] == f"/applications/{application}/pay"
        assert re.fullmatch(r"2030-[0-9A-F]{10}", told["number"])
        assert [(each["name"], each["kind"]) for each in told["documents"]] == [("grades.pdf", "transcript")]
        await until_done(manual_clock)
        assert (await anh.get(told["statusUrl"])).json()["status"] == "awaiting_payment"
        await pays(anh, application, manual_clock)
        found = (await anh.get(f"/api/applications/{application}/status")).json()
        assert (found["status"], found["progress"], found["emailSent"]) == ("completed", 100, True)
        assert (found["documentsVerified"], found["paymentStatus"]) == (True, "paid")
        assert [each["amount"] for each in stripe_simulator.ledger.find("charged")] == [7500]
        for each, role in ((ada, "officer"), (bob, "officer"), (chief, "administrator")):
            await each.log_in(f"{role}-{id(each)}@uni.example", role)
        await is_decided(application, term, ada, bob, chief)
        await until_done(manual_clock)
        whole = (await anh.get(f"/api/applications/{application}")).json()
        assert whole["decision"] == {"outcome": "accept", "words": "Welcome."}
        assert box.of("new@example.org")[-1].subject.startswith("You are accepted")


async def registered(anh, box):
    await anh.token()
    answer = await anh.post(
        "/api/register", json={"mail": "New@Example.org", "password": PASSWORD, "name": "Ánh"}
    )
    assert (answer.status_code, answer.json()) == (202, {"sent": True})
    await drain(hf)
    refused = await anh.post("/api/login", json={"mail": "new@example.org", "password": PASSWORD})
    assert (refused.status_code, refused.json()["code"]) == (401, "LOGIN_WRONG")
    key = link_in(box.of("new@example.org")[0])
    answer = await anh.post("/api/confirm", json={"key": key})
    assert answer.json()["role"] == "applicant"
    await anh.come_back("new@example.org")


async def pays(anh, application, clock):
    page = (await anh.get(f"/api/applications/{application}/payment")).json()
    assert (page["amount"], page["currency"], page["state"]) == (7500, "usd", "open")
    place = f"/api/applications/{application}/payment"
    answer = await anh.post(place, json={"method": "pm_card_visa"})
    assert answer.status_code == 202, answer.text
    again = await anh.post(place, json={"method": "pm_card_visa"})
    assert (again.status_code, again.json()["code"]) == (409, "TOO_LATE")
    await until_done(clock)


async def is_decided(application, term, ada, bob, chief):
    [row] = (await ada.get("/api/cases", params={"search": "new@example"})).json()["cases"]
    assert (row["id"], row["state"], row["stage"]) == (application, "completed", None)
    case = (await ada.get(f"/api/cases/{application}")).json()
    assert case["answers"]["name"] == "Nguyễn Thị Ánh"
    place = f"/api/cases/{application}"
    answer = await ada.post(f"{place}/assign", json={"officerId": ada.id, "version": row["version"]})
    assert answer.status_code == 204, answer.text
    assert (await ada.post(f"{place}/notes", json={"text": "Reads well."})).status_code == 204
    [document] = case["documents"]
    file = await ada.get(f"{place}/documents/{document['id']}")
    assert (file.status_code, file.content) == (200, kit.PDF)
    drafted = await ada.put(f"{place}/decision", json={"outcome": "accept", "words": "Welcome."})
    assert drafted.json() == {"version": 1}, drafted.text
    refused = await ada.post(f"{place}/decision/check", json={"version": 1})
    assert refused.status_code == 400
    assert (await bob.post(f"{place}/decision/check", json={"version": 1})).status_code == 204
    round_ = (await bob.get(f"/api/terms/{term}/decisions")).json()
    assert round_ == {"none": 0, "drafted": 0, "checked": 1, "released": 0}
    assert (await bob.post(f"/api/terms/{term}/release")).status_code == 403
    released = await chief.post(f"/api/terms/{term}/release")
    assert released.status_code == 202, released.text


async def until_done(clock):
    await clock.run(drain(hf, raise_dead=True))


async def test_a_draft_is_saved_as_one_types_and_sent(manual_clock, anh, term, stripe_simulator, box):
    [choice] = (await anh.get("/api/programmes")).json()
    assert (choice["termId"], choice["door"], choice["fee"]) == (term, "open", 7500)
    application = await anh.draft(term)
    whole = (await anh.get(f"/api/applications/{application}")).json()
    assert (whole["state"], whole["version"], len(whole["documents"])) == ("draft", 4, 1)
    stale = await anh.patch(
        f"/api/applications/{application}/statement", json={"statement": "x", "version": 1}
    )
    assert (stale.status_code, stale.json()["code"]) == (409, "CHANGED")
    answer = await anh.post(f"/api/applications/{application}/submit", headers={"idempotency-key": "s-1"})
    assert answer.status_code == 202, answer.text
    [brief] = (await anh.get("/api/applications")).json()
    assert (brief["id"], brief["state"], brief["programme"]) == (application, "submitted", "Informatics")
    again = await anh.post(f"/api/applications/{application}/submit", headers={"idempotency-key": "s-2"})
    assert (again.status_code, again.json()["code"]) == (409, "TOO_LATE")


async def test_withdrawn_its_files_go_and_its_money_comes_back(
    manual_clock, anh, term, stripe_simulator, box
):
    application = await anh.submitted(term)
    await until_done(manual_clock)
    await pays(anh, application, manual_clock)
    answer = await anh.post(f"/api/applications/{application}/withdraw", json={"reason": "another programme"})
    assert answer.status_code == 202, answer.text
    await until_done(manual_clock)
    assert (await anh.get(f"/api/applications/{application}/status")).json()["status"] == "withdrawn"
    assert [each["amount"] for each in stripe_simulator.ledger.find("refunded")] == [7500]
    assert (await anh.submit(term, key="second")).status_code == 202, "the next one may be sent"


async def test_whoever_has_just_submitted_sees_it(anh, term, stripe_simulator):
    """No worker runs: the view knows nothing yet."""
    for _ in range(3):
        application = await anh.submitted(await kit.term(), key=f"k-{_}")
        found = await anh.get(f"/applications/{application}/status")
        assert (found.status_code, found.json()["status"], found.json()["progress"]) == (200, "submitted", 0)
        assert (await anh.get(f"/api/applications/{application}/status")).status_code == 200
