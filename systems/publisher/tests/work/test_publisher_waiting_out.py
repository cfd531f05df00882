"""What is waited out: 429, trouble, a breaker that is open, and dead letters that an operator replays."""

from __future__ import annotations

import publisher_kit as kit
import pytest
from publisher.core import PUBLISHING, deviantart
from publisher.desk import posts, reading, scheduling
from publisher.domain.posts import Details

from holdfast import State as JobState
from holdfast.testing import drain, mailbox
from simulators.deviantart.state import Folder
from tools.waiting import until


async def due(hf, artist, title="Salt lantern"):
    await artist.log_in()
    post_id = await artist.draft(title)
    await scheduling.publish_now(artist.id, post_id)
    return post_id


async def job_of(hf, post_id):
    async with hf.transaction() as tx:
        [(job_id,)] = await tx.fetch("SELECT job_id FROM posts WHERE id = $1", post_id)
    return await hf.jobs.get(job_id)


async def published_after(hf, clock, post_id, *, steps=40, seconds=300.0):
    for _ in range(steps):
        await clock.run(drain(hf))
        if await kit.state_of(post_id) == "published":
            return True
        clock.advance(seconds)
    return False


async def count_of(hf, artist):
    async with hf.transaction() as tx:
        [(count,)] = await tx.fetch("SELECT post_count FROM artists WHERE id = $1", artist.id)
    return count


async def test_waits_of_seven_runs_are_those_of_the_original(manual_clock, hf, simulator, ada):
    """P20, P21: at most 5, 10, 20, 40, 80, 160 s between seven runs; the seventh publishes, and the count rises once."""
    post_id = await due(hf, ada)
    simulator.faults.put("stash/submit", "server-error", times=6)
    waits = []
    for _ in range(6):
        await manual_clock.run(drain(hf))
        job = await job_of(hf, post_id)
        waits.append(job.run_at - await hf.now())
        assert (job.state, await count_of(hf, ada)) == (JobState.QUEUED, 0)
        manual_clock.advance(400)  # the breaker may have opened meanwhile
    assert all(0 <= wait <= most for wait, most in zip(waits, (5, 10, 20, 40, 80, 160), strict=True)), waits
    await manual_clock.run(drain(hf))
    assert await kit.state_of(post_id) == "published"
    assert (await job_of(hf, post_id)).attempt == 7
    assert simulator.ledger.calls["stash/submit"] == 7
    assert await count_of(hf, ada) == 1


async def test_twenty_times_429_and_then_published_in_the_first_attempt(manual_clock, hf, simulator, ada):
    """P22: it waits without a slot, and no attempt is charged."""
    simulator.settings.user_calls = 1000
    post_id = await due(hf, ada)
    simulator.faults.put("stash/submit", "user-429", times=20)
    assert await published_after(hf, manual_clock, post_id, steps=60, seconds=3000)
    assert (await job_of(hf, post_id)).attempt == 1
    assert simulator.ledger.calls["stash/submit"] == 21
    assert len(simulator.ledger.find("published")) == 1


@pytest.mark.parametrize("kind", ["html-403", "empty-403", "app-429", "user-429"])
@pytest.mark.parametrize("endpoint", ["stash/submit", "stash/publish"])
async def test_what_the_edge_says_is_waited_out(manual_clock, hf, simulator, ada, endpoint, kind):
    """P27: pages and blanks with 403 in place of 429, and both thresholds; nothing was done, so it goes on."""
    post_id = await due(hf, ada)
    simulator.faults.put(endpoint, kind, times=2)
    assert await published_after(hf, manual_clock, post_id)
    assert (await job_of(hf, post_id)).attempt == 1
    assert len(simulator.ledger.find("published")) == 1


async def test_an_outage_of_ten_minutes_charges_nobody(manual_clock, hf, simulator, ada):
    """P36: while the breaker is open nothing is called; all are published after it, in their first attempt."""
    others = [kit.Artist(simulator, name) for name in ("bea-brush", "cyn-clay")]
    posts_of = [await due(hf, artist, artist.name) for artist in (ada, *others)]
    deviantart.breaker.hold_open()
    for _ in range(10):
        await manual_clock.run(drain(hf))
        manual_clock.advance(60)
    assert simulator.ledger.calls["stash/submit"] == 0
    assert [(await job_of(hf, each)).attempt for each in posts_of] == [0, 0, 0]
    deviantart.breaker.let_go()
    for post_id in posts_of:
        assert await published_after(hf, manual_clock, post_id, seconds=60)
        assert (await job_of(hf, post_id)).attempt == 1


