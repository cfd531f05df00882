"""Automations at the desk: what is wrong is said of its field, a trial is what will be, and nobody else's are there."""

from __future__ import annotations

import pytest
from publisher.core import PUBLISHING
from publisher.desk import automations, presets
from publisher.desk.refusals import Changed, Invalid, NotHere
from publisher.work import automating

from holdfast.testing import ManualClock, drain

HOURLY = {"kind": "interval", "minutes": 60}
MORNING = {"kind": "fixed_time", "clock": "09:00"}


@pytest.fixture
def clock():
    with ManualClock() as clock:
        yield clock


@pytest.fixture
async def artist(clock, any_hf, ada):
    await any_hf.queues.pause(PUBLISHING)
    return await ada.log_in()


async def test_what_is_not_said_has_its_usual_value(artist):
    automation_id = await automations.make(artist.id, {"name": " Mornings ", "rules": [MORNING]})
    found = await automations.get(artist.id, automation_id)
    assert (found.wishes.name, found.wishes.selection, found.wishes.jitter_high, found.is_on) == (
        "Mornings",
        "fifo",
        300,
        False,
    )
    assert found.wishes.rules[0].weekdays == (0, 1, 2, 3, 4, 5, 6)
    assert found.next_run is None


async def test_it_needs_a_rule_to_be_on(artist):
    automation_id = await automations.make(artist.id, {"rules": [{**HOURLY, "is_on": False}]})
    with pytest.raises(Invalid, match="Add a rule that is on"):
        await automations.toggle(artist.id, automation_id, is_on=True)
    await automations.change(artist.id, automation_id, {"rules": [HOURLY]})
    await automations.toggle(artist.id, automation_id, is_on=True)
    assert (await automations.get(artist.id, automation_id)).is_on
    with pytest.raises(Invalid, match="Switch it off first"):
        await automations.change(artist.id, automation_id, {"rules": []})


async def test_the_next_run_is_shown(clock, any_hf, artist):
    automation_id = await automations.make(artist.id, {"rules": [HOURLY]})
    assert await automations.next_run(artist.id, automation_id) is None
    begun = await any_hf.now() // 60 * 60
    await automations.toggle(artist.id, automation_id, is_on=True)
    assert await automations.next_run(artist.id, automation_id) == begun + 3600
    clock.advance(3 * 3600)
    assert await automations.next_run(artist.id, automation_id) == begun + 4 * 3600


async def test_rules_that_never_come_true_together_have_no_next_run(artist):
    rules = [{**MORNING, "weekdays": [0]}, {"kind": "daily_quota", "posts": 1, "weekdays": [1]}]
    automation_id = await automations.make(artist.id, {"rules": rules, "agreement": "all"})
    await automations.toggle(artist.id, automation_id, is_on=True)
    assert await automations.next_run(artist.id, automation_id) is None
    assert (
        await automations.trial(artist.id, automation_id)
    ).words == "Its rules do not come true together in the next two months."


async def test_an_interval_goes_on_when_something_else_is_changed(clock, artist):
    automation_id = await automations.make(artist.id, {"rules": [HOURLY]})
    since = (await automations.get(artist.id, automation_id)).wishes.rules[0].since
    clock.advance(1_800)
    changed = await automations.change(
        artist.id, automation_id, {"rules": [HOURLY, MORNING], "colour": "#a12c6c"}
    )
    assert changed.wishes.rules[0].since == since
    changed = await automations.change(artist.id, automation_id, {"rules": [{**HOURLY, "minutes": 30}]})
    assert changed.wishes.rules[0].since > since


