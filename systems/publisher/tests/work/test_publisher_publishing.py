"""Publishing one post, at its time and once, whatever DeviantArt answers."""

from __future__ import annotations

import asyncio
import os

import publisher_kit as kit
import pytest
from publisher.desk import posts, reading, scheduling
from publisher.desk.refusals import Invalid, TooLate
from publisher.domain.posts import Details
from publisher_server import ENVIRONMENT

from holdfast import State as JobState
from holdfast.testing import drain


async def scheduled(hf, artist, title="Salt lantern", *, later=0.0):
    await artist.log_in()
    post_id = await artist.draft(title)
    await scheduling.schedule(artist.id, post_id, await hf.now() + later)
    return post_id


async def row_of(hf, post_id):
    async with hf.transaction() as tx:
        names = "state, url, deviationid, itemid, published_at, sent_at, reason"
        [row] = await tx.fetch(f"SELECT {names} FROM posts WHERE id = $1", post_id)
    return dict(zip(names.split(", "), row, strict=True))


async def count_of(hf, artist):
    async with hf.transaction() as tx:
        [(count,)] = await tx.fetch("SELECT post_count FROM artists WHERE id = $1", artist.id)
    return count


def published(simulator):
    return simulator.ledger.find("published")


async def test_a_due_post_is_published_once(manual_clock, any_hf, simulator, ada):
    post_id = await scheduled(any_hf, ada)
    await manual_clock.run(drain(any_hf, raise_dead=True))
    row = await row_of(any_hf, post_id)
    [entry] = published(simulator)
    assert (row["state"], row["deviationid"]) == ("published", entry["deviationid"])
    assert row["itemid"] == entry["itemid"] > 2**53
    assert row["url"].startswith("https://www.deviantart.com/ada-arc/art/salt-lantern")
    assert await count_of(any_hf, ada) == 1
    assert (await reading.story(ada.id, post_id)).receipt is not None


async def test_what_was_drafted_is_what_is_stored(manual_clock, hf, simulator, ada):
    await ada.log_in()
    details = Details(
        title="Copper tide", description="Oil on board", tags=("sea", "dusk"), mature=True, maturity="strict", comments=False,
        free_download=True, resolution=8, watermark=True, ai_made=False, no_ai=True, agreed=True,
    )  # fmt: skip
    post_id = await ada.draft("Copper tide", details=details)
    await scheduling.publish_now(ada.id, post_id)
    await manual_clock.run(drain(hf, raise_dead=True))
    [deviation] = simulator.state.deviations.values()
    assert deviation.item.fields["title"] == "Copper tide"
    assert deviation.item.fields["artist_comments"] == "Oil on board"
    told = deviation.fields
    assert told["tags"] == ["sea", "dusk"]
    assert (told["is_mature"], told["mature_level"], told["allow_comments"]) == ("1", "strict", "0")
    assert (told["allow_free_download"], told["display_resolution"], told["add_watermark"]) == ("1", "8", "1")
    assert (told["is_ai_generated"], told["noai"]) == ("0", "1")


async def test_what_is_missing_is_told_before_it_is_scheduled(manual_clock, hf, ada):
    await ada.log_in()
    post_id = await ada.draft("", details=Details())
    with pytest.raises(Invalid) as told:
        await scheduling.schedule(ada.id, post_id, await hf.now() + 60)
    assert {each.field for each in told.value.faults} == {"title", "mature", "ai_made", "agreed"}
    assert await kit.state_of(post_id) == "draft"


async def test_a_lost_answer_is_looked_up_and_never_sent_twice(manual_clock, hf, simulator, ada):
    """P15: the simulator has accepted it, and its answer is lost."""
    post_id = await scheduled(hf, ada)
    simulator.faults.put("stash/publish", "lost", times=1)
    await manual_clock.run(drain(hf))
    assert (await row_of(hf, post_id))["state"] == "published"
    assert len(published(simulator)) == 1
    assert await count_of(hf, ada) == 1


