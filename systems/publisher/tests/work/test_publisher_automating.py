"""Automations: each nominal time once, no draft twice, all of an execution or nothing, and what was missed without a burst."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import publisher_kit as kit
import pytest
from publisher.core import PUBLISHING
from publisher.desk import posts, scheduling
from publisher.domain.catching_up import APART
from publisher.work import automating

from holdfast.testing import ManualClock, drain, enqueued, mailbox

DAY = 86_400.0


@pytest.fixture
def clock():
    with ManualClock() as clock:
        yield clock


async def rows(hf, text, *values):
    async with hf.transaction() as tx:
        return await tx.fetch(text, *values)


async def automation(hf, artist, *rules, name="Daily", is_on=True, looked_until=None, **fields):
    """Its id. What it schedules is not published here."""
    await hf.queues.pause(PUBLISHING)
    values = {
        "id": name.lower(), "artist_id": artist.id, "name": name, "description": "", "colour": "", "position": 0, "is_on": is_on,
        "selection": "fifo", "agreement": "any", "jitter_low": 0, "jitter_high": 0, "only_stash": False, "preset_id": None,
        "rules": json.dumps(rules), "defaults": "{}", "looked_until": await hf.now() if looked_until is None else looked_until,
        "note": "", "version": 1, "made_at": await hf.now(), **fields,
    }  # fmt: skip
    names, places = ", ".join(values), ", ".join(f"${number + 1}" for number in range(len(values)))
    async with hf.transaction() as tx:
        await tx.execute(f"INSERT INTO automations ({names}) VALUES ({places})", *values.values())
    return values["id"]


def quota(posts):
    return {"kind": "daily_quota", "posts": posts}


def fixed(clock, **fields):
    return {"kind": "fixed_time", "clock": clock, **fields}


async def interval(hf, minutes, posts=1):
    return {"kind": "interval", "minutes": minutes, "posts": posts, "since": await hf.now()}


async def turn(clock, moment):
    """Up to this moment of the database's clock."""
    clock.advance(moment - await kit.hf.now())


async def turn_to(clock, zone, *moment):
    await turn(clock, datetime(*moment, tzinfo=ZoneInfo(zone)).timestamp())


async def look(hf):
    """One look, and the executions that come of it; how many."""
    found = await automating.look()
    await drain(hf)
    return found


async def executions(hf, automation_id="daily"):
    found = await rows(
        hf,
        "SELECT nominal_at, wanted, chosen, skipped, words FROM executions WHERE automation_id = $1 ORDER BY nominal_at",
        automation_id,
    )
    return [
        (at, wanted, json.loads(chosen), json.loads(skipped), words)
        for at, wanted, chosen, skipped, words in found
    ]


async def due_times(hf):
    return [
        row[0] for row in await rows(hf, "SELECT due_at FROM posts WHERE state = 'scheduled' ORDER BY due_at")
    ]


# --- one execution ---


async def test_a_draft_is_scheduled_for_the_nominal_time_with_its_job(clock, any_hf, ada):
    await ada.log_in()
    post_id = await ada.draft()
    await automation(any_hf, ada, await interval(any_hf, 5))
    nominal = await any_hf.now() + 300
    await look(any_hf)
    [(state, wished, due, job_id, automation_id)] = await rows(
        any_hf, "SELECT state, wished_at, due_at, job_id, automation_id FROM posts WHERE id = $1", post_id
    )
    assert (state, wished, due, automation_id) == ("scheduled", nominal, nominal, "daily")
    assert (await any_hf.jobs.get(job_id)).due_at == pytest.approx(nominal)
    assert [(at, chosen, words) for at, _, chosen, _, words in await executions(any_hf)] == [
        (nominal, [post_id], "Chosen 1 of 1.")
    ]
    assert (await rows(any_hf, "SELECT who FROM happenings WHERE kind = 'scheduled'")) == [
        ("automation “Daily”",)
    ]


async def test_nothing_is_written_before_something_is_due(clock, any_hf, ada):
    await ada.log_in()
    await ada.draft()
    await automation(any_hf, ada, await interval(any_hf, 60))
    assert await automating.look() == 0
    clock.advance(56 * 60)
    assert await automating.look() == 1


