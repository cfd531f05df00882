"""`hf.blobs` on both stores: rows commit with the program's own, bytes follow their rows, and no key crosses its tenant."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from holdfast import Holdfast, within
from holdfast.blobs import (
    BlobExists,
    BlobKeyError,
    BlobMismatch,
    BlobMissing,
    BlobQuarantined,
    BlobSettings,
    BlobTooLarge,
    BlobUnavailable,
)
from holdfast.errors import UsageError
from holdfast.kernel.clock import now
from holdfast.testing import drain, fresh
from holdfast.testing.conformance.blob_kit import names, streamed
from holdfast.testing.conformance.blobs import TRICKS

DAY = 86_400


@pytest.fixture
async def hf(manual_clock, url, tmp_path):
    settings = BlobSettings(url=f"file:{tmp_path / 'blobs'}", most=50_000_000)
    async with fresh(Holdfast("sqlite:///never-made.db", blobs=settings), url) as opened:
        yield opened


async def objects(hf):
    """The areas in which objects are."""
    return [each.partition("/")[0] for each in await names(hf.blobs.place())]


async def test_a_blob_is_there_if_its_transaction_commits(hf):
    staged = await hf.blobs.stage(b"hello", content_type="image/png")
    with pytest.raises(ZeroDivisionError):
        async with hf.transaction() as tx:
            await hf.blobs.commit(staged, "posts/7/cover.png", tx=tx)
            raise ZeroDivisionError
    assert await hf.blobs.get("posts/7/cover.png") is None
    async with hf.transaction() as tx:
        blob = await hf.blobs.commit(staged, "posts/7/cover.png", tx=tx)
    assert (blob.size, blob.content_type, blob.sha256) == (
        5,
        "image/png",
        hashlib.sha256(b"hello").hexdigest(),
    )
    assert await hf.blobs.read("posts/7/cover.png") == b"hello", "before any job has run"
    assert await objects(hf) == ["staging"]
    await drain(hf)
    assert await objects(hf) == ["kept"]
    assert await hf.blobs.read("posts/7/cover.png", start=1, end=3) == b"el"
    assert await hf.blobs.get("posts/7/cover.png") == blob


async def test_a_session_is_a_transaction_too(hf):
    staged = await hf.blobs.stage(b"hello")
    async with hf.session() as session:
        await hf.blobs.commit(staged, "a", tx=session)
        assert await hf.blobs.get("a") is None or hf.store.__class__.__name__.startswith("Sqlite")
        await session.commit()
    assert (await hf.blobs.get("a")).size == 5


async def test_what_is_kept_under_a_key_never_changes(hf):
    await hf.blobs.put("a", b"first")
    with pytest.raises(BlobExists, match="'a' is taken"):
        await hf.blobs.put("a", b"second")
    staged = await hf.blobs.stage(b"third")
    await hf.blobs.commit(staged, "b")
    with pytest.raises(BlobExists, match="committed already"):
        await hf.blobs.commit(staged, "c")
    assert await hf.blobs.read("a") == b"first"
    assert (await hf.blobs.put(None, b"named by us")).key != (await hf.blobs.put(None, b"named by us")).key


async def test_no_key_crosses_its_tenant(hf):
    with within(tenant="ada"):
        await hf.blobs.put("a", b"ada's")
        upload = await hf.blobs.link_put(content_type="image/png", length=5)
        staged = await hf.blobs.stage(b"hers")
    with within(tenant="bob"):
        await hf.blobs.put("a", b"bob's")
        assert await hf.blobs.read("a") == b"bob's"
        assert [blob.tenant for blob in await hf.blobs.list()] == ["bob"]
        assert (await hf.blobs.usage()).number == 1
        for trick in (*TRICKS, "../ada/a", "ada/a", "/ada/a", "a/../../ada/a"):
            for verb in (hf.blobs.get, hf.blobs.read, hf.blobs.link_get, hf.blobs.delete, hf.blobs.restore):
                with pytest.raises((BlobKeyError, BlobMissing)):
                    assert not await verb(trick)
                    raise BlobMissing
        with pytest.raises(UsageError, match="another tenant"):
            await hf.blobs.commit(staged, "b")
        with pytest.raises(UsageError, match="another tenant"):
            await hf.blobs.discard(staged)
        for strange in (upload.id, f"../ada/{upload.id}", f"ada/{upload.id}"):
            with pytest.raises((BlobMissing, BlobKeyError)):
                await hf.blobs.receive(strange)
    assert await hf.blobs.get("a") is None, "nobody is no tenant's"
    with within(tenant="ada"):
        assert await hf.blobs.read("a") == b"ada's"
    for strange in ("-", "..", "a/b", "", "é"):
        with within(tenant=strange), pytest.raises(BlobKeyError, match="tenant"):
            await hf.blobs.list()


async def test_a_job_has_its_tenant(hf):
    seen = []

    @hf.task(tenant="{user}")
    async def keep(user: str) -> None:
        await hf.blobs.put("mine", user.encode())
        seen.append(await hf.blobs.read("mine"))

    await keep.enqueue("ada")
    await keep.enqueue("bob")
    await drain(hf)
    assert sorted(seen) == [b"ada", b"bob"]


async def test_settings_may_ask_for_a_tenant(url, tmp_path, manual_clock):
    settings = BlobSettings(url=f"file:{tmp_path / 'blobs'}", tenants=True)
    async with fresh(Holdfast("sqlite:///never-made.db", blobs=settings), url) as hf:
        with pytest.raises(UsageError, match="Whose blobs"):
            await hf.blobs.put("a", b"x")
        with within(tenant="ada"):
            await hf.blobs.put("a", b"x")


async def test_listing_in_pages(hf):
    for number in range(7):
        await hf.blobs.put(f"p/{number}", b"x")
    await hf.blobs.put("q", b"x")
    first = await hf.blobs.list("p/", limit=5)
    assert [blob.key for blob in first] == [f"p/{number}" for number in range(5)]
    assert [blob.key for blob in await hf.blobs.list("p/", after=first[-1].key)] == ["p/5", "p/6"]
    assert [blob.key for blob in await hf.blobs.list("p/1")] == ["p/1"]
    assert (await hf.blobs.usage("p/")).size == 7
    with pytest.raises(UsageError, match="no state of a blob"):
        await hf.blobs.list(state="lost")


async def test_a_deleted_blob_can_be_restored_until_it_is_purged(hf, manual_clock):
    await hf.blobs.put("a", b"x")
    await hf.blobs.put("b", b"y")
    await drain(hf)
    assert await hf.blobs.delete("a", "b", "nobody") == 2
    with pytest.raises(BlobMissing):
        await hf.blobs.read("a")
    with pytest.raises(BlobMissing):
        await hf.blobs.link_get("a")
    manual_clock.advance(6 * DAY)
    assert (await hf.blobs.sweep()).purged == 0
    assert await hf.blobs.restore("a")
    assert not await hf.blobs.restore("a")
    assert await hf.blobs.read("a") == b"x"
    manual_clock.advance(DAY + 1)
    assert (await hf.blobs.sweep()).purged == 1
    assert not await hf.blobs.restore("b")
    assert await hf.blobs.get("b") is None
    assert await objects(hf) == ["kept"]
    assert await hf.blobs.read("a") == b"x"
    await hf.blobs.put("b", b"anew")


async def test_a_deletion_belongs_to_its_transaction(hf):
    await hf.blobs.put("a", b"x")
    with pytest.raises(ZeroDivisionError):
        async with hf.transaction() as tx:
            assert await hf.blobs.delete("a", tx=tx) == 1
            raise ZeroDivisionError
    assert await hf.blobs.read("a") == b"x"


async def test_what_is_quarantined_is_read_by_nobody(hf):
    await hf.blobs.put("a", b"virus")
    await drain(hf)
    link = await hf.blobs.link_get("a")
    assert await hf.blobs.quarantine("a", "a virus was found")
    assert not await hf.blobs.quarantine("a", "again")
    for read in (hf.blobs.read, hf.blobs.open, hf.blobs.link_get):
        with pytest.raises(BlobQuarantined, match="a virus was found"):
            await read("a")
    await drain(hf)
    assert await objects(hf) == ["quarantine"], "links that were given before lead nowhere"
    assert "/kept/" in link.url
    assert [blob.reason for blob in await hf.blobs.list(state="quarantined")] == ["a virus was found"]
    assert await hf.blobs.release("a", "it was none")
    await drain(hf)
    assert await hf.blobs.read("a") == b"virus"
    assert (await hf.blobs.link_get("a")).url != link.url


async def test_staged_bytes_that_nobody_commits_are_removed(hf, manual_clock):
    lost, late = await hf.blobs.stage(b"lost"), await hf.blobs.stage(b"late")
    await hf.blobs.put("a", b"kept")
    gone = await hf.blobs.stage(b"discarded")
    await hf.blobs.discard(gone)
    assert await objects(hf) == ["staging"] * 3
    manual_clock.advance(DAY / 2 + 1)
    with pytest.raises(UsageError, match="too long ago"):
        await hf.blobs.commit(late, "late")
    manual_clock.advance(DAY / 2)
    swept = await hf.blobs.sweep()
    assert (swept.unused, swept.settled) == (2, 1), "the job that was never run is made good for"
    assert await objects(hf) == ["kept"]
    assert await hf.blobs.read("a") == b"kept"
    assert lost.object not in await names(hf.blobs.place())


async def test_the_sweep_is_a_job_of_every_hour(hf, manual_clock):
    await hf.blobs.stage(b"lost")
    (schedule,) = [
        each for each in hf._inside.registry.schedules.values() if each.name == "holdfast.blobs.sweep"
    ]
    manual_clock.advance(DAY + 1)
    await schedule.task.enqueue()
    await drain(hf)
    assert await objects(hf) == []


async def test_what_a_client_has_sent_is_what_counts(hf, manual_clock):
    upload = await hf.blobs.link_put(content_type="image/png", length=5)
    with pytest.raises(BlobMissing):
        await hf.blobs.receive(upload.id)
    place, sent = hf.blobs.place(), f"incoming/-/{upload.id}"
    await place.put(sent, b"first", content_type="image/png")
    staged = await hf.blobs.receive(upload.id, content_type="image/png", length=5)
    await place.put(sent, b"other", content_type="image/png")
    await hf.blobs.commit(staged, "a")
    await drain(hf)
    assert await hf.blobs.read("a") == b"first"
    assert staged.sha256 == hashlib.sha256(b"first").hexdigest()
    for announced in ({"length": 6}, {"content_type": "text/html"}):
        with pytest.raises(BlobMismatch, match=r"was|were"):
            await hf.blobs.receive(upload.id, **announced)
    manual_clock.advance(DAY + 1)
    await hf.blobs.sweep()
    assert await objects(hf) == ["kept"]
    with pytest.raises(UsageError, match="length"):
        await hf.blobs.link_put(content_type="image/png", length=50_000_001)
    with pytest.raises(UsageError, match="expires"):
        await hf.blobs.link_put(content_type="image/png", length=1, expires=901)


async def test_limits_are_those_of_the_settings(hf):
    with pytest.raises(BlobTooLarge):
        await hf.blobs.stage(streamed(50_000_001))
    with pytest.raises(BlobTooLarge):
        await hf.blobs.stage(b"12345", most=4)
    assert await names(hf.blobs.place()) == []


async def test_what_was_lost_behind_our_back_is_found_and_shown(hf, manual_clock, notes):
    for number in range(3):
        await hf.blobs.put(f"lost/{number}", b"x")
        await hf.blobs.put(f"well/{number}", b"x")
    await drain(hf)
    place = hf.blobs.place()
    rows = await hf.store.blobs.find(prefix="-/lost/")
    await place.delete([row.object for row in rows])
    for number in range(3):
        await place.put(f"kept/-/strange{number}.1", b"12345")
    manual_clock.advance(DAY + 1)
    checked = await hf.blobs.check()
    assert [blob.key for blob in checked.missing] == ["lost/0", "lost/1", "lost/2"]
    assert (len(checked.orphans), checked.orphans_size, checked.rows, checked.objects) == (3, 15, 6, 6)
    assert [name for name, _ in notes].count("blob.lost") == 3
    assert [blob.state for blob in await hf.blobs.list("lost/")] == ["missing"] * 3
    assert len(await names(place)) == 6, "they stay: they may be newer than a database that was restored"
    assert len((await hf.blobs.check(remove_orphans=True)).orphans) == 3
    assert len(await names(place)) == 3
    assert (await hf.blobs.check()).missing == ()


async def test_a_promotion_whose_object_is_gone_is_dead_and_the_blob_is_missing(hf):
    await hf.blobs.put("a", b"x")
    await hf.blobs.place().delete(await names(hf.blobs.place()))
    await drain(hf)
    assert (await hf.blobs.get("a")).state == "missing"
    with pytest.raises(BlobMissing, match="was lost"):
        await hf.blobs.read("a")
    (dead,) = await hf.dead.find()
    assert "somebody else has removed it" in str(dead)


async def test_a_place_that_does_not_answer_is_asked_again(hf, monkeypatch, manual_clock):
    place, tries = hf.blobs.place(), []
    whole = place.put

    async def shaky(*given, **named):
        tries.append(now())
        if len(tries) < 3:
            raise BlobUnavailable("busy")
        return await whole(*given, **named)

    monkeypatch.setattr(place, "put", shaky)
    work = asyncio.ensure_future(hf.blobs.stage(b"x"))
    while not work.done():
        await asyncio.sleep(0.01)
        manual_clock.advance(5)
    assert (await work).size == 1
    assert len(tries) == 3
    tries.clear()
    with pytest.raises(BlobUnavailable):
        await hf.blobs.stage(streamed(5))
    assert len(tries) == 1, "a stream cannot be read twice"


async def test_a_slow_stream_is_no_place_that_does_not_answer(url, tmp_path, monkeypatch):
    """A client takes its time, and a copy as long as the object is large: only what moves no bytes has to be quick."""
    settings = BlobSettings(url=f"file:{tmp_path / 'blobs'}", timeout=0.2, attempts=2)
    async with Holdfast(url, blobs=settings) as hf:

        async def slowly():
            for _ in range(4):
                await asyncio.sleep(0.1)
                yield b"x" * 1000

        blob = await hf.blobs.put("slow", slowly())
        assert blob.size == 4000
        place, stat = hf.blobs.place(), hf.blobs.place().stat
        whole, asked = place.copy, []

        async def copied(*names):
            await asyncio.sleep(0.4)
            await whole(*names)

        async def hangs(name):
            asked.append(name)
            await asyncio.Event().wait()

        monkeypatch.setattr(place, "copy", copied)
        async with hf.worker():
            async with asyncio.timeout(10):
                while not [each async for each in kept_in(place)]:
                    await asyncio.sleep(0.02)
        monkeypatch.setattr(place, "stat", hangs)
        with pytest.raises(BlobUnavailable, match=r"within 0\.2 s"):
            await hf.blobs.check()
        assert len(asked) == 2, "it is asked again"
        monkeypatch.setattr(place, "stat", stat)


async def kept_in(place):
    for each in await place.list("kept"):
        yield each


async def test_a_program_without_a_place_says_what_to_do(tmp_path):
    async with Holdfast(f"sqlite:///{tmp_path / 'x.db'}") as hf:
        with pytest.raises(UsageError, match="HOLDFAST_BLOBS_URL"):
            await hf.blobs.put("a", b"x")


def test_sync_code(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}", blobs=f"file:{tmp_path / 'blobs'}")
    staged = hf.blocking.blobs.stage([b"he", b"llo"])
    with hf.blocking.transaction() as tx:
        hf.blocking.blobs.commit(staged, "a", tx=tx)
    assert hf.blocking.blobs.read("a") == b"hello"
    with within(tenant="ada"):
        assert hf.blocking.blobs.list() == []
    hf.blocking.close()


async def test_what_is_purged_is_gone_at_once(hf):
    for key in ("kept", "deleted", "held", "other"):
        await hf.blobs.put(key, key.encode())
    await drain(hf)
    await hf.blobs.delete("deleted")
    await hf.blobs.quarantine("held", "it is looked at")
    await hf.blobs.put("unmoved", b"its job has not run")
    assert await hf.blobs.purge("kept", "deleted", "held", "unmoved", "never") == 4
    assert [blob.key for blob in await hf.blobs.list()] == ["other"]
    assert not await hf.blobs.restore("deleted")
    await drain(hf)
    assert await objects(hf) == ["kept"], "only the object of the other is left"
    assert await hf.blobs.read("other") == b"other"
    assert await hf.blobs.purge("kept") == 0
    await hf.blobs.put("kept", b"the key is free")
