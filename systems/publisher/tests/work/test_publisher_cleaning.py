"""Clean-up: a week of rest, previews that stay, a kill in between, and strays of each kind that are found."""

from __future__ import annotations

import asyncio

import pytest
from publisher.core import settings
from publisher.desk import files, posts
from publisher.work import cleaning, strays

from holdfast import within
from holdfast.testing import drain

DAY = 86_400.0


async def rows(hf, sql, *values):
    async with hf.transaction() as tx:
        return await tx.fetch(sql, *values)


async def execute(hf, sql, *values):
    async with hf.transaction() as tx:
        return await tx.execute(sql, *values)


async def keys(hf, artist):
    """Of blobs that can be read."""
    with within(tenant=artist.id):
        return [blob.key for blob in await hf.blobs.list(state="kept")]


async def all_keys(hf, artist):
    """Also of what was deleted and is still there."""
    with within(tenant=artist.id):
        return [blob.key for blob in await hf.blobs.list()]


async def emptied(hf):
    """The folder of this process, in which other tests have left theirs."""
    place = hf.blobs.place()
    while found := await place.list(""):
        await place.delete([stat.name for stat in found])
    return place


async def with_preview(hf, artist, post_id):
    """Its preview, and the id of its file."""
    [(file_id,)] = await rows(hf, "SELECT id FROM files WHERE post_id = $1", post_id)
    name = f"previews/{file_id}.webp"
    with within(tenant=artist.id):
        await hf.blobs.put(name, b"small", content_type="image/webp")
    await execute(hf, "UPDATE files SET preview_key = $1 WHERE id = $2", name, file_id)
    return file_id


async def cleaned(hf):
    await cleaning.clean_up()
    await drain(hf, raise_dead=True)


async def publish(hf, post_id):
    await execute(
        hf,
        "UPDATE posts SET state = 'published', published_at = $1, itemid = 7 WHERE id = $2",
        await hf.now(),
        post_id,
    )


async def test_a_file_rests_for_a_week_and_is_gone_then(manual_clock, any_hf, ada):
    await ada.log_in()
    await emptied(any_hf)
    gone, stays = await ada.draft("Gone"), await ada.draft("Stays")
    file_id = await with_preview(any_hf, ada, gone)
    await files.delete(ada.id, file_id)
    manual_clock.advance(7 * DAY - 60)
    await cleaned(any_hf)
    await files.restore(ada.id, file_id)
    await files.delete(ada.id, file_id)
    manual_clock.advance(7 * DAY - 60)
    await cleaned(any_hf)
    assert len(await all_keys(any_hf, ada)) == 3
    manual_clock.advance(120)
    await cleaned(any_hf)
    assert await rows(any_hf, "SELECT post_id FROM files") == [(stays,)]
    assert await all_keys(any_hf, ada) == [f"posts/{stays}/0.png"]
    assert (await any_hf.blobs.check()).orphans == ()


async def test_what_a_copy_needs_stays(manual_clock, any_hf, ada):
    """The copy of a post has the same bytes; they go with the last of them."""
    await ada.log_in()
    post_id = await ada.draft("Twice")
    copy = await posts.duplicate(ada.id, post_id)
    await posts.delete(ada.id, post_id)
    manual_clock.advance(8 * DAY)
    await cleaned(any_hf)
    assert len(await rows(any_hf, "SELECT id FROM files")) == 1
    with within(tenant=ada.id):
        [(key,)] = await rows(any_hf, "SELECT key FROM files WHERE post_id = $1", copy)
        assert await any_hf.blobs.read(key)
    await posts.delete(ada.id, copy)
    manual_clock.advance(8 * DAY)
    await cleaned(any_hf)
    assert await rows(any_hf, "SELECT id FROM files") == []
    assert await all_keys(any_hf, ada) == []