async def test_looking_twice_does_it_once(clock, any_hf, ada):
    await ada.log_in()
    for number in range(3):
        await ada.draft(f"Draft {number}")
    await automation(any_hf, ada, await interval(any_hf, 5))
    for _ in range(3):
        await look(any_hf)
    assert [len(chosen) for _, _, chosen, _, _ in await executions(any_hf)] == [1]
    assert len(await rows(any_hf, "SELECT id FROM posts WHERE state = 'scheduled'")) == 1


@pytest.mark.parametrize(("selection", "expected"), [("fifo", [0, 1]), ("lifo", [3, 2])])
async def test_drafts_are_taken_in_the_order_that_was_chosen(clock, any_hf, ada, selection, expected):
    await ada.log_in()
    drafts = []
    for number in range(4):
        drafts.append(await ada.draft(f"Draft {number}"))
        clock.advance(1)
    await automation(any_hf, ada, await interval(any_hf, 5, 2), selection=selection)
    clock.advance(5)
    await look(any_hf)
    [(_, _, chosen, _, _)] = await executions(any_hf)
    assert chosen == [drafts[number] for number in expected]


async def test_chance_is_the_same_for_whoever_asks(clock, any_hf, ada):
    """So a trial shows what will be, and an execution that is made again chooses the same."""
    await ada.log_in()
    drafts = [await ada.draft(f"Draft {number}") for number in range(12)]
    await automation(any_hf, ada, await interval(any_hf, 5, 4), selection="random", jitter_high=3600)
    async with any_hf.transaction() as tx:
        of = await automating._locked(tx, "daily")
        [slot] = automating.due_of(of, await any_hf.now())
        pool = await automating.pool(tx, ada.id)
        one, two = (automating.Picking(tx, of, slot.at, pool) for _ in range(2))
        foreseen = [(await one.next()).post.id for _ in range(4)]
        assert foreseen == [(await two.next()).post.id for _ in range(4)]
    await look(any_hf)
    [(_, _, chosen, _, _)] = await executions(any_hf)
    assert chosen == foreseen
    assert len(set(chosen)) == 4
    assert chosen != drafts[:4]


async def test_jitter_is_never_earlier(clock, any_hf, ada):
    await ada.log_in()
    for number in range(30):
        await ada.draft(f"Draft {number}")
    await automation(any_hf, ada, await interval(any_hf, 5, 30), jitter_low=60, jitter_high=3600)
    nominal = await any_hf.now() + 300
    await look(any_hf)
    found = [due - nominal for due in await due_times(any_hf)]
    assert len(found) == 30
    assert min(found) >= 60
    assert max(found) <= 3600
    assert len(set(found)) > 20


# --- the pool ---


async def test_only_complete_drafts_without_a_date_are_taken(clock, any_hf, ada):
    await ada.log_in()
    without_file = await ada.draft("No file")
    two_files = await ada.draft("Two files")
    no_answer = await ada.draft("No answer", details=replace(kit.WHOLE, mature=None))
    in_review = await ada.draft("Review")
    with_date = await ada.draft("Dated")
    async with any_hf.transaction() as tx:
        await tx.execute(
            "UPDATE files SET deleted_at = $1 WHERE post_id = $2", await any_hf.now(), without_file
        )
        await tx.execute(
            "INSERT INTO files (id, artist_id, post_id, position, name, alt, key, type, size, sha256, made_at) "
            "VALUES ('second', $1, $2, 1, 'b.png', '', 'k', 'image/png', 1, 'x', 0)", ada.id, two_files,
        )  # fmt: skip
        await tx.execute("UPDATE posts SET state = 'review' WHERE id = $1", in_review)
    await scheduling.schedule(ada.id, with_date, await any_hf.now() + 10 * DAY)
    complete = await ada.draft("Complete")
    await automation(any_hf, ada, await interval(any_hf, 5, 3))
    await look(any_hf)
    [(_, wanted, chosen, skipped, words)] = await executions(any_hf)
    assert (wanted, chosen) == (3, [complete])
    assert dict(skipped) == {
        without_file: "Add the file that is to be published.",
        two_files: "This post has 2 files, and a deviation has one. Keep one, or split it into 2 posts.",
        no_answer: "Say whether it is mature content.",
    }
    assert words.startswith("Chosen 1 of 3. 3 drafts are not complete, such as")