async def test_two_candidates_are_for_the_artist(manual_clock, hf, simulator, ada):
    post_id = await scheduled(hf, ada)
    simulator.faults.put("stash/publish", "lost", times=1)
    simulator.faults.put("gallery/all", "server-error")
    await manual_clock.run(drain(hf))
    assert (await row_of(hf, post_id))["state"] == "unknown"
    view = await reading.story(ada.id, post_id)
    assert view.waiting.kind == "unknown"
    assert view.waiting.next_try is not None
    [entry] = published(simulator)
    url = "https://www.deviantart.com/ada-arc/art/salt-lantern-1"
    await scheduling.decide(ada.id, post_id, done=True, deviationid=entry["deviationid"], url=url)
    await manual_clock.run(drain(hf, raise_dead=True))
    row = await row_of(hf, post_id)
    assert (row["state"], row["url"], row["deviationid"]) == ("published", url, entry["deviationid"])
    assert len(published(simulator)) == 1
    assert await count_of(hf, ada) == 1


async def test_an_artist_says_that_it_is_not_there(manual_clock, hf, simulator, ada):
    post_id = await scheduled(hf, ada)
    simulator.faults.put("stash/publish", "html-504", times=1)  # nothing was done, and nobody can know
    simulator.faults.put("gallery/all", "server-error")
    await manual_clock.run(drain(hf))
    assert (await row_of(hf, post_id))["state"] == "unknown"
    await scheduling.decide(ada.id, post_id, done=False)
    await manual_clock.run(drain(hf))
    assert (await row_of(hf, post_id))["state"] == "published"
    assert len(published(simulator)) == 1
    with pytest.raises(TooLate):
        await scheduling.decide(ada.id, post_id, done=True, url="https://www.deviantart.com/x")


async def test_unknown_settles_itself(manual_clock, hf, simulator, ada):
    """PN2: it is looked up again on a schedule."""
    post_id = await scheduled(hf, ada)
    simulator.faults.put("stash/publish", "lost", times=1)
    simulator.faults.put("gallery/all", "server-error", times=1)
    await manual_clock.run(drain(hf))
    assert (await row_of(hf, post_id))["state"] == "unknown"
    for _ in range(8):
        manual_clock.advance(60)
        await manual_clock.run(drain(hf))
    assert (await row_of(hf, post_id))["state"] == "published"
    assert len(published(simulator)) == 1


async def test_a_half_published_one_is_for_the_artist(manual_clock, hf, simulator, ada):
    post_id = await scheduled(hf, ada)
    simulator.faults.put("stash/publish", "half", times=1)
    for _ in range(20):
        await manual_clock.run(drain(hf))
        manual_clock.advance(600)
    assert (await row_of(hf, post_id))["state"] == "unknown"
    assert len(simulator.ledger.find("half_published")) == 1
    assert published(simulator) == []
    assert simulator.ledger.calls["stash/publish"] == 2
    await scheduling.decide(ada.id, post_id, done=False)  # it cannot be repaired there: as another item
    await manual_clock.run(drain(hf))
    assert await kit.state_of(post_id) == "published"
    assert len(published(simulator)) == 1


async def test_published_before_by_hand_counts_as_done(manual_clock, hf, simulator, ada):
    """P28: error 9."""
    post_id = await scheduled(hf, ada)
    simulator.faults.put("stash/publish", "server-error", times=1)
    simulator.faults.put("gallery/all", "server-error")
    await manual_clock.run(drain(hf))
    [item] = simulator.state.items.values()
    simulator.faults.clear()
    await by_hand(simulator, ada, item)
    await scheduling.decide(ada.id, post_id, done=False)
    manual_clock.advance(400)  # the breaker has opened meanwhile
    await manual_clock.run(drain(hf))
    manual_clock.advance(120)
    await manual_clock.run(drain(hf))
    row = await row_of(hf, post_id)
    assert (row["state"], row["deviationid"]) == ("published", item.deviationid)
    assert len(published(simulator)) == 1


async def by_hand(simulator, artist, item):
    """The artist publishes it in DeviantArt's own page."""
    import httpx2
    from publisher_server import SERVER

    grant = artist.grant(simulator)
    form = {"itemid": str(item.itemid), "agree_submission": "1", "agree_tos": "1"}
    async with httpx2.AsyncClient(
        headers={"User-Agent": "x", "Authorization": f"Bearer {grant.access}"}
    ) as client:
        answer = await client.post(f"{SERVER.url}/api/v1/oauth2/stash/publish", data=form)
    assert answer.json()["status"] == "success"