async def test_published_files_are_thinned_to_their_preview(manual_clock, any_hf, ada):
    await ada.log_in()
    old, plain, draft = await ada.draft("Old"), await ada.draft("No preview yet"), await ada.draft("Draft")
    await with_preview(any_hf, ada, old)
    await with_preview(any_hf, ada, draft)
    await publish(any_hf, old)
    await publish(any_hf, plain)
    manual_clock.advance(settings.keep_files_days * DAY + 60)
    await cleaned(any_hf)
    found = dict(await rows(any_hf, "SELECT post_id, key FROM files"))
    assert (found[old], found[plain] is None, found[draft] is None) == (None, False, False)
    left = await all_keys(any_hf, ada)
    assert len(left) == 4
    assert f"posts/{old}/0.png" not in left
    assert (await files.usage(ada.id)).files == 2
    assert await rows(any_hf, "SELECT words FROM happenings WHERE kind = 'thinned'") == [
        ("Your file here was reduced to its preview",)
    ]
    await cleaned(any_hf)
    assert await all_keys(any_hf, ada) == left


async def test_nothing_is_thinned_when_the_setting_is_0(manual_clock, any_hf, ada, monkeypatch):
    await ada.log_in()
    post_id = await ada.draft()
    await with_preview(any_hf, ada, post_id)
    await publish(any_hf, post_id)
    object.__setattr__(settings, "keep_files_days", 0)
    try:
        manual_clock.advance(365 * DAY)
        await cleaned(any_hf)
    finally:
        object.__setattr__(settings, "keep_files_days", 7)
    assert (await rows(any_hf, "SELECT count(*) FROM files WHERE key IS NOT NULL")) == [(1,)]


@pytest.mark.parametrize("place", ["before the bytes", "between bytes and row", "after the row"])
async def test_killed_in_between_it_finishes_later(manual_clock, any_hf, ada, monkeypatch, place):
    await ada.log_in()
    for number in range(3):
        post_id = await ada.draft(f"Draft {number}")
        await with_preview(any_hf, ada, post_id)
        await posts.delete(ada.id, post_id)
    manual_clock.advance(8 * DAY)
    purge, count = any_hf.blobs.purge, []

    class Killed(BaseException):
        """As if the process ended: nothing of the program catches it."""

    async def dies(*names):
        count.append(names)
        if len(count) == 2 and place == "before the bytes":
            raise Killed
        gone = await purge(*names)
        if len(count) == 2 and place == "between bytes and row":
            raise Killed
        if len(count) == 3 and place == "after the row":
            raise Killed
        return gone

    monkeypatch.setattr(any_hf.blobs, "purge", dies)
    with pytest.raises(Killed), within(tenant=ada.id):
        for file_id, key, preview in await rows(any_hf, "SELECT id, key, preview_key FROM files ORDER BY id"):
            await cleaning._purge_one(ada.id, file_id, [key, preview])
    assert 0 < len(await rows(any_hf, "SELECT id FROM files")) < 3
    monkeypatch.setattr(any_hf.blobs, "purge", purge)
    await cleaned(any_hf)
    assert await rows(any_hf, "SELECT id FROM files") == []
    assert await all_keys(any_hf, ada) == []


async def test_two_at_a_time(any_hf, ada, simulator, monkeypatch):
    import publisher_kit as kit

    running, most = [], []

    async def slow(artist_id, file_id, own):
        running.append(artist_id)
        most.append(len(running))
        await asyncio.sleep(0.05)
        running.remove(artist_id)
        await execute(any_hf, "DELETE FROM files WHERE id = $1", file_id)

    monkeypatch.setattr(cleaning, "_purge_one", slow)
    for number in range(6):
        artist = await kit.Artist(simulator, f"artist-{number}").log_in()
        post_id = await artist.draft()
        await posts.delete(artist.id, post_id)
    await execute(any_hf, "UPDATE files SET deleted_at = 1")
    await cleaning.clean_up()
    async with (
        any_hf.worker(queues={"r2-cleanup": 6}, poll=0.05),
        any_hf.worker(queues={"r2-cleanup": 6}, poll=0.05),
    ):
        while await rows(any_hf, "SELECT id FROM files"):
            await asyncio.sleep(0.05)
    assert max(most) == 2


