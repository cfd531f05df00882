"""Logins that are renewed by several at once, and logins that are over: one call, one mail, and no post lost."""

from __future__ import annotations

import asyncio

import publisher_kit as kit
import pytest
from publisher.desk import scheduling
from publisher.outside.login import Pair
from publisher.work import access

from holdfast.testing import drain
from holdfast.vault import SecretValue


async def test_two_refreshers_make_one_call(any_hf, simulator, ada):
    """P110: the loser gets what the winner has brought, and the account lives."""
    await ada.log_in()
    before = (await access.access_of(ada.id)).version
    found = await asyncio.gather(*(access.renew(ada.id, than=before) for _ in range(5)))
    assert len(simulator.ledger.find("refreshed")) == 1
    assert simulator.ledger.find("refresh_refused") == []
    assert {each.version for each in found} == {before + 1}
    assert {each.token.reveal() for each in found} == {(await access.access_of(ada.id)).token.reveal()}


async def test_refreshers_of_two_processes_make_one_call(fleet, any_hf, simulator, ada):
    """A publication that meets an ended token in a worker, and a renewal here, in the same moment."""
    await ada.log_in(access_lasts=1.0)
    post_id = await ada.draft()
    await scheduling.publish_now(ada.id, post_id)
    await fleet.worker()
    await access.renew(ada.id, than=1)

    async def is_published():
        return await kit.state_of(post_id) == "published"

    from tools.waiting import until

    await until(is_published, 60)
    assert len(simulator.ledger.find("refreshed")) == 1
    assert simulator.ledger.find("refresh_refused") == []


async def test_an_answer_that_is_lost_is_no_loop(manual_clock, any_hf, simulator, ada):
    """P63: the old pair is dead; the next refresh says so, and a new login is asked for."""
    await ada.log_in()
    simulator.faults.put("refresh", "lost", times=1)
    for _ in range(3):
        with pytest.raises(Exception) as told:
            await access.renew(ada.id, than=1)
    assert isinstance(told.value, access.NeedsLogin)
    assert len(simulator.ledger.find("refreshed")) == 1
    assert len(simulator.ledger.find("refresh_refused")) == 1
    async with any_hf.transaction() as tx:
        assert await tx.fetch("SELECT state FROM logins") == [("needs_login",)]


async def test_a_dead_login_with_fifty_posts(manual_clock, any_hf, simulator, ada):
    """P24: one mail, no call after it; a new login, and all fifty are published once."""
    simulator.settings.user_calls = 1000  # this clock stands still while all of them are made
    await ada.log_in()
    posts = [await ada.draft(f"Study {number}") for number in range(50)]
    now = await any_hf.now()
    for number, post_id in enumerate(posts):
        await scheduling.schedule(ada.id, post_id, now + number)
    for grant in simulator.state.grants.values():
        grant.is_dead = True
    manual_clock.advance(60)
    await manual_clock.run(drain(any_hf))
    calls = dict(simulator.ledger.calls)
    for _ in range(3):
        manual_clock.advance(3600)
        await manual_clock.run(drain(any_hf))
    assert dict(simulator.ledger.calls) == calls
    assert {await kit.state_of(each) for each in posts} == {"scheduled"}
    async with any_hf.transaction() as tx:
        causes = await tx.fetch("SELECT cause FROM notices WHERE artist_id = $1", ada.id)
    assert len(causes) == 1

    grant = ada.grant(simulator)
    pair = Pair(SecretValue(grant.access), SecretValue(grant.refresh), 3600.0)
    async with any_hf.transaction() as tx:
        [(version,)] = await tx.fetch("SELECT version FROM logins")
        assert await access.store_pair(ada.id, pair, version, tx)
        await access.settle_holds(ada.id, tx)
    for _ in range(40):
        await manual_clock.run(drain(any_hf))
        manual_clock.advance(30)
    assert {await kit.state_of(each) for each in posts} == {"published"}
    titles = [each["title"] for each in simulator.ledger.find("published")]
    assert sorted(titles) == sorted(f"Study {number}" for number in range(50))
