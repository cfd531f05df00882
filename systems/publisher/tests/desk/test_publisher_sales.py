"""The sale queue: an entry once for each post, leases that are fenced, three tries, and a sheet that no spreadsheet runs."""

from __future__ import annotations

import asyncio
import csv
import io

import pytest
from publisher.desk import presets, sales
from publisher.desk.refusals import Invalid, NotHere, TooLate

from holdfast.testing import ManualClock


@pytest.fixture
def clock():
    with ManualClock() as clock:
        yield clock


async def published(hf, artist, title, *, automation=None, url="https://d.example/1"):
    post_id = await artist.draft(title)
    async with hf.transaction() as tx:
        await tx.execute(
            "UPDATE posts SET state = 'published', published_at = $1, itemid = 7, url = $2, automation_id = $3 WHERE id = $4",
            await hf.now(), url, automation, post_id,
        )  # fmt: skip
    return post_id


async def automation(hf, artist, preset_id):
    async with hf.transaction() as tx:
        await tx.execute(
            "INSERT INTO automations (id, artist_id, name, description, colour, position, is_on, selection, agreement, jitter_low, jitter_high, "
            "only_stash, preset_id, rules, defaults, looked_until, note, version, made_at) "
            "VALUES ('a1', $1, 'Sells', '', '', 0, $2, 'fifo', 'any', 0, 0, $3, $4, '[]', '{}', 0, '', 1, 0)",
            artist.id, True, False, preset_id,
        )  # fmt: skip
    return "a1"


@pytest.fixture
async def queue(any_hf, ada):
    """Three entries of Ada, the oldest first."""
    await ada.log_in()
    preset_id = await presets.make(ada.id, "Prints", 500, 900, is_default=True)
    posts = [await published(any_hf, ada, f"Print {number}") for number in range(3)]
    assert [each.ok for each in await sales.by_hand(ada.id, posts)] == [True] * 3
    return preset_id


async def test_an_automation_that_sells_adds_its_post_once(any_hf, ada):
    await ada.log_in()
    preset_id = await presets.make(ada.id, "Prints", 500, 90_000)
    post_id = await published(any_hf, ada, "Print", automation=await automation(any_hf, ada, preset_id))
    other = await published(any_hf, ada, "By hand")
    in_stash = await published(any_hf, ada, "Stash", automation="a1", url=None)
    async with any_hf.transaction() as tx:
        assert await sales.add_for(tx, post_id)
        assert not await sales.add_for(tx, post_id)
        assert not await sales.add_for(tx, other)
        assert not await sales.add_for(tx, in_stash)
    [entry] = await sales.listing(ada.id)
    assert (entry.post_id, entry.state, entry.preset_id) == (post_id, "pending", preset_id)
    assert 500 <= entry.price <= 90_000
    assert entry.price % 100 == 0


async def test_only_what_is_published_is_added_by_hand(any_hf, ada, queue):
    draft = await ada.draft("Draft")
    again = (await sales.listing(ada.id))[0].post_id
    found = await sales.by_hand(ada.id, [draft, again, "nobody's"])
    assert [(each.ok, each.words) for each in found] == [
        (False, "Only what is published on DeviantArt can be offered for sale."),
        (False, "It is in the sale queue already."),
        (False, "There is no such post."),
    ]
    with pytest.raises(Invalid, match="50 posts at a time"):
        await sales.by_hand(ada.id, [str(number) for number in range(51)])


async def test_without_a_usual_price_one_is_to_be_chosen(any_hf, ada):
    await ada.log_in()
    post_id = await published(any_hf, ada, "Print")
    with pytest.raises(Invalid) as wrong:
        await sales.by_hand(ada.id, [post_id])
    assert wrong.value.faults[0].field == "preset_id"
    with pytest.raises(NotHere):
        await sales.by_hand(ada.id, [post_id], "no such")


async def test_clients_get_each_entry_once_the_oldest_first(any_hf, ada, queue):
    found = await asyncio.gather(*(sales.next(ada.id, f"client {number}") for number in range(6)))
    given = [each for each in found if each is not None]
    assert len(given) == 3
    assert len({each.id for each in given}) == 3
    assert {each.state for each in given} == {"processing"}
    assert await sales.next(ada.id, "late") is None
    done = await sales.complete(ada.id, given[0].id, given[0].token)
    assert (done.state, done.ended_at is not None, done.leased_until) == ("completed", True, None)
    assert (await sales.complete(ada.id, given[0].id, given[0].token)).state == "completed"
    assert await sales.counts(ada.id) == {
        "pending": 0,
        "processing": 2,
        "completed": 1,
        "failed": 0,
        "skipped": 0,
    }


async def test_who_lost_the_lease_changes_nothing(clock, any_hf, ada, queue):
    first = await sales.next(ada.id, "slow")
    clock.advance(sales.LEASE + 1)
    second = await sales.next(ada.id, "quick")
    assert (second.id, second.client, second.attempts) == (first.id, "quick", 2)
    assert second.token > first.token
    with pytest.raises(TooLate, match="lease is over"):
        await sales.complete(ada.id, first.id, first.token)
    with pytest.raises(TooLate):
        await sales.fail(ada.id, first.id, first.token, "no")
    assert (await sales.complete(ada.id, second.id, second.token)).state == "completed"


