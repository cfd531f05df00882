"""What users of other publishers complain of, one test for each. The number is its place in the list of docs/rows.md."""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import publisher_kit as kit
import pytest
from publisher.core import settings
from publisher.desk import account, posts, reading, scheduling
from publisher.desk.bulk import many
from publisher.desk.refusals import TooLate
from publisher.domain.catching_up import APART, plan
from publisher.domain.posts import Details
from publisher.domain.rules import Agreement, FixedTime, Interval, slots
from publisher.outside import login
from publisher.outside.errors import Passing
from publisher.outside.login import Pair
from publisher.work import access
from publisher_processes import LEASE, SCAN, calls

from holdfast.testing import drain, mailbox
from holdfast.vault import SecretValue
from tools.waiting import until

DAY = 86_400.0


@pytest.fixture
def any_url(tmp_path):
    """One store is enough here: what differs between them is tried by the files beside this one."""
    return f"sqlite:///{tmp_path / 'publisher.db'}"


async def due(hf, artist, title="Salt lantern"):
    await artist.log_in()
    post_id = await artist.draft(title)
    await scheduling.publish_now(artist.id, post_id)
    return post_id


async def drained(hf, clock, steps=10, seconds=120.0):
    for _ in range(steps):
        await clock.run(drain(hf))
        clock.advance(seconds)


def published(simulator):
    return simulator.ledger.find("published")


@pytest.mark.parametrize("kind", ["lost", "blank"])
async def test_complaint_01_posted_again_and_again_after_a_time_out(
    manual_clock, hf, simulator, ada, monkeypatch, kind
):
    """The one call is made once, whatever comes back, and is never repeated by itself."""
    monkeypatch.setattr(simulator.settings, "user_calls", 1000)
    post_id = await due(hf, ada)
    simulator.faults.put("stash/publish", kind, times=1)
    simulator.faults.put("gallery/all", "server-error", times=2)  # and looking fails, too
    await drained(hf, manual_clock, 20)
    assert await kit.state_of(post_id) == "published"
    assert (len(published(simulator)), calls(simulator, "stash/publish")) == (1, 1)


async def test_complaint_02_told_failed_although_it_is_live(manual_clock, hf, simulator, ada):
    """It is unknown, never failed; “try again” is not offered, looking and deciding is."""
    post_id = await due(hf, ada)
    simulator.faults.put("stash/publish", "lost", times=1)
    simulator.faults.put("gallery/all", "server-error")
    states = set()
    for _ in range(5):
        await manual_clock.run(drain(hf))
        states.add(await kit.state_of(post_id))
        manual_clock.advance(60)
    assert states == {"unknown"}
    with pytest.raises(TooLate):
        await scheduling.try_again(ada.id, post_id)
    assert (await reading.story(ada.id, post_id)).waiting.words.startswith("We sent it and got no answer")
    [entry] = published(simulator)
    await scheduling.decide(
        ada.id, post_id, done=True, deviationid=entry["deviationid"], url="https://www.deviantart.com/x"
    )
    await manual_clock.run(drain(hf))
    assert (await kit.state_of(post_id), len(published(simulator))) == ("published", 1)


async def test_complaint_03_a_restart_begins_a_storm_of_retries(fleet, any_hf, simulator, ada):
    """Pauses and tries are rows: a worker that is started anew makes no call for who rests, and works for others."""
    post_id = await due(any_hf, ada)
    simulator.faults.put("stash/submit", "user-429", who="ada-arc")
    slow = {
        "RATE_LIMITER_BASE_DELAY_MS": "3000",
        "RATE_LIMITER_MAX_DELAY_MS": "300000",
        "RATE_LIMITER_ENABLED": "true",
    }
    first = await fleet.worker(**slow)

    async def rests():
        look = await any_hf.guards.look("deviantart", key=f"artist:{ada.id}")
        return look.paused_until is not None and look.paused_until > await any_hf.now() + 20

    await until(rests, 60)
    made = calls(simulator, "stash/submit")
    for worker in (first, await fleet.worker(**slow)):
        worker.signal(signal.SIGKILL)
    await fleet.worker(**slow)
    other = await kit.Artist(simulator, "bo-linnet").log_in()
    theirs = await other.draft("Low sun")
    await scheduling.publish_now(other.id, theirs)

    async def is_published():
        return await kit.state_of(theirs) == "published"

    await until(is_published, 60)
    assert calls(simulator, "stash/submit") == made + 1
    assert await kit.state_of(post_id) == "scheduled"