async def test_who_changes_what_another_has_changed_is_told(artist):
    automation_id = await automations.make(artist.id, {"rules": [HOURLY]})
    read = await automations.get(artist.id, automation_id)
    await automations.change(artist.id, automation_id, {"name": "One"}, read.version)
    with pytest.raises(Changed):
        await automations.change(artist.id, automation_id, {"name": "Two"}, read.version)
    assert (await automations.get(artist.id, automation_id)).wishes.name == "One"


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"name": ""}, "name"), ({"name": "x" * 81}, "name"), ({"name": 7}, "name"), ({"name": "a\x00"}, "name"),
        ({"nme": "a"}, "nme"), ({"colour": "red"}, "colour"), ({"selection": "best"}, "selection"), ({"agreement": "some"}, "agreement"),
        ({"jitter_low": -1}, "jitter_low"), ({"jitter_high": 3601}, "jitter_high"), ({"jitter_low": 301}, "jitter_high"),
        ({"jitter_high": "300"}, "jitter_high"), ({"only_stash": 1}, "only_stash"), ({"preset_id": "none of mine"}, "preset_id"),
        ({"description": "x" * 2001}, "description"), ({"rules": [MORNING] * 21}, "rules"), ({"rules": [{"kind": "weekly"}]}, "rules[0].kind"),
        ({"rules": [{**MORNING, "clock": "24:00"}]}, "rules[0].clock"), ({"rules": [HOURLY, {**MORNING, "clock": "9:00"}]}, "rules[1].clock"),
        ({"rules": [{**MORNING, "weekdays": []}]}, "rules[0].weekdays"), ({"rules": [{**MORNING, "weekdays": [7]}]}, "rules[0].weekdays"),
        ({"rules": [{**MORNING, "colour": 1}]}, "rules[0]"), ({"rules": [{**HOURLY, "minutes": 4}]}, "rules[0].minutes"),
        ({"rules": [{**HOURLY, "minutes": 10_081}]}, "rules[0].minutes"), ({"rules": [{**HOURLY, "posts": 101}]}, "rules[0].posts"),
        ({"rules": [{**HOURLY, "since": -5.0}]}, "rules[0].since"), ({"rules": [{"kind": "daily_quota", "posts": 0}]}, "rules[0].posts"),
        ({"rules": [{"kind": "daily_quota", "posts": 1.5}]}, "rules[0].posts"), ({"rules": "daily"}, "rules"),
        ({"defaults": {"title": {"value": "A"}}}, "defaults.title"), ({"defaults": {"mature": {"value": None}}}, "defaults.mature"),
        ({"defaults": {"mature": {"value": "no"}}}, "defaults.mature"), ({"defaults": {"mature": {"value": True, "when": "never"}}}, "defaults[...].when"),
        ({"defaults": {"tags": {"value": [f"t{number}" for number in range(31)]}}}, "defaults.tags"),
        ({"defaults": {"resolution": {"value": 9}}}, "defaults.resolution"), ({"defaults": {"maturity": {"value": "very"}}}, "defaults.maturity"),
        ({"defaults": {"galleries": {"value": ["g"] * 11}}}, "defaults.galleries"), ({"defaults": {"license": {"value": {"modify": "perhaps"}}}}, "defaults.license.modify"),
        ({"defaults": {"description": {"value": "x" * 65_001}}}, "defaults.description"),
    ],
)  # fmt: skip
async def test_each_wrong_field_is_told(hf, ada, told, field):
    await ada.log_in()
    with pytest.raises(Invalid) as wrong:
        await automations.make(ada.id, told)
    assert [each.field for each in wrong.value.faults] == [field]
    assert all(each.words.strip() and "`" not in each.words for each in wrong.value.faults)
    assert await automations.listing(ada.id) == []


async def test_several_wrong_fields_are_told_at_once(hf, ada):
    await ada.log_in()
    with pytest.raises(Invalid) as wrong:
        await automations.make(
            ada.id, {"name": "", "colour": "red", "rules": [{**HOURLY, "minutes": 1, "posts": 0}]}
        )
    assert [each.field for each in wrong.value.faults] == [
        "name",
        "colour",
        "rules[0].minutes",
        "rules[0].posts",
    ]


async def test_a_copy_is_off_and_last(artist):
    preset_id = await presets.make(artist.id, "Prints", 500, 500)
    told = {
        "name": "Long " * 15,
        "rules": [HOURLY],
        "preset_id": preset_id,
        "defaults": {"tags": {"value": ["#a b"]}},
    }
    first = await automations.make(artist.id, told)
    await automations.toggle(artist.id, first, is_on=True)
    copy = await automations.duplicate(artist.id, first)
    found = await automations.get(artist.id, copy)
    assert (found.is_on, found.position, found.wishes.preset_id) == (False, 1, preset_id)
    assert found.wishes.name.endswith(" (copy)")
    assert len(found.wishes.name) <= 80
    assert found.wishes.defaults["tags"].value == ["a_b"]
    await presets.delete(artist.id, preset_id)
    assert (await automations.get(artist.id, copy)).wishes.preset_id is None


async def test_their_order_is_their_artists(artist):
    one, two, three = [await automations.make(artist.id, {"name": name}) for name in ("One", "Two", "Three")]
    await automations.reorder(artist.id, [three, one])
    assert [each.id for each in await automations.listing(artist.id)] == [three, one, two]
    with pytest.raises(NotHere):
        await automations.reorder(artist.id, [two, "nobody's"])
    await automations.delete(artist.id, one)
    assert [each.id for each in await automations.listing(artist.id)] == [three, two]