async def test_defaults_complete_a_draft(clock, any_hf, ada):
    """If empty, or always; no and 0 are answers, and what the artist has said stays."""
    await ada.log_in()
    empty = await ada.draft(
        "Empty", details=replace(kit.WHOLE, mature=None, tags=(), comments=None, resolution=0)
    )
    defaults = {
        "mature": {"value": False}, "tags": {"value": ["night", "ink"]}, "comments": {"value": False, "when": "always"},
        "resolution": {"value": 5}, "ai_made": {"value": True},
    }  # fmt: skip
    await automation(any_hf, ada, await interval(any_hf, 5), defaults=json.dumps(defaults))
    await look(any_hf)
    told = (await posts.get(ada.id, empty)).told
    assert (told.mature, told.tags, told.comments, told.resolution, told.ai_made) == (
        False,
        ("night", "ink"),
        False,
        0,
        False,
    )


async def test_what_is_sold_is_never_given_away(clock, any_hf, ada):
    await ada.log_in()
    async with any_hf.transaction() as tx:
        await tx.execute(
            "INSERT INTO presets (id, artist_id, name, low, high, is_default, made_at) VALUES ('p', $1, 'P', 500, 500, $2, 0)",
            ada.id,
            False,
        )
    post_id = await ada.draft("Sold", details=replace(kit.WHOLE, free_download=True, resolution=0))
    await automation(any_hf, ada, await interval(any_hf, 5), preset_id="p")
    await look(any_hf)
    told = (await posts.get(ada.id, post_id)).told
    assert (told.resolution, told.watermark, told.free_download) == (8, True, False)


async def test_sta_sh_only_is_handed_on(clock, any_hf, ada):
    await ada.log_in()
    post_id = await ada.draft()
    await automation(any_hf, ada, await interval(any_hf, 5), only_stash=True)
    await look(any_hf)
    assert (await posts.get(ada.id, post_id)).only_stash is True


async def test_an_empty_pool_is_told_once(clock, any_hf, ada):
    await ada.log_in()
    await automation(any_hf, ada, await interval(any_hf, 5))
    with mailbox(any_hf) as box:
        for _ in range(4):
            await look(any_hf)
            clock.advance(300)
        [mail] = box.of("ada-arc@example.org")
        assert mail.subject.startswith("No drafts for “Daily” on ")
        assert "/automations/daily" in mail.text
        [(note,)] = await rows(any_hf, "SELECT note FROM automations")
        assert note == "There is no draft without a date left."
        await ada.draft()
        await look(any_hf)
        assert await rows(any_hf, "SELECT note FROM automations") == [("",)]
        clock.advance(300)
        await look(any_hf)
        assert len(box.of("ada-arc@example.org")) == 2
    assert len(await executions(any_hf)) == 6


async def test_nobody_is_told_who_does_not_want_it(clock, any_hf, ada):
    await ada.log_in()
    async with any_hf.transaction() as tx:
        await tx.execute("UPDATE artists SET notices = $1", '{"automation": false}')
    await automation(any_hf, ada, await interval(any_hf, 5))
    with mailbox(any_hf) as box:
        await look(any_hf)
        assert box.of("ada-arc@example.org") == []
    assert len(await executions(any_hf)) == 1


# --- at rest ---


async def test_what_is_off_or_at_rest_does_nothing(clock, any_hf, ada):
    await ada.log_in()
    await ada.draft()
    rule = await interval(any_hf, 5)
    await automation(any_hf, ada, rule, is_on=False)
    assert await automating.look() == 0
    async with any_hf.transaction() as tx:
        await tx.execute("UPDATE automations SET is_on = $1", True)
    async with any_hf.transaction() as tx:
        await tx.execute("UPDATE logins SET state = 'needs_login'")
    assert await automating.look() == 0
    async with any_hf.transaction() as tx:
        await tx.execute("UPDATE logins SET state = 'active'")
    assert await automating.look() == 1
    async with any_hf.transaction() as tx:
        await tx.execute("UPDATE logins SET state = 'needs_login'")
    await drain(any_hf)
    assert await executions(any_hf) == []