@pytest.mark.parametrize("kind", ["refused", "server-error", "status-error", "html-504", "blank"])
async def test_trouble_before_the_call_is_tried_again(manual_clock, hf, simulator, ada, kind):
    """P21, P27: an upload may be made again."""
    post_id = await scheduled(hf, ada)
    simulator.faults.put("stash/submit", kind, times=2)
    for _ in range(4):
        await manual_clock.run(drain(hf))
        manual_clock.advance(320)
    assert (await row_of(hf, post_id))["state"] == "published"
    assert len(published(simulator)) == 1
    assert await count_of(hf, ada) == 1


async def test_seven_runs_and_then_it_has_failed(manual_clock, hf, simulator, ada):
    post_id = await scheduled(hf, ada)
    simulator.faults.put("stash/submit", "server-error")
    for _ in range(30):
        await manual_clock.run(drain(hf))
        manual_clock.advance(400)
    row = await row_of(hf, post_id)
    assert row["state"] == "failed"
    assert simulator.ledger.calls["stash/submit"] == 7
    assert row["reason"]


async def test_a_failed_post_goes_on_from_where_it_was(manual_clock, hf, simulator, ada):
    """P26: uploaded once, published once."""
    from simulators.deviantart.state import Folder

    await ada.log_in()
    details = Details(title="Low sun", mature=False, ai_made=False, agreed=True, galleries=("LATER",))
    post_id = await ada.draft("Low sun", details=details)
    await scheduling.publish_now(ada.id, post_id)
    await manual_clock.run(drain(hf))
    assert await kit.state_of(post_id) == "failed"
    simulator.state.known("ada-arc").folders.append(Folder("LATER", "Later"))
    await scheduling.try_again(ada.id, post_id)
    await manual_clock.run(drain(hf))
    assert await kit.state_of(post_id) == "published"
    assert len(simulator.ledger.find("submitted")) == 1
    assert len(published(simulator)) == 1


async def test_a_failed_post_that_was_changed_begins_anew(manual_clock, hf, simulator, ada):
    await ada.log_in()
    details = Details(title="Low sun", mature=False, ai_made=False, agreed=True, galleries=("LATER",))
    post_id = await ada.draft("Low sun", details=details)
    await scheduling.publish_now(ada.id, post_id)
    await manual_clock.run(drain(hf))
    manual_clock.advance(5)
    await posts.edit(ada.id, post_id, {"galleries": [], "title": "High sun"})
    await scheduling.try_again(ada.id, post_id)
    await manual_clock.run(drain(hf))
    [entry] = published(simulator)
    assert entry["title"] == "High sun"
    assert await kit.state_of(post_id) == "published"


async def test_a_refusal_fails_at_once_and_says_what_to_do(manual_clock, hf, simulator, ada):
    await ada.log_in()
    details = Details(title="Low sun", mature=False, ai_made=False, agreed=True, galleries=("NOT-A-FOLDER",))
    post_id = await ada.draft("Low sun", details=details)
    await scheduling.publish_now(ada.id, post_id)
    await manual_clock.run(drain(hf))
    row = await row_of(hf, post_id)
    assert row["state"] == "failed"
    assert "not one of yours" in row["reason"]
    assert simulator.ledger.calls["stash/publish"] == 1


async def test_an_access_token_that_ends_is_renewed_and_the_attempt_goes_on(manual_clock, hf, simulator, ada):
    """P23."""
    post_id = await scheduled(hf, ada)
    simulator.faults.put("stash/publish", "expire-token", times=1)
    ran = await manual_clock.run(drain(hf, raise_dead=True))
    assert ran[-1].attempt == 1
    assert (await row_of(hf, post_id))["state"] == "published"
    assert len(simulator.ledger.find("refreshed")) == 1
    assert len(published(simulator)) == 1