# --- strays ---


async def file_of(hf, post_id):
    return (await rows(hf, "SELECT id FROM files WHERE post_id = $1", post_id))[0][0]


async def test_strays_of_each_kind_are_found(manual_clock, any_hf, ada, caplog):
    """Three of each: files whose bytes are gone, blobs that nothing names, objects without a row."""
    await ada.log_in()
    place = await emptied(any_hf)
    await ada.draft("Stays")
    with within(tenant=ada.id):
        for number in range(3):
            await any_hf.blobs.put(f"files/unnamed-{number}.png", b"nobody's", content_type="image/png")
    await drain(any_hf)
    before = {stat.name for stat in await place.list("")}
    lost = sorted([await file_of(any_hf, await ada.draft(f"Draft {number}")) for number in range(3)])
    await drain(any_hf)
    await place.delete([stat.name for stat in await place.list("") if stat.name not in before])
    for number in range(3):
        await place.put(f"kept/strange/{number}.1", b"strange", content_type="image/png")
    manual_clock.advance(2 * DAY)
    handle = await strays.find.enqueue()
    await drain(any_hf, raise_dead=True)
    found = await handle.result(timeout=5)
    assert sorted(each.file_id for each in found.lost) == lost
    assert [each.key for each in found.unnamed] == [f"files/unnamed-{number}.png" for number in range(3)]
    assert [name for name in found.orphans if "strange/" in name] == [
        f"kept/strange/{number}.1" for number in range(3)
    ]
    assert "3 files whose bytes are gone, 3 blobs that nothing names, 3 objects without a row" in caplog.text
    assert await any_hf.alerts.over(strays.ALERT, strays.CAUSE), "an operator is told"
    assert len(await keys(any_hf, ada)) == 4, "nothing is removed"


async def test_without_strays_there_is_no_alert(manual_clock, any_hf, ada):
    await ada.log_in()
    await emptied(any_hf)
    post_id = await ada.draft()
    await with_preview(any_hf, ada, post_id)
    await drain(any_hf)
    manual_clock.advance(2 * DAY)
    handle = await strays.find.enqueue()
    await drain(any_hf, raise_dead=True)
    assert await handle.result(timeout=5) == strays.Strays([], [], [])
    assert not await any_hf.alerts.over(strays.ALERT, strays.CAUSE)


# --- notes ---


async def test_old_notes_go_and_the_history_of_works_stays(manual_clock, any_hf, ada, monkeypatch):
    monkeypatch.setattr(cleaning, "_LINES", 2)
    await ada.log_in()
    post_id = await ada.draft()
    now = await any_hf.now()
    for kind in ("refused", "moved", "published", "sent", "refused", "refused"):
        for at in (now - 401 * DAY, now - 399 * DAY):
            await execute(
                any_hf,
                "INSERT INTO happenings (post_id, at, kind, words, who) VALUES ($1, $2, $3, '', '')",
                post_id,
                at,
                kind,
            )
    for number, at in enumerate((now - 181 * DAY, now - 179 * DAY)):
        await execute(
            any_hf, "INSERT INTO notices (artist_id, cause, at) VALUES ($1, $2, $3)", ada.id, f"c{number}", at
        )
    handle = await cleaning.prune.enqueue()
    await drain(any_hf, raise_dead=True)
    assert await handle.result(timeout=5) == cleaning.Pruned(4, 1, 0)
    left = await rows(
        any_hf, "SELECT kind, count(*) FROM happenings WHERE kind <> 'made' GROUP BY kind ORDER BY kind"
    )
    assert left == [("moved", 1), ("published", 2), ("refused", 3), ("sent", 2)]