async def test_a_holiday_is_not_made_up_for(clock, any_hf, ada):
    await ada.log_in()
    for number in range(5):
        await ada.draft(f"Draft {number}")
    await automation(any_hf, ada, await interval(any_hf, 60))
    await scheduling.switch(ada.id, is_on=False)
    for _ in range(12):
        clock.advance(300)
        await look(any_hf)
    clock.advance(3 * 3600)
    await look(any_hf)
    await scheduling.switch(ada.id, is_on=True)
    await look(any_hf)
    assert await executions(any_hf) == []
    clock.advance(3600)
    await look(any_hf)
    assert len(await executions(any_hf)) == 1


# --- missed ---


async def test_after_an_outage_nothing_comes_in_a_burst(clock, any_hf, ada):
    await ada.log_in()
    for number in range(30):
        await ada.draft(f"Draft {number}")
    await automation(any_hf, ada, await interval(any_hf, 30), jitter_high=3600)
    clock.advance(6 * 3600)
    now = await any_hf.now()
    await look(any_hf)
    found = await executions(any_hf)
    assert len(found) == 12
    missed = [each for each in found if "It was missed, and is made up for." in each[4]]
    assert len(missed) == 11, "the last one is due just now"
    due = [
        row[0]
        for row in await rows(
            any_hf, "SELECT due_at FROM posts WHERE wished_at > $1 ORDER BY wished_at", now - 1
        )
    ]
    wished = [
        row[0]
        for row in await rows(
            any_hf, "SELECT wished_at FROM posts WHERE state = 'scheduled' ORDER BY wished_at"
        )
    ]
    assert wished[:2] == [now, now]
    assert [round(later - earlier) for earlier, later in pairwise(wished[1:])] == [APART.total_seconds()] * 10
    assert len(due) == 12
    assert await rows(any_hf, "SELECT looked_until FROM automations") == [(now,)]


async def test_what_was_missed_long_ago_is_let_go_with_one_line(clock, any_hf, ada):
    await ada.log_in()
    for number in range(60):
        await ada.draft(f"Draft {number}")
    await automation(any_hf, ada, await interval(any_hf, 15))
    clock.advance(3 * DAY)
    await look(any_hf)
    found = await executions(any_hf)
    assert sum(len(chosen) for _, _, chosen, _, _ in found) == 49
    [line] = [each for each in found if each[4].startswith("Missed and let go")]
    assert (line[1], line[2]) == (3 * 96 - 49, [])
    assert line[4].startswith("Missed and let go: 239 times from ")
    clock.advance(300)
    assert await automating.look() == 0, "it is not looked at again"


async def test_a_very_large_execution_goes_on_with_the_next_look(clock, any_hf, ada, monkeypatch):
    monkeypatch.setattr(automating, "AT_ONCE", 3)
    await ada.log_in()
    for number in range(9):
        await ada.draft(f"Draft {number}")
    rule, then = await interval(any_hf, 30, 2), await any_hf.now()
    clock.advance(4 * 1800)
    await drain(any_hf)  # the schedule's own look: there is nothing yet
    await automation(any_hf, ada, rule, looked_until=then)
    for expected in (2, 4, 6, 8):
        await look(any_hf)
        assert sum(len(each[2]) for each in await executions(any_hf)) == expected
    assert await automating.look() == 0


# --- many at once ---


async def test_three_workers_and_one_nominal_time(any_hf, ada):
    """The lock of the task, the row's key and the fence of the commit, all at once."""
    await ada.log_in()
    for number in range(12):
        await ada.draft(f"Draft {number}")
    await automation(any_hf, ada, await interval(any_hf, 5, 2), looked_until=await any_hf.now() - 1)
    async with any_hf.worker(poll=0.05), any_hf.worker(poll=0.05), any_hf.worker(poll=0.05):
        handles = [
            await automating.execute.options(unique=f"test:{number}").enqueue("daily") for number in range(6)
        ]
        for handle in handles:
            await handle.result(timeout=60)
    [(_, wanted, chosen, _, _)] = await executions(any_hf)
    assert (wanted, len(chosen)) == (2, 2)
    assert len(await rows(any_hf, "SELECT id FROM posts WHERE state = 'scheduled'")) == 2