async def test_complaint_04_stuck_in_the_queue_without_a_reason(manual_clock, hf, simulator, ada):
    """Every post that waits says what for, and when it is tried next where anybody knows."""
    await ada.log_in()

    async def why(post_id):
        return (await reading.story(ada.id, post_id)).waiting

    later = await ada.draft("Later")
    await scheduling.schedule(ada.id, later, await hf.now() + 3600)
    assert (await why(later)).words == "It waits for its time."
    assert (await why(later)).next_try == pytest.approx(await hf.now() + 3600, abs=1)
    now = await ada.draft("Now")
    await scheduling.publish_now(ada.id, now)
    assert (await why(now)).words
    simulator.faults.put("stash/submit", "server-error", times=1)
    await manual_clock.run(drain(hf))
    told = await why(now)
    assert "tried again" in told.words
    assert told.next_try > await hf.now()
    await scheduling.switch(ada.id, is_on=False)
    manual_clock.advance(7200)
    await manual_clock.run(drain(hf))
    assert {(await why(each)).words for each in (later, now)} == {"You have switched publishing off."}
    assert [each.id for each in await reading.late(ada.id)] == [now, later]


async def test_complaint_05_the_worker_is_dead_and_its_health_green(fleet, any_hf, simulator, ada):
    """The process itself is asked, and not a fresh connection: one that stands still does not answer; its posts go on elsewhere."""
    import httpx

    simulator.settings.answers_in = 1.0
    post_id = await due(any_hf, ada)
    worker, port = await fleet.probed()
    await fleet.called(simulator, "stash/submit")
    assert httpx.get(f"http://127.0.0.1:{port}/health", timeout=10).status_code == 200
    worker.signal(signal.SIGSTOP)
    with pytest.raises(httpx.TimeoutException):
        httpx.get(f"http://127.0.0.1:{port}/health", timeout=1)
    await fleet.worker()

    async def is_published():
        return await kit.state_of(post_id) == "published"

    await until(is_published, 60)


async def test_complaint_06_deleted_and_moved_posts_go_out(manual_clock, hf, simulator, ada):
    await ada.log_in()
    gone, moved, cancelled = [await ada.draft(title) for title in ("Gone", "Moved", "Cancelled")]
    now = await hf.now()
    for post_id in (gone, moved, cancelled):
        await scheduling.schedule(ada.id, post_id, now + 60)
    await scheduling.cancel(ada.id, cancelled)
    await scheduling.cancel(ada.id, gone)
    await posts.delete(ada.id, gone)
    await scheduling.move(ada.id, moved, now + 86_400)
    await drained(hf, manual_clock)
    assert published(simulator) == []
    manual_clock.advance(DAY)
    await manual_clock.run(drain(hf))
    [entry] = published(simulator)
    assert entry["title"] == "Moved"


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Australia/Lord_Howe", "America/New_York", "Europe/Zurich"])
async def test_complaint_07_zones_of_half_an_hour_and_summer_time(manual_clock, hf, ada, zone):
    """A week later is the same time of day, also over a change of clocks, and in zones that are half an hour away."""
    await ada.log_in()
    await account.set_zone(ada.id, zone)
    here = ZoneInfo(zone)
    now = datetime.fromtimestamp(await hf.now(), UTC)
    for days in range(1, 60, 7):
        post_id = await ada.draft(f"Study {days}")
        wished = (now.astimezone(here) + timedelta(days=days)).replace(
            hour=18, minute=30, second=0, microsecond=0
        )
        await scheduling.schedule(ada.id, post_id, wished.timestamp())
        for _ in range(4):
            [result] = await scheduling.shift(ada.id, [post_id], 42)
            assert result.ok
            row = await posts.get(ada.id, post_id)
            local = datetime.fromtimestamp(row.wished_at, here)
            assert (local.hour, local.minute) == (18, 30)


