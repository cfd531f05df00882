"""Too much is turned away early, and told when to come back; and the time of arrival counts at the last second."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import admissions_kit as kit
import pytest
from admissions.core import VERIFY, hf
from admissions.web import app as web
from admissions.web.api import submitting
from admissions.work.asking import ask
from admissions_visitors import PASSWORD, Visitor, give_password, number_of


async def until_refused(ask, most):
    """How many were let through, and the refusal."""
    for number in range(most):
        answer = await ask()
        if answer.status_code == 429:
            return number, answer
    raise AssertionError(f"{most} were let through")


async def test_ten_tries_for_an_account_from_wherever_they_come(site, box):
    who = await kit.person("anh@example.org")
    await give_password(who)
    async with Visitor(site) as eve, Visitor(site) as other:
        await eve.token()
        await other.token()

        async def tries():
            return await eve.post(
                "/api/login", json={"mail": " ANH@example.org", "password": "a guess of eve"}
            )

        number, refused = await until_refused(tries, 20)
        assert 10 <= number <= 11
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["status"] == 429
        right = await other.post("/api/login", json={"mail": "anh@example.org", "password": PASSWORD})
        assert right.status_code == 429, "also with the right one: nobody learns that it was"
        forgot = await other.post("/api/forgot", json={"mail": "anh@example.org"})
        assert forgot.status_code == 429, "and no flood of mails"
        register = {"mail": "anh@example.org", "password": PASSWORD, "name": "A"}
        assert (await other.post("/api/register", json=register)).status_code == 429
        assert (await other.post("/api/forgot", json={"mail": "binh@example.org"})).status_code == 202


async def test_a_hundred_ways_in_for_an_address(site):
    async with Visitor(site) as eve:
        await eve.token()
        asked = 0

        async def tries():
            nonlocal asked
            asked += 1
            return await eve.post("/api/confirm", json={"key": f"guess-{asked}"})

        number, _ = await until_refused(tries, 140)
        assert 100 <= number <= 110
        assert (await eve.get("/api/programmes")).status_code == 200


async def test_guesses_of_ones_own_password_and_mails_to_strangers(anh, binh):
    async def guesses():
        return await anh.post("/api/account/delete", json={"password": "a guess"})

    number, _ = await until_refused(guesses, 20)
    assert 10 <= number <= 11
    answer = await anh.post("/api/account/mail", json={"mail": "stranger@example.org"})
    assert answer.status_code == 429
    answer = await binh.post("/api/account/mail", json={"mail": "mine@example.org"})
    assert answer.status_code == 202


async def test_while_files_wait_too_long_no_more_are_taken(site, term, monkeypatch):
    """What was sent can be seen, and drafts are saved: only more work is turned away."""
    monkeypatch.setattr(web, "_oldest", lambda: {VERIFY: 0.2})
    async with Visitor(web.make_app(limited=False)) as anh, asyncio.timeout(60):
        await anh.log_in()
        await ask.options(queue=VERIFY).enqueue("none")  # a job that is ready, and that nobody takes
        draft = await anh.draft(await kit.term())
        while (answer := await anh.post(f"/api/applications/{draft}/submit")).status_code != 503:
            assert answer.status_code == 400, "it has no key"
            await asyncio.sleep(0.05)
        assert (answer.json()["code"], int(answer.headers["retry-after"]) >= 1) == ("OVERLOADED", True)
        assert (await anh.submit(term)).status_code == 503
        assert (await anh.get("/api/applications")).status_code == 200
        saved = await anh.patch(
            f"/api/applications/{draft}/statement", json={"statement": "Kept, and sent later."}
        )
        assert saved.status_code == 200


class Late:
    """The handlers go on when all fifty have arrived, and the clock has moved then."""

    def __init__(self, clock, seconds):
        self._clock, self._seconds, self._real = clock, seconds, submitting.visitor_of
        self._all, self._number = asyncio.Event(), 0

    async def __call__(self, request):
        found = await self._real(request)
        self._number += 1
        if self._number == 50:
            self._clock.advance(self._seconds)
            self._all.set()
        await self._all.wait()
        return found


@pytest.mark.parametrize("seconds", [0.0, 40.0])
async def test_fifty_on_the_last_second(manual_clock, site, monkeypatch, seconds):
    """They arrive in the last second of the open time, and each is stored `seconds` later: all are in time."""
    term = await kit.term()
    async with hf.transaction() as tx:
        [(closes_at,)] = await tx.fetch("SELECT closes_at FROM terms WHERE id = $1", term)
    async with AsyncExitStack() as stack:
        app = web.make_app(limited=False)
        visitors = [await stack.enter_async_context(Visitor(app)) for _ in range(50)]
        manual_clock.advance(closes_at - manual_clock.now() - 600)
        for number, each in enumerate(visitors):
            await each.log_in(f"a{number}@example.org")
        manual_clock.advance(closes_at + 0.9 - manual_clock.now())
        monkeypatch.setattr(submitting, "visitor_of", Late(manual_clock, seconds))
        answers = await asyncio.gather(*(each.submit(term) for each in visitors))
        assert [each.status_code for each in answers] == [202] * 50
        assert {each.json()["arrivedAt"] <= closes_at + 1 for each in answers} == {True}
        manual_clock.advance(0.2)
        late = await visitors[0].submit(term, key="late")
    assert (late.status_code, late.json()["code"]) == (409, "CLOSED")
    assert await number_of("applications") == 50