async def test_there_is_a_most(hf, ada, monkeypatch):
    monkeypatch.setattr(automations, "MOST_AUTOMATIONS", 2)
    await ada.log_in()
    first = await automations.make(ada.id, {})
    await automations.make(ada.id, {})
    with pytest.raises(Invalid, match="delete one first"):
        await automations.duplicate(ada.id, first)


async def test_what_is_another_artists_is_not_there(artist):
    automation_id = await automations.make(artist.id, {"rules": [HOURLY]})
    for verb in (
        automations.get("eve", automation_id), automations.change("eve", automation_id, {}), automations.delete("eve", automation_id),
        automations.toggle("eve", automation_id, is_on=True), automations.duplicate("eve", automation_id), automations.trial("eve", automation_id),
        automations.log("eve", automation_id), automations.next_run("eve", automation_id), automations.reorder("eve", [automation_id]),
    ):  # fmt: skip
        with pytest.raises(NotHere):
            await verb
    assert await automations.listing("eve") == []


# --- trial and log ---


async def test_a_trial_shows_what_will_be(clock, any_hf, artist):
    """The same drafts at the same times, and nothing is written by it."""
    for number in range(9):
        await artist.draft(f"Draft {number}")
    incomplete = await artist.draft("Without a file")
    async with any_hf.transaction() as tx:
        await tx.execute("DELETE FROM files WHERE post_id = $1", incomplete)
    told = {"rules": [{**HOURLY, "posts": 2}], "selection": "random", "jitter_high": 3600}
    automation_id = await automations.make(artist.id, told)
    await automations.toggle(artist.id, automation_id, is_on=True)
    foreseen = await automations.trial(artist.id, automation_id)
    assert foreseen == await automations.trial(artist.id, automation_id)
    assert [len(each.posts) for each in foreseen.times] == [2, 2, 2, 2, 1]
    assert foreseen.words == "There are drafts for 9 posts; then they run out."
    assert [(each.post_id, each.why) for each in foreseen.skipped] == [
        (incomplete, "Add the file that is to be published.")
    ]
    for _ in range(60):
        clock.advance(300)
        await automating.look()
        await drain(any_hf)
    async with any_hf.transaction() as tx:
        rows = await tx.fetch("SELECT id, due_at FROM posts WHERE state = 'scheduled'")
    # Of the first time all is as foreseen. Later ones are drawn from what is left, which is the same here.
    assert {(each.post_id, each.at) for time in foreseen.times for each in time.posts} == {
        (id_, at) for id_, at in rows
    }
    log = await automations.log(artist.id, automation_id)
    assert [(each.nominal_at, each.wanted, {id_ for id_, _ in each.chosen}) for each in log[::-1]] == [
        (each.nominal_at, each.wanted, {post.post_id for post in each.posts}) for each in foreseen.times
    ]
    assert log[0].words.startswith("Chosen 1 of 2.")
    assert log[0].skipped[0].title == "Without a file"
    assert {title for each in log for _, title in each.chosen} == {f"Draft {number}" for number in range(9)}


async def test_the_log_has_pages(clock, any_hf, artist):
    automation_id = await automations.make(artist.id, {"rules": [{"kind": "interval", "minutes": 5}]})
    await automations.toggle(artist.id, automation_id, is_on=True)
    for _ in range(7):
        clock.advance(300)
        await automating.look()
        await drain(any_hf)
    seen, before = [], None
    while page := await automations.log(artist.id, automation_id, before=before, limit=3):
        seen += [each.nominal_at for each in page]
        before = page[-1].nominal_at
    assert len(seen) == len(set(seen)) == 7 + 1
    assert seen == sorted(seen, reverse=True)


async def test_a_trial_without_rules_says_so(artist):
    automation_id = await automations.make(artist.id, {})
    found = await automations.trial(artist.id, automation_id)
    assert (found.times, found.words) == ((), "No rule is on: it would never run.")


async def test_switched_off_it_forgets_what_it_missed(clock, any_hf, artist):
    for number in range(4):
        await artist.draft(f"Draft {number}")
    automation_id = await automations.make(artist.id, {"rules": [HOURLY]})
    await automations.toggle(artist.id, automation_id, is_on=True)
    await automations.toggle(artist.id, automation_id, is_on=False)
    clock.advance(6 * 3600)
    await automations.toggle(artist.id, automation_id, is_on=True)
    await automating.look()
    await drain(any_hf)
    assert await automations.log(artist.id, automation_id) == []