async def test_after_three_tries_it_has_failed(clock, any_hf, ada, queue):
    first = await sales.next(ada.id, "tool")
    for attempt, after in ((1, "pending"), (2, "pending"), (3, "failed")):
        entry = first if attempt == 1 else await sales.next(ada.id, "tool")
        assert (entry.id, entry.attempts) == (first.id, attempt)
        ended = await sales.fail(ada.id, entry.id, entry.token, "The page was closed.")
        assert (ended.state, ended.error) == (after, "The page was closed.")
    assert (await sales.next(ada.id, "tool")).id != first.id
    await sales.again(ada.id, first.id)
    assert (await sales.listing(ada.id, state="pending"))[-1].attempts == 0


async def test_one_that_is_begun_three_times_and_never_ends_has_failed(clock, any_hf, ada, queue):
    for _ in range(3):
        entry = await sales.next(ada.id, "dies")
        clock.advance(sales.LEASE + 1)
    assert (await sales.next(ada.id, "dies")).id != entry.id
    [failed] = await sales.listing(ada.id, state="failed")
    assert (failed.id, failed.attempts, failed.error) == (
        entry.id,
        3,
        "It was begun three times, and never ended.",
    )


async def test_what_is_skipped_is_taken_from_its_holder(any_hf, ada, queue):
    entry = await sales.next(ada.id, "tool")
    await sales.skip(ada.id, entry.id)
    with pytest.raises(TooLate):
        await sales.complete(ada.id, entry.id, entry.token)
    with pytest.raises(TooLate, match="skipped"):
        await sales.skip(ada.id, entry.id)


async def test_pages_follow_each_other(clock, any_hf, ada, queue):
    seen, before = [], None
    while page := await sales.listing(ada.id, before=before, limit=2):
        seen += [each.id for each in page]
        before = page[-1].id
    assert len(seen) == len(set(seen)) == 3
    with pytest.raises(Invalid):
        await sales.listing(ada.id, state="sold")


async def test_what_is_another_artists_is_not_there(any_hf, ada, queue, simulator):
    entry = await sales.next(ada.id, "tool")
    for verb in (
        sales.complete("eve", entry.id, entry.token), sales.fail("eve", entry.id, entry.token, ""),
        sales.skip("eve", entry.id), sales.again("eve", entry.id), presets.delete("eve", queue),
        presets.change("eve", queue, "Mine", 100, 100), presets.get("eve", queue),
    ):  # fmt: skip
        with pytest.raises(NotHere):
            await verb
    assert await sales.next("eve", "tool") is None
    assert await sales.listing("eve") == []


async def test_a_sheet_has_no_formulas(any_hf, ada):
    await ada.log_in()
    await presets.make(ada.id, "Prints", 1250, 1250, is_default=True)
    await sales.by_hand(ada.id, [await published(any_hf, ada, "=1+1")])
    [head, row] = csv.reader(io.StringIO(await sales.as_csv(ada.id)))
    assert head == ["title", "url", "price in USD", "state", "tries", "error"]
    assert row == ["'=1+1", "https://d.example/1", "12.50", "pending", "0", ""]


async def test_a_client_says_who_it_is(any_hf, ada, queue):
    with pytest.raises(Invalid):
        await sales.next(ada.id, " ")


# --- prices ---


async def test_one_price_is_the_usual_one(any_hf, ada):
    await ada.log_in()
    first = await presets.make(ada.id, "Small", 500, 500, is_default=True)
    second = await presets.make(ada.id, "Large", 1_000, 2_000, is_default=True)
    assert [(each.id, each.is_default, each.words) for each in await presets.listing(ada.id)] == [
        (second, True, "USD 10.00 to 20.00"), (first, False, "USD 5.00"),
    ]  # fmt: skip
    await presets.change(ada.id, first, "Tiny", 100, 100, is_default=True)
    assert [each.name for each in await presets.listing(ada.id) if each.is_default] == ["Tiny"]
    await presets.delete(ada.id, first)
    with pytest.raises(NotHere):
        await presets.delete(ada.id, first)


@pytest.mark.parametrize(
    ("name", "low", "high", "field"),
    [
        ("", 500, 500, "name"), ("x" * 81, 500, 500, "name"), ("a\x00b", 500, 500, "name"), ("a\ud800", 500, 500, "name"),
        ("Prints", 99, 500, "low"), ("Prints", 500, 1_000_001, "high"), ("Prints", 500, 499, "high"), ("Taken", 500, 500, "name"),
    ],
)  # fmt: skip
async def test_each_wrong_field_of_a_price_is_told(any_hf, ada, name, low, high, field):
    await ada.log_in()
    await presets.make(ada.id, "Taken", 100, 100)
    with pytest.raises(Invalid) as wrong:
        await presets.make(ada.id, name, low, high)
    assert [each.field for each in wrong.value.faults] == [field]
    assert [each.name for each in await presets.listing(ada.id)] == ["Taken"]
