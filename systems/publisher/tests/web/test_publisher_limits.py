"""Too much is turned away early, and told when to come back: plans, bulk verbs, logins, and work that is late already."""

from __future__ import annotations

import asyncio

from publisher.core import PUBLISHING
from publisher.core import hf as program
from publisher.web import app as web
from publisher.work.leaving import revoke_tokens
from visitors import Browser

from holdfast.testing import drain

ID = "0" * 32


async def until_refused(ask, most):
    """How many were let through, and the refusal."""
    for number in range(most):
        answer = await ask()
        if answer.status_code == 429:
            return number, answer
    raise AssertionError(f"{most} were let through")


async def test_fifty_plans_a_minute_for_each_artist(ada_in, bob_in):
    async def plan():
        return await ada_in.post(f"/api/posts/{ID}/schedule", json={"at": 2e9})

    number, refused = await until_refused(plan, 80)
    assert 50 <= number <= 60, "they come back while they are used"
    assert refused.json()["status"] == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert (await ada_in.post(f"/posts/{ID}/schedule")).status_code == 429, "pages and API count together"
    assert (await ada_in.get("/api/posts")).status_code == 200
    other = await bob_in.post(f"/api/posts/{ID}/publish-now")
    assert (other.status_code, other.json()["code"]) == (404, "NOT_HERE"), "each has limits of his own"


async def test_thirty_bulk_verbs_in_five_minutes(ada_in):
    async def shift():
        return await ada_in.post("/api/bulk/shift", json={"post_ids": [ID], "days": 1})

    number, _ = await until_refused(shift, 50)
    assert 30 <= number <= 34


async def test_logins_are_limited_for_each_address(site):
    async with Browser(site) as stranger:
        await stranger.token()

        async def begin():
            return await stranger.post("/login")

        number, _ = await until_refused(begin, 60)
        assert 30 <= number <= 34
        assert (await stranger.get("/login")).status_code == 200


async def test_while_posts_are_late_no_more_are_taken_at_once(site, monkeypatch):
    """What is scheduled for later is still taken: it adds nothing to what waits now."""
    monkeypatch.setattr(web, "_LATEST", 0.2)
    app = web.make_app(limited=False)
    app.state.site = site.state.site
    async with Browser(app) as ada, asyncio.timeout(60):
        await ada.log_in("ada-arc")
        post_id = await ada.make_draft("other.png")
        await drain(program)
        await revoke_tokens.options(queue=PUBLISHING).enqueue(
            ID, 1
        )  # a job that is ready, and that nobody takes
        answer = await until(ada, 503)
        assert (answer.json()["code"], int(answer.headers["retry-after"]) >= 1) == ("OVERLOADED", True)
        at = round(await program.now()) + 3600
        planned = await ada.post(f"/api/posts/{post_id}/schedule", json={"at": at})
        assert planned.status_code == 200, planned.text
        await drain(program)
        await until(ada, 404)


async def until(browser, status):
    """It is seen once a second how long jobs wait."""
    while (answer := await browser.post(f"/api/posts/{ID}/publish-now")).status_code != status:
        await asyncio.sleep(0.05)
    return answer


async def test_publish_now_is_accepted_at_once_and_done(ada_in, simulator):
    post_id = await ada_in.make_draft("now.png")
    answer = await ada_in.post(f"/api/posts/{post_id}/publish-now")
    assert answer.status_code == 202
    ran = await drain(program, raise_dead=True)
    assert "publisher.publish" in [each.task for each in ran]
    view = (await ada_in.get(f"/api/posts/{post_id}")).json()
    if view["post"]["state"] == "scheduled":  # it waits for the artist's pace
        assert view["waiting"] is not None
    else:
        assert view["post"]["state"] == "published"
        [published] = simulator.ledger.find("published")
        assert published["artist"] == "ada-arc"
        assert view["receipt"] is not None