def test_complaint_08_what_recurs_drifts_and_comes_in_a_burst():
    """Nominal times are keys: a year has one each day at its clock; after an outage what is made up for stays apart."""
    zone = ZoneInfo("Europe/Zurich")
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    year = slots([FixedTime(time(9, 30))], zone, Agreement.ANY, begin, begin + timedelta(days=365))
    clocks = {each.at.astimezone(zone).strftime("%H:%M") for each in year}
    assert (clocks, len({each.at for each in year})) == ({"09:30"}, 365)
    every = slots([Interval(7, begin)], zone, Agreement.ANY, begin, begin + timedelta(days=3))
    assert {later.at - sooner.at for sooner, later in pairwise(every)} == {timedelta(minutes=7)}
    made_up = plan(every, begin + timedelta(days=3)).planned
    wished = sorted(moment for each in made_up for moment in each.wished if each.is_missed)
    assert len(wished) > 10
    assert min(later - sooner for sooner, later in pairwise(wished)) >= APART


async def test_complaint_09_a_refresh_token_is_wiped(manual_clock, hf, simulator, ada):
    """What comes late, for an older version, changes nothing; a renewal that fails keeps what there is, and is tried again."""
    await ada.log_in()
    before = await access.access_of(ada.id)
    async with hf.transaction() as tx:
        stale = Pair(SecretValue("old"), SecretValue("old"), 3600.0, 90 * DAY)
        assert not await access.store_pair(ada.id, stale, before.version - 1, tx)
    simulator.faults.put("refresh", "server-error", times=1)
    with pytest.raises(Exception, match="DeviantArt"):
        await access.renew(ada.id, than=before.version)
    assert await access.access_of(ada.id) == before
    renewed = await access.renew(ada.id, than=before.version)
    assert (renewed.version, len(simulator.ledger.find("refreshed"))) == (before.version + 1, 1)


@pytest.mark.parametrize(
    "told", [{"refresh_token": ""}, {"access_token": ""}, {"refresh_token": None}, {"expires_in": "soon"}]
)
async def test_complaint_09_an_empty_token_takes_no_place(monkeypatch, hf, ada, told):
    class Client:
        async def fetch_token(self, *_, **__):
            return {"access_token": "a", "refresh_token": "b", "expires_in": 3600} | told

    @asynccontextmanager
    async def opened():
        yield Client()

    await ada.log_in()
    before = await access.access_of(ada.id)
    monkeypatch.setattr(login, "_opened", opened)
    with pytest.raises(Passing):
        await access.renew(ada.id, than=before.version)
    assert await access.access_of(ada.id) == before


async def test_complaint_10_two_mails_for_one_failure_and_none_has_a_link(manual_clock, hf, simulator, ada):
    await ada.log_in()
    details = Details(title="Low sun", mature=False, ai_made=False, agreed=True, galleries=("NOT-A-FOLDER",))
    with mailbox(hf) as box:
        post_id = await ada.draft("Low sun", details=details)
        await scheduling.publish_now(ada.id, post_id)
        await drained(hf, manual_clock)
        [mail] = box.of("ada-arc@example.org")
    assert f"{settings.public_url}/posts/{post_id}" in mail.text
    assert "not one of yours" in mail.text


