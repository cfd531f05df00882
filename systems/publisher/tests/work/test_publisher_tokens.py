"""Upkeep of logins: renewed in time, one failing account stops no other, and who must log in is told when it matters."""

from __future__ import annotations

import logging
from itertools import pairwise

import publisher_kit as kit
import pytest
from publisher.core import TOKENS
from publisher.desk import account, scheduling
from publisher.outside.login import Pair
from publisher.outside.records import Whoami
from publisher.work import tokens

from holdfast.testing import drain, mailbox
from holdfast.vault import SecretValue
from simulators.common.faults import Fault

DAY = 86_400.0
HOUR = 3_600.0


async def one(hf, sql, *values):
    async with hf.transaction() as tx:
        [row] = await tx.fetch(sql, *values)
    return row


async def maintained(hf, clock):
    """One run; what it says of each login."""
    handle = await tokens.maintain.enqueue()
    await clock.run(drain(hf))
    return [(each.artist, each.outcome) for each in await handle.result(timeout=5)]


@pytest.fixture
async def three(any_hf, simulator):
    """Three artists whose logins end in six days, in the order in which they are looked at."""
    names = ("ada-arc", "bea-brush", "cyn-clay")
    found = [kit.Artist(simulator, name, id=f"artist-{number}") for number, name in enumerate(names)]
    for artist in found:
        await artist.log_in(refresh_lasts=6 * DAY)
    return found


async def test_logins_that_end_within_a_week_are_renewed(manual_clock, any_hf, simulator, ada):
    await ada.log_in(refresh_lasts=7 * DAY - 1)
    late = await kit.Artist(simulator, "bea-brush").log_in(refresh_lasts=7 * DAY + HOUR)
    assert await maintained(any_hf, manual_clock) == [("ada-arc", "renewed")]
    until, version = await one(
        any_hf, "SELECT refresh_until, version FROM logins WHERE artist_id = $1", ada.id
    )
    assert until > await any_hf.now() + 89 * DAY
    assert version == 2
    assert (await one(any_hf, "SELECT version FROM logins WHERE artist_id = $1", late.id)) == (1,)
    assert await maintained(any_hf, manual_clock) == []


async def test_one_that_fails_does_not_stop_the_others(manual_clock, any_hf, simulator, three, caplog):
    """The second of three: the log names all of them, and nobody loses a login by it."""
    usual, calls = simulator.faults.next, []

    def second_fails(endpoint, who=None):
        calls.append(endpoint)
        return Fault(endpoint, "server-error") if calls.count("refresh") == 2 else usual(endpoint, who)

    simulator.faults.next = second_fails
    caplog.set_level(logging.INFO, "publisher.work.tokens")
    with mailbox(any_hf) as box:
        found = await maintained(any_hf, manual_clock)
    assert found == [("ada-arc", "renewed"), ("bea-brush", "failed"), ("cyn-clay", "renewed")]
    lines = [record.getMessage() for record in caplog.records if record.name == "publisher.work.tokens"]
    assert [line.split(": ")[0] for line in lines] == [
        "login of ada-arc",
        "login of bea-brush",
        "login of cyn-clay",
    ]
    assert [mail.subject.split(" at ")[0] for mail in box.of("bea-brush@example.org")] == ["Log in"]
    assert box.of("ada-arc@example.org") == box.of("cyn-clay@example.org") == []
    assert (await one(any_hf, "SELECT state FROM logins WHERE artist_id = $1", three[1].id)) == ("active",)
    assert await maintained(any_hf, manual_clock) == [("bea-brush", "renewed")]


async def test_a_dead_token_of_the_second_does_not_stop_the_others(manual_clock, any_hf, simulator, three):
    grants = [grant for grant in simulator.state.grants.values() if grant.artist.username == "bea-brush"]
    for grant in grants:
        grant.is_dead = True
    with mailbox(any_hf) as box:
        found = await maintained(any_hf, manual_clock)
        assert found == [("ada-arc", "renewed"), ("bea-brush", "needs_login"), ("cyn-clay", "renewed")]
        assert await maintained(any_hf, manual_clock) == []
        await manual_clock.run(drain(any_hf))
    [mail] = box.of("bea-brush@example.org")
    assert mail.subject == "Log in at DeviantArt again: nothing is published until then"
    assert len(simulator.ledger.find("refresh_refused")) == 1, "it is not tried again"