async def test_a_dead_login_holds_all_posts_and_none_is_lost(manual_clock, hf, simulator, ada):
    """P24, D2: no call after it, one mail, and a new login lets all go on."""
    from publisher.work.access import settle_holds

    first = await scheduled(hf, ada)
    others = [await ada.draft(f"Study {number}") for number in range(5)]
    for number, post_id in enumerate(others):
        await scheduling.schedule(ada.id, post_id, await hf.now() + 60 * number)
    for grant in set(map(id, simulator.state.grants.values())):
        for each in simulator.state.grants.values():
            if id(each) == grant:
                each.is_dead = True
    await manual_clock.run(drain(hf))
    calls = dict(simulator.ledger.calls)
    manual_clock.advance(3600)
    await manual_clock.run(drain(hf))
    assert dict(simulator.ledger.calls) == calls, "a call was made after the login was known to be dead"
    assert {await kit.state_of(each) for each in [first, *others]} == {"scheduled"}
    view = await reading.story(ada.id, others[0])
    assert (view.waiting.kind, view.waiting.words) == ("held", "Log in at DeviantArt again.")

    grant = ada.grant(simulator)
    async with hf.transaction() as tx:
        await tx.execute(
            "UPDATE logins SET state = 'active', access = $1, refresh = $2, access_until = $3, version = version + 1 WHERE artist_id = $4",
            ada.sealed(grant.access, "access"), ada.sealed(grant.refresh, "refresh"), await hf.now() + 3600, ada.id,
        )  # fmt: skip
        await settle_holds(ada.id, tx)
    for _ in range(10):
        await manual_clock.run(drain(hf))
        manual_clock.advance(60)
    assert {await kit.state_of(each) for each in [first, *others]} == {"published"}
    assert len(published(simulator)) == 6


async def test_publish_only_to_the_stash(manual_clock, hf, simulator, ada):
    await ada.log_in()
    post_id = await ada.draft()
    async with hf.transaction() as tx:
        await tx.execute("UPDATE posts SET only_stash = $1 WHERE id = $2", True, post_id)
    await scheduling.publish_now(ada.id, post_id)
    await manual_clock.run(drain(hf, raise_dead=True))
    row = await row_of(hf, post_id)
    assert (row["state"], row["url"]) == ("published", None)
    assert published(simulator) == []


async def test_two_posts_of_one_name_are_told_apart(manual_clock, hf, simulator, ada):
    """What belongs to another post is no candidate."""
    first = await scheduled(hf, ada, "Low sun")
    await manual_clock.run(drain(hf, raise_dead=True))
    second = await ada.draft("Low sun")
    await scheduling.publish_now(ada.id, second)
    simulator.faults.put("stash/publish", "lost", times=1)
    await manual_clock.run(drain(hf))
    rows = [await row_of(hf, each) for each in (first, second)]
    assert [row["state"] for row in rows] == ["published", "published"]
    assert rows[0]["deviationid"] != rows[1]["deviationid"]
    assert len(published(simulator)) == 2


async def test_a_switch_lets_everything_rest(manual_clock, hf, simulator, ada):
    post_id = await scheduled(hf, ada)
    await scheduling.switch(ada.id, False)
    await manual_clock.run(drain(hf))
    assert await kit.state_of(post_id) == "scheduled"
    assert simulator.ledger.calls["stash/submit"] == 0
    await scheduling.switch(ada.id, True)
    await manual_clock.run(drain(hf))
    assert await kit.state_of(post_id) == "published"


async def test_only_one_job_whoever_asks(manual_clock, hf, ada):
    """P12: four ways at once."""
    await ada.log_in()
    post_id = await ada.draft()
    now = await hf.now()
    wishes = [scheduling.schedule(ada.id, post_id, now + 100) for _ in range(2)]
    wishes += [scheduling.publish_now(ada.id, post_id) for _ in range(2)]
    await asyncio.gather(*wishes, return_exceptions=True)
    assert len(await hf.jobs.find(unique=f"deviation:{post_id}")) == 1
    [job] = await hf.jobs.find(unique=f"deviation:{post_id}")
    assert job.state is JobState.QUEUED


def test_the_desk_alone_can_enqueue():
    """A process that has only the verbs, and not the whole program, knows what a worker gives the task."""
    import subprocess
    import sys

    code = "from publisher.desk import scheduling; print(scheduling.publish.bind('a post'))"
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert told.returncode == 0, told.stderr


async def test_a_time_between_two_microseconds_is_never_earlier(manual_clock, any_hf, ada):
    await ada.log_in()
    base = round(await any_hf.now()) + 60
    for number in range(20):  # dates are rounded to microseconds, half of them downwards
        post_id = await ada.draft(f"Study {number}")
        at = base + 0.1234560001 + number * 3e-7
        assert await scheduling.schedule(ada.id, post_id, at) >= at
        await scheduling.move(ada.id, post_id, at + 1e-7)
