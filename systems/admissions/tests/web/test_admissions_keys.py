"""Submissions and their keys: once for each, whatever is sent again, by whom, and how many at once."""

from __future__ import annotations

import asyncio

import admissions_kit as kit
import pytest
from admissions.core import hf
from admissions.desk import applying
from admissions_visitors import Visitor, number_of

from holdfast.errors import StoreUnavailable
from holdfast.testing import drain

MARKER = "idempotent-replayed"


async def test_no_key_no_submission(anh, term):
    answer = await anh.submit(term, key=None)
    assert (answer.status_code, answer.json()["code"]) == (400, "IDEMPOTENCY_KEY_MISSING")
    draft = await anh.draft(term)
    answer = await anh.post(f"/api/applications/{draft}/submit")
    assert (answer.status_code, answer.json()["code"]) == (400, "IDEMPOTENCY_KEY_MISSING")
    assert await number_of("applications", "state <> 'draft'") == 0


async def test_sent_again_it_is_answered_byte_for_byte(anh, term, stripe_simulator, box):
    first = await anh.submit(term)
    again = await anh.submit(term)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.content == first.content
    assert (MARKER in first.headers, again.headers[MARKER]) == (False, "true")
    assert again.headers["content-type"] == first.headers["content-type"]
    assert await number_of("applications") == 1
    assert await number_of("documents") == 1


async def test_a_hundred_at_once_are_one_application(anh, term, stripe_simulator, kept):
    answers = await asyncio.gather(*(anh.submit(term) for _ in range(100)))
    refused = [each for each in answers if each.status_code != 202]  # on a machine that is too busy to wait
    assert [(each.status_code, each.headers["retry-after"]) for each in refused] == [(409, "1")] * len(
        refused
    )
    told = [each for each in answers if each.status_code == 202]
    assert len({each.content for each in told}) == 1
    assert sum(MARKER not in each.headers for each in told) == 1
    assert (await number_of("applications"), await number_of("documents")) == (1, 1)
    assert kept() == 1


async def test_another_application_under_the_same_key_is_refused(anh, term):
    assert (await anh.submit(term)).status_code == 202
    answer = await anh.submit(term, statement="Something else, and long enough.")
    assert (answer.status_code, answer.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    other = [("transcript", ("grades.pdf", kit.PDF + b" ", "application/pdf"))]
    assert (await anh.submit(term, files=other)).status_code == 422, "another file is another request"
    assert await number_of("applications") == 1


async def test_the_same_key_of_another_person_is_another_application(anh, binh, term):
    first, second = await anh.submit(term), await binh.submit(term)
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["applicationId"] != second.json()["applicationId"]
    assert MARKER not in second.headers


async def test_the_same_key_on_another_route_is_another_request(anh, term):
    assert (await anh.submit(term)).status_code == 202
    draft = await anh.draft(await kit.term())
    answer = await anh.post(f"/api/applications/{draft}/submit", headers={"idempotency-key": "a-1"})
    assert (answer.status_code, answer.json()["applicationId"]) == (202, draft), answer.text


async def test_what_is_refused_for_good_is_refused_again(anh, term):
    first = await anh.submit(term, statement="short")
    again = await anh.submit(term, statement="short")
    assert (first.status_code, again.status_code) == (422, 422)
    assert again.content == first.content
    assert again.headers[MARKER] == "true"
    right = await anh.submit(term)
    assert right.json()["code"] == "IDEMPOTENCY_KEY_REUSED", "a corrected one needs a key of its own"
    assert (await anh.submit(term, key="a-2")).status_code == 202


async def test_what_has_failed_for_the_moment_may_be_sent_again(anh, term, monkeypatch, kept):
    real, fails = applying._submitted, [StoreUnavailable("gone"), RuntimeError("a mistake of ours")]

    async def failing(*given):
        found = await real(*given)
        if fails:
            raise fails.pop()  # rows, files and events are written, and not committed
        return found

    monkeypatch.setattr(applying, "_submitted", failing)
    answers = [await anh.submit(term) for _ in range(3)]
    assert [each.status_code for each in answers] == [500, 503, 202]
    assert answers[0].json()["code"] == "INTERNAL_ERROR"
    assert "mistake of ours" not in answers[0].text
    assert (await number_of("applications"), await number_of("documents")) == (1, 1)
    assert kept() == 1


async def test_application_files_key_mail_and_events_are_one_commit(anh, term, monkeypatch):
    """Whatever is broken off before the commit: nothing of it is there."""

    async def breaks(*_, **__):
        raise RuntimeError("broken off")

    real = hf.emit

    async def emitted(kind, *args, **more):
        if kind == "document.uploaded":  # the last statement of all
            raise RuntimeError("broken off")
        return await real(kind, *args, **more)

    monkeypatch.setattr(hf, "emit", emitted)
    assert (await anh.submit(term)).status_code == 500
    for table in ("applications", "documents", "steps", "letters"):
        assert await number_of(table) == 0, table
    ran = await drain(hf)
    assert [each.task for each in ran] == [], "no ghost of an event, and no mail"
    monkeypatch.undo()
    assert (await anh.submit(term)).status_code == 202


async def test_a_second_application_for_the_term_is_refused_under_any_key(anh, term, kept):
    assert (await anh.submit(term)).status_code == 202
    second = await anh.submit(term, key="a-2")
    assert (second.status_code, second.json()["code"]) == (409, "CLOSED")
    assert (await anh.submit(await kit.term(), key="a-3")).status_code == 202, (
        "another term is another application"
    )
    assert kept() == 2


async def test_two_submissions_of_a_draft_at_once(anh, term):
    """Under two keys: an impatient click in two windows."""
    draft = await anh.draft(term)
    place = f"/api/applications/{draft}/submit"
    answers = await asyncio.gather(
        *(anh.post(place, headers={"idempotency-key": f"w-{number}"}) for number in range(6))
    )
    assert sorted(each.status_code for each in answers) == [202, 409, 409, 409, 409, 409]
    assert await number_of("letters") == 1


@pytest.mark.parametrize("verb", ["payment", "withdraw"])
async def test_other_verbs_take_a_key_when_one_is_sent(anh, term, stripe_simulator, verb, box):
    application = await anh.submitted(term)
    await drain(hf)
    body = {"method": "pm_card_visa"} if verb == "payment" else {}
    place = f"/api/applications/{application}/{verb}"
    answers = [await anh.post(place, json=body, headers={"idempotency-key": "p-1"}) for _ in range(2)]
    assert [each.status_code for each in answers] == [202, 202], answers[1].text
    assert answers[1].headers[MARKER] == "true"


async def test_the_key_is_looked_at_before_anybody_and_kept_from_strangers(site, term):
    async with Visitor(site) as nobody:
        await nobody.token()
        first = await nobody.submit(term)
        assert first.status_code == 401
        assert await number_of("applications") == 0
