"""Galleries and browsing: few calls, an age that is told, an old copy while DeviantArt is limited, and folders that change."""

from __future__ import annotations

import asyncio

import publisher_kit as kit
import pytest
from publisher.desk import galleries
from publisher.desk.refusals import Invalid, TooLate, TooSoon
from publisher.work import looking

from holdfast.errors import StoreUnavailable
from holdfast.guards import GuardLook
from simulators.deviantart.state import Deviation, Item

HOUR = 3_600.0


@pytest.fixture
def clock(manual_clock, monkeypatch):
    """A page that waits for its turn lets time pass."""

    async def pause(seconds):
        manual_clock.advance(seconds)

    monkeypatch.setattr(looking, "_pause", pause)
    return manual_clock


def calls(simulator, endpoint):
    return simulator.ledger.calls.get(endpoint, 0)


async def behind(hf):
    """Until what is loaded behind the caller is there."""
    while hf.cache.flights._all:
        await asyncio.sleep(0.01)


async def test_a_copy_is_shown_with_its_age_and_renewed_behind(clock, any_hf, simulator, ada):
    """Up to five minutes as it is; up to two hours at once, and one call behind; later it is loaded."""
    await ada.log_in()
    first = await galleries.folders(ada.id)
    assert (first.age, first.is_fresh, [each.name for each in first.value]) == (
        0.0,
        True,
        ["Featured", "Sketches", "Commissions"],
    )
    before = calls(simulator, "gallery/folders")
    clock.advance(240)
    young = await galleries.folders(ada.id)
    assert (round(young.age), young.is_fresh) == (240, True)
    assert calls(simulator, "gallery/folders") == before == 1
    clock.advance(150)
    old = await galleries.folders(ada.id)
    assert (round(old.age), old.is_fresh, old.value) == (390, False, first.value)
    await behind(any_hf)
    assert calls(simulator, "gallery/folders") == 2
    assert (await galleries.folders(ada.id)).age < 10
    clock.advance(3 * HOUR)
    assert (await galleries.folders(ada.id)).age == 0.0
    assert calls(simulator, "gallery/folders") == 3


async def test_a_hundred_readers_are_one_call(any_hf, simulator, ada):
    await ada.log_in()
    found = await asyncio.gather(*(galleries.folders(ada.id) for _ in range(100)))
    assert {len(each.value) for each in found} == {3}
    assert calls(simulator, "gallery/folders") == 1


async def test_what_is_the_same_for_all_is_asked_for_once(any_hf, simulator, ada):
    await ada.log_in()
    other = await kit.Artist(simulator, "bea-brush").log_in()
    found = [
        await galleries.tagged(artist.id, text) for artist, text in ((ada, "#Ink Wash"), (other, "ink_wash"))
    ]
    assert found[0].value == found[1].value
    assert calls(simulator, "browse/tags") == 1
    assert (await galleries.home(ada.id)).value == (await galleries.home(other.id)).value
    assert calls(simulator, "browse/home") == 2, "what is recommended to one is no other's"


async def test_each_kind_of_browsing(any_hf, simulator, ada):
    await ada.log_in()
    assert len((await galleries.daily(ada.id, "2026-11-19")).value.results) == 12
    first = (await galleries.tagged(ada.id, "ink")).value
    second = (await galleries.tagged(ada.id, "ink", first.next_offset)).value
    assert first.results[0].deviationid != second.results[0].deviationid
    assert len((await galleries.on_topic(ada.id, "digital-art")).value.results) == 24
    assert [each.canonical_name for each in (await galleries.topics(ada.id)).value][:2] == [
        "digital-art",
        "photography",
    ]
    assert (await galleries.completions(ada.id, "#Fo")).value == ["fox"]
    assert (await galleries.completions(ada.id, "f")).value == []
    assert calls(simulator, "browse/tags/search") == 1


async def test_a_refresh_is_given_a_few_times_and_then_told_when(clock, any_hf, simulator, ada):
    await ada.log_in()
    refused = []
    for _ in range(20):
        try:
            shown = await clock.run(galleries.folders(ada.id, refresh=True))
            assert shown.age == 0.0
        except TooSoon as refusal:
            refused.append(refusal.seconds)
    assert calls(simulator, "gallery/folders") == 20 - len(refused)
    assert 1 <= calls(simulator, "gallery/folders") <= galleries.REFRESHES
    assert all(0 < seconds <= galleries.A_MINUTE * galleries.REFRESHES for seconds in refused)
    other = await kit.Artist(simulator, "bea-brush").log_in()
    assert (await clock.run(galleries.folders(other.id, refresh=True))).is_fresh, (
        "it is each artist's own limit"
    )
    clock.advance(refused[-1] + 1)
    assert (await clock.run(galleries.folders(ada.id, refresh=True))).is_fresh