@pytest.mark.parametrize(
    "kind",
    ["html-403", "empty-403", "html-504", "status-error", "server-error", "blank", "user-429", "app-429"],
)
async def test_complaint_11_errors_nobody_can_read(manual_clock, hf, simulator, ada, kind):
    """Whatever the edge answers becomes a sentence; and a file always has a name, without which there is a 500."""
    post_id = await due(hf, ada)
    simulator.faults.put("stash/submit", kind, times=1)
    await manual_clock.run(drain(hf))
    view = await reading.story(ada.id, post_id)
    if kind == "blank":  # it was stored, and the answer lost: found out at the next try
        await drained(hf, manual_clock)
        assert await kit.state_of(post_id) == "published"
        return
    words = view.waiting.words
    assert words[0].isupper()
    assert words.endswith(".")
    assert not [
        sign
        for sign in ("<", "{", "Error", "500", "403", "429")
        if sign in words.replace("(403)", "").replace("(504)", "").replace("(500)", "")
    ], words


async def test_complaint_12_limits_that_are_unpublished(any_hf, simulator, ada):
    """The pace is found out, for each artist alone; who must rest sees until when."""
    post_id = await due(any_hf, ada)
    simulator.faults.put("stash/submit", "user-429")

    async def told():
        return (await reading.story(ada.id, post_id)).waiting

    async def is_told():
        waiting = await told()
        return (
            waiting.words == "DeviantArt limits your account at the moment. Nothing to do."
            and waiting.next_try
        )

    async with any_hf.worker({"deviation-publisher": 2}):
        assert await until(is_told, 60)


async def test_complaint_13_one_post_cannot_be_shown_or_run_again(manual_clock, hf, simulator, ada):
    """It has its story, can be tried again by itself, and another time is checked, not the old one that has passed."""
    await ada.log_in()
    post_id = await ada.draft("Low sun")
    await scheduling.schedule(ada.id, post_id, await hf.now() + 60)
    await scheduling.switch(ada.id, is_on=False)
    manual_clock.advance(3600)  # its time has passed
    await scheduling.move(ada.id, post_id, await hf.now() + 60)
    await scheduling.switch(ada.id, is_on=True)
    simulator.faults.put("stash/submit", "server-error")
    await drained(hf, manual_clock, 25, 400)
    assert await kit.state_of(post_id) == "failed"
    view = await reading.story(ada.id, post_id)
    assert [line.kind for line in view.history][-1:] != []
    assert view.post.reason
    simulator.faults.clear()
    await scheduling.try_again(ada.id, post_id)
    await drained(hf, manual_clock)
    assert await kit.state_of(post_id) == "published"


async def test_complaint_14_back_and_forth_for_many_pieces(manual_clock, hf, ada):
    """One verb for all: what cannot be says so by itself, the rest is done."""
    await ada.log_in()
    whole = [await ada.draft(f"Study {number}") for number in range(3)]
    lacking = await ada.draft("Without answers", details=Details(title="Without answers"))
    at = await hf.now() + 3600
    results = await many([*whole, lacking], lambda post_id: scheduling.schedule(ada.id, post_id, at))
    assert [each.ok for each in results] == [True, True, True, False]
    assert [await kit.state_of(each) for each in (*whole, lacking)] == ["scheduled"] * 3 + ["draft"]
    assert all(each.ok for each in await scheduling.shift(ada.id, whole, 1))
    assert [(await posts.get(ada.id, each)).wished_at for each in whole] == [at + DAY] * 3


async def test_complaint_15_posting_for_ever(fleet, any_hf, simulator, ada):
    """Its worker dies in the middle of the call: within lease and scan another has it, and looks first."""
    simulator.settings.answers_in = 2.0
    post_id = await due(any_hf, ada)
    first = await fleet.worker()
    await fleet.called(simulator, "stash/publish")
    assert await kit.state_of(post_id) == "publishing"
    first.signal(signal.SIGKILL)
    await fleet.worker()

    async def is_over():
        return await kit.state_of(post_id) == "published"

    await until(is_over, LEASE + SCAN + 60)
    assert len(published(simulator)) == 1