async def test_a_breaker_that_opened_by_itself_lets_nobody_call(manual_clock, hf, simulator, ada):
    """P34, P36: three 429 of the application, and then silence for five minutes."""
    post_id = await due(hf, ada)
    simulator.faults.put("stash/submit", "app-429", times=3)
    for _ in range(8):
        await manual_clock.run(drain(hf))
        manual_clock.advance(6)
    calls = dict(simulator.ledger.calls)
    assert calls["stash/submit"] == 3
    for _ in range(3):
        manual_clock.advance(60)
        await manual_clock.run(drain(hf))
    assert dict(simulator.ledger.calls) == calls
    assert await published_after(hf, manual_clock, post_id)
    assert (await job_of(hf, post_id)).attempt == 1


async def test_the_pace_and_the_rest_of_an_artist_can_be_seen(any_hf, simulator, ada):
    """P42: by operators, and by the artist on the post's page; and nobody else is slower."""
    other = await kit.Artist(simulator, "bo-linnet").log_in()
    post_id = await due(any_hf, ada)
    simulator.faults.put("stash/submit", "user-429")

    async def rests():
        look = await any_hf.guards.look("deviantart", key=f"artist:{ada.id}")
        return look if look.paused_until is not None and look.rate is not None else None

    async with any_hf.worker({PUBLISHING: 5}):
        look = await until(rests, 30)
        assert look.rate < 1000 / 30, "less than it began with"
        words = (await reading.story(ada.id, post_id)).waiting.words
        assert words.startswith(("DeviantArt limits", "It is being uploaded"))
        theirs = await any_hf.guards.look("deviantart", key=f"artist:{other.id}")
        assert (theirs.paused_until, theirs.rate) == (None, None)


async def test_who_is_blocked_keeps_no_slot(manual_clock, hf, simulator, ada):
    """P41: five artists rest, and the sixth is published at once."""
    names = ["ada-arc", "bea-brush", "cyn-clay", "dan-dye", "eva-etch"]
    blocked = [await due(hf, kit.Artist(simulator, name), name) for name in names]
    for name in names:
        simulator.faults.put("stash/submit", "user-429", who=name)
    await manual_clock.run(drain(hf))
    assert {await kit.state_of(each) for each in blocked} == {"scheduled"}
    sixth = await due(hf, kit.Artist(simulator, "fay-fresco"))
    began = await hf.now()
    await manual_clock.run(drain(hf))
    assert await kit.state_of(sixth) == "published"
    assert await hf.now() - began < 30
    assert {await kit.state_of(each) for each in blocked} == {"scheduled"}


# --- dead letters ---


async def failed(hf, clock, artist):
    """A post whose folder is not there: refused after its upload."""
    await artist.log_in()
    details = Details(title="Low sun", mature=False, ai_made=False, agreed=True, galleries=("LATER",))
    post_id = await artist.draft("Low sun", details=details)
    await scheduling.publish_now(artist.id, post_id)
    await clock.run(drain(hf))
    assert await kit.state_of(post_id) == "failed"
    return post_id, (await hf.dead.find())[0].id


async def test_an_operator_replays_a_dead_letter_and_it_goes_on(manual_clock, hf, simulator, ada):
    """P26: `holdfast dead replay`: from the recorded steps, so uploaded once and published once."""
    post_id, job_id = await failed(hf, manual_clock, ada)
    simulator.state.known("ada-arc").folders.append(Folder("LATER", "Later"))
    [told] = await hf.dead.replay([job_id], actor="ada@ops")
    assert told.outcome == "queued"
    await manual_clock.run(drain(hf))
    assert await kit.state_of(post_id) == "published"
    assert len(simulator.ledger.find("submitted")) == 1
    assert len(simulator.ledger.find("published")) == 1
    assert "Tried again by an operator" in [
        line.words for line in (await reading.story(ada.id, post_id)).history
    ]


async def test_what_its_artist_has_changed_is_not_replayed_behind_them(manual_clock, hf, simulator, ada):
    post_id, job_id = await failed(hf, manual_clock, ada)
    manual_clock.advance(5)
    await posts.edit(ada.id, post_id, {"galleries": [], "title": "High sun"})
    await hf.dead.replay([job_id], actor="ada@ops")
    await manual_clock.run(drain(hf))
    assert await kit.state_of(post_id) == "failed"
    assert simulator.ledger.find("published") == []


async def test_a_final_failure_is_one_mail_with_reason_and_link(manual_clock, hf, simulator, ada):
    """P26, P98."""
    with mailbox(hf) as box:
        post_id, _ = await failed(hf, manual_clock, ada)
        await manual_clock.run(drain(hf))
        [mail] = box.of("ada-arc@example.org")
        assert mail.subject == "Not published: Low sun"
        assert "not one of yours" in mail.text
        assert f"/posts/{post_id}" in mail.text
        await manual_clock.run(drain(hf))
        assert len(box.of("ada-arc@example.org")) == 1