async def test_over_ninety_days_there_are_two_mails_and_after_a_login_two_again(
    manual_clock, hf, simulator, ada
):
    """Renewing fails all the time: a week before, a day before, and at the end the number of held posts."""
    await ada.log_in()
    simulator.faults.put("refresh", "server-error", times=None)
    post_id = await ada.draft()
    await scheduling.schedule(ada.id, post_id, await hf.now() + 200 * DAY)
    with mailbox(hf) as box:
        first = await days(hf, manual_clock, box, 90 * DAY - HOUR)
        assert [subject for _, subject in first] == [
            "Log in at DeviantArt by" , "Last day: log in at DeviantArt by",
        ]  # fmt: skip
        assert [round(left / DAY, 2) for left, _ in first] == pytest.approx([7, 1], abs=0.26)
        await log_in_again(hf, simulator, ada)
        again = await days(hf, manual_clock, box, 90 * DAY - HOUR)
        assert [subject for _, subject in again] == [subject for _, subject in first]
        end = await days(hf, manual_clock, box, DAY)
        assert len(end) == 1
        assert [subject for _, subject in end] == ["Log in at DeviantArt again: 1 post is held until then"]
    assert (await one(hf, "SELECT state, told FROM logins")) == ("needs_login", "expired")
    [pause] = await hf.tenants.paused()
    assert ada.id in pause.tenant
    texts = [mail.text for mail in box.of("ada-arc@example.org")]
    assert all("http://127.0.0.1:8080/login" in text for text in texts)
    assert all("(Europe/Zurich)" in text for text in texts)


async def days(hf, clock, box, seconds):
    """Every six hours of that time; what was mailed, and how long before the end."""
    found, begun = [], await hf.now()
    (until,) = await one(hf, "SELECT refresh_until FROM logins")
    while await hf.now() + 6 * HOUR < begun + seconds:
        before = len(box.of("ada-arc@example.org"))
        clock.advance(6 * HOUR)
        await clock.run(drain(hf))  # with the schedule's own run
        left = until - await hf.now()
        found += [(left, shortened(mail.subject)) for mail in box.of("ada-arc@example.org")[before:]]
    return found


def shortened(subject):
    """Without the moment by which it is to be done."""
    begin, by, _ = subject.partition(" by ")
    return begin + by.rstrip()


async def log_in_again(hf, simulator, artist):
    grant = artist.grant(simulator)
    who = simulator.state.known(artist.name)
    pair = Pair(SecretValue(grant.access), SecretValue(grant.refresh), 3600.0, 90 * DAY)
    assert (await account.login_by(pair, Whoami(who.userid, artist.name))).id == artist.id


async def test_an_ended_login_is_not_asked_for(manual_clock, any_hf, simulator, ada):
    await ada.log_in(refresh_lasts=DAY)
    manual_clock.advance(2 * DAY)
    with mailbox(any_hf) as box:
        await manual_clock.run(drain(any_hf))  # the schedule's own run
        assert await maintained(any_hf, manual_clock) == []
        assert len(box.of("ada-arc@example.org")) == 1
    assert simulator.ledger.find("refreshed") == []
    assert (await one(any_hf, "SELECT state, told FROM logins")) == ("needs_login", "expired")


async def test_who_wants_no_such_mail_gets_none(manual_clock, any_hf, simulator, ada):
    await ada.log_in(refresh_lasts=5 * DAY)
    async with any_hf.transaction() as tx:
        await tx.execute("UPDATE artists SET notices = $1", '{"login": false}')
    simulator.faults.put("refresh", "server-error", times=None)
    with mailbox(any_hf) as box:
        await maintained(any_hf, manual_clock)
        assert box.of("ada-arc@example.org") == []
    assert (await one(any_hf, "SELECT told FROM logins")) == ("warned",)


async def test_there_is_one_run_in_the_fleet(any_hf, simulator, three):
    """Two workers, three runs: never two at a time, and no login is renewed twice."""
    async with any_hf.worker(queues={TOKENS: 2}, poll=0.05), any_hf.worker(queues={TOKENS: 2}, poll=0.05):
        handles = [await tokens.maintain.enqueue() for _ in range(3)]
        for handle in handles:
            await handle.result(timeout=60)
    claims = sorted(
        [
            (each.began_at, each.ended_at)
            for handle in handles
            for each in (await any_hf.jobs.story(handle.id)).claims
        ]
    )
    assert all(later[0] >= earlier[1] for earlier, later in pairwise(claims))
    assert len(simulator.ledger.find("refreshed")) == 3