async def test_an_old_copy_is_served_while_deviantart_limits(clock, any_hf, simulator, ada, monkeypatch):
    await ada.log_in()
    first = await clock.run(galleries.folders(ada.id))
    clock.advance(600)
    simulator.faults.put("gallery/folders", "user-429", seconds=1800)
    assert (await clock.run(galleries.folders(ada.id))).value == first.value
    await clock.run(behind(any_hf))
    shown = await clock.run(galleries.folders(ada.id, refresh=True))
    assert (shown.value, shown.is_fresh) == (first.value, False)
    assert 600 <= shown.age < 700
    until = await any_hf.now() + 1800

    async def limited(_name, key):
        assert key == f"artist:{ada.id}"
        return GuardLook(name="deviantart", key=key, paused_until=until)

    with monkeypatch.context() as patched:
        patched.setattr(any_hf.guards, "look", limited)
        assert (await clock.run(galleries.folders(ada.id))).limited_until == until
    clock.advance(2 * HOUR)
    with pytest.raises(TooSoon, match="DeviantArt limits us") as refusal:
        await clock.run(galleries.folders(ada.id))
    assert refusal.value.seconds >= 1


async def test_a_server_that_fails_is_told_and_an_old_copy_served(clock, any_hf, simulator, ada):
    await ada.log_in()
    await clock.run(galleries.contents(ada.id))
    simulator.faults.put("*", "server-error")
    with pytest.raises(TooSoon, match="no clear answer"):
        await clock.run(galleries.contents(ada.id, "all", 24))
    clock.advance(1_000)
    shown = await clock.run(galleries.contents(ada.id))
    assert (shown.is_fresh, 1_000 <= shown.age < 1_100) == (False, True)


async def test_folders_that_are_made_and_ordered_are_seen(any_hf, simulator, ada):
    await ada.log_in()
    await galleries.folders(ada.id)
    made = await galleries.create_folder(ada.id, " Inks ")
    assert made.name == "Inks"
    assert [each.name for each in (await galleries.folders(ada.id)).value] == [
        "Featured",
        "Sketches",
        "Commissions",
        "Inks",
    ]
    await galleries.order_folder(ada.id, made.folderid, 0)
    assert [each.name for each in (await galleries.folders(ada.id)).value] == [
        "Inks",
        "Featured",
        "Sketches",
        "Commissions",
    ]


def in_gallery(simulator, artist, folder):
    """A deviation that was published there; its id."""
    who = simulator.state.known(artist.name)
    item = Item(7, who, "", 1, {"title": "Salt lantern"}, "", 1, "lantern.png", 0.0, "D-7")
    simulator.state.deviations["D-7"] = Deviation("D-7", who, item, {}, 1_700_000_000.0, [folder.folderid])
    return "D-7"


async def test_deviations_are_moved(any_hf, simulator, ada):
    await ada.log_in()
    made = await galleries.create_folder(ada.id, "Inks")
    [featured] = [each for each in (await galleries.folders(ada.id)).value if each.name == "Featured"]
    deviation = in_gallery(simulator, ada, featured)
    assert [
        each.deviationid for each in (await galleries.contents(ada.id, featured.folderid)).value.results
    ] == [deviation]
    await galleries.move(ada.id, featured.folderid, made.folderid, [deviation])
    assert (await galleries.contents(ada.id, featured.folderid)).value.results == []
    assert [each.deviationid for each in (await galleries.contents(ada.id, made.folderid)).value.results] == [
        deviation
    ]


async def test_a_refusal_of_deviantart_is_told_with_its_reason(any_hf, simulator, ada):
    await ada.log_in()
    with pytest.raises(Invalid, match="The folder does not exist"):
        await galleries.order_folder(ada.id, "0000-0000", 1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda who: galleries.contents(who, "../user/whoami"), lambda who: galleries.contents(who, "all", -1),
        lambda who: galleries.tagged(who, "#!"), lambda who: galleries.daily(who, "yesterday"), lambda who: galleries.on_topic(who, "a b"),
        lambda who: galleries.create_folder(who, ""), lambda who: galleries.create_folder(who, "x" * 51), lambda who: galleries.create_folder(who, "a\x00"),
        lambda who: galleries.order_folder(who, "f", -1), lambda who: galleries.move(who, "a", "a", ["d"]), lambda who: galleries.move(who, "a", "b", []),
        lambda who: galleries.move(who, "a", "b", ["d"] * 25), lambda who: galleries.move(who, "a", "b", ["d/e"]), lambda who: galleries.tagged(who, "a" * 51),
    ],
)  # fmt: skip
async def test_what_cannot_be_is_not_asked(hf, simulator, ada, wrong):
    await ada.log_in()
    with pytest.raises(Invalid):
        await wrong(ada.id)
    assert not simulator.ledger.calls


async def test_without_a_login_it_is_asked_for(any_hf, simulator, ada):
    await ada.log_in()
    async with any_hf.transaction() as tx:
        await tx.execute("UPDATE logins SET state = 'needs_login'")
    with pytest.raises(TooLate) as refusal:
        await galleries.folders(ada.id)
    assert refusal.value.state == "needs_login"


async def test_a_cache_that_is_down_is_a_miss(hf, simulator, ada, monkeypatch):
    await ada.log_in()
    await galleries.folders(ada.id)

    async def down(*_args, **_named):
        raise StoreUnavailable("gone")

    for verb in ("get", "begin", "put", "abandon"):
        monkeypatch.setattr(hf.store.cache, verb, down, raising=True)
    shown = await galleries.folders(ada.id)
    assert (shown.age, len(shown.value)) == (0.0, 3)