async def test_two_automations_never_choose_one_draft(any_hf, ada):
    """From both ends of one pool, at once."""
    await ada.log_in()
    drafts = [await ada.draft(f"Draft {number}") for number in range(30)]
    rule, now = await interval(any_hf, 5, 10), await any_hf.now()
    for name, selection in (("One", "fifo"), ("Two", "lifo"), ("Three", "random"), ("Four", "random")):
        await automation(any_hf, ada, rule, name=name, selection=selection, looked_until=now - 1)
    async with any_hf.worker(poll=0.05), any_hf.worker(poll=0.05):
        handles = await automating.execute.enqueue_many(
            [{"automation_id": each} for each in ("one", "two", "three", "four")]
        )
        await asyncio.gather(*(handle.result(timeout=60) for handle in handles))
    chosen = [
        each
        for name in ("one", "two", "three", "four")
        for _, _, ids, _, _ in await executions(any_hf, name)
        for each in ids
    ]
    assert len(chosen) == len(set(chosen)) == 30
    assert set(chosen) == set(drafts)
    jobs = await enqueued(any_hf, scheduling.publish)
    assert len(jobs) == 30


async def test_a_draft_that_its_artist_changes_in_between_is_chosen_as_it_is_then(clock, any_hf, ada):
    """The claim is by version: what was read before is not written over."""
    await ada.log_in()
    post_id = await ada.draft("Before")
    await automation(any_hf, ada, await interval(any_hf, 5))
    async with any_hf.transaction() as tx:
        of = await automating._locked(tx, "daily")
        picking = automating.Picking(tx, of, datetime.now(UTC), await automating.pool(tx, ada.id))
        ready = await picking.next()
        await tx.execute("UPDATE posts SET version = version + 1, title = 'After' WHERE id = $1", post_id)
        moment = datetime.fromtimestamp(await any_hf.now(), UTC) + timedelta(hours=1)
        run = automating._Execution(tx, of, await any_hf.now())
        assert await run._claim(ready, moment, moment, picking) is False
        assert [(each.post_id, each.why) for each in picking.skipped] == [
            (post_id, "It was changed or taken in this moment.")
        ]
    assert await kit.state_of(post_id) == "draft"
    await look(any_hf)
    assert (await posts.get(ada.id, post_id)).title == "After"
    assert await kit.state_of(post_id) == "scheduled"


# --- clocks that are changed ---


@pytest.mark.parametrize(
    ("zone", "day", "clock_time", "expected"),
    [
        ("Europe/Zurich", (2027, 3, 28), "02:30", "2027-03-28T01:00:00+00:00"),  # skipped: the end of the gap
        ("Europe/Zurich", (2027, 10, 31), "02:30", "2027-10-31T00:30:00+00:00"),  # twice: the first
        ("America/New_York", (2027, 3, 14), "02:30", "2027-03-14T07:00:00+00:00"),
        ("America/New_York", (2027, 11, 7), "01:30", "2027-11-07T05:30:00+00:00"),
        ("Australia/Lord_Howe", (2027, 10, 3), "02:15", "2027-10-02T15:30:00+00:00"),  # half an hour
        ("Australia/Lord_Howe", (2027, 4, 4), "01:45", "2027-04-03T14:45:00+00:00"),
    ],
)  # fmt: skip
async def test_a_fixed_time_fires_once_when_clocks_are_changed(
    clock, hf, ada, zone, day, clock_time, expected
):
    await ada.log_in()
    async with hf.transaction() as tx:
        await tx.execute("UPDATE artists SET zone = $1", zone)
    for number in range(4):
        await ada.draft(f"Draft {number}")
    before = datetime(*day, tzinfo=ZoneInfo(zone)) - timedelta(hours=20)
    await turn(clock, before.timestamp())
    await automation(hf, ada, fixed(clock_time))
    async with hf.transaction() as tx:
        await tx.execute(
            "UPDATE logins SET access_until = $1, refresh_until = $1", await hf.now() + 365 * DAY
        )
    while await hf.now() < before.timestamp() + 50 * 3600:
        await look(hf)
        clock.advance(300)
    found = [datetime.fromtimestamp(at, UTC) for at, *_ in await executions(hf)]
    of_day = [each for each in found if each.astimezone(ZoneInfo(zone)).date() == date(*day)]
    assert [each.isoformat() for each in of_day] == [expected]
    assert len(found) == len({each.astimezone(ZoneInfo(zone)).date() for each in found})
