"""What a person asks for in the very moment in which a worker begins: either wins, never both, never neither."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import publisher_kit as kit
from publisher.desk import scheduling
from publisher.desk.refusals import TooLate

from tools.waiting import until

RACES, PEOPLE = 200, 25
SPREAD = 3.0  # seconds over which the due moments lie


async def people(simulator, number=PEOPLE):
    found = [kit.Artist(simulator, f"artist-{place}") for place in range(number)]
    for artist in found:
        await artist.log_in()
    simulator.settings.user_calls = simulator.settings.app_calls = 10**9
    return found


async def drafts(simulator):
    """So many posts, of several artists: each has a title of its own."""
    artists = await people(simulator)
    room = asyncio.Semaphore(6)

    async def one(number):
        artist = artists[number % len(artists)]
        async with room:
            return artist, await artist.draft(f"Race {number:03}")

    return await asyncio.gather(*map(one, range(RACES)))


async def raced(hf, posts, ask, *, begin=None):
    """Each post is due in a moment of its own, and `ask` comes at about that moment; what it said, by post."""
    chance, told = random.Random(7), {}
    begin = begin or await hf.now() + 3.0
    room = asyncio.Semaphore(7)  # less than the pool has

    async def one(number, artist, post_id):
        due = begin + SPREAD * number / len(posts)
        await asyncio.sleep(max(0.0, due + chance.uniform(-0.05, 0.25) - await hf.now()))
        async with room:
            try:
                await ask(artist, post_id)
            except TooLate as refused:
                told[post_id] = str(refused.state)
            else:
                told[post_id] = "won"

    await asyncio.gather(*(one(number, *each) for number, each in enumerate(posts)))
    return told


async def scheduled(hf, posts):
    """Due one after the other, beginning when all of them are scheduled on a machine that is not very busy."""
    begin = await hf.now() + 15.0
    for number, (artist, post_id) in enumerate(posts):
        await scheduling.schedule(artist.id, post_id, begin + SPREAD * number / len(posts))
    return begin


async def states_of(hf):
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT id, state, title, due_at FROM posts")
    return {row[0]: row[1:] for row in rows}


async def none_waits(hf, *, before):
    """Nothing that is due before that moment is still on its way."""

    async def over():
        found = await states_of(hf)
        return not [
            each
            for each in found.values()
            if each[0] == "publishing" or (each[0] == "scheduled" and each[2] < before)
        ]

    await until(over, 120)


def published(simulator):
    return Counter(each["title"] for each in simulator.ledger.find("published"))


async def counted(hf):
    async with hf.transaction() as tx:
        [(total,)] = await tx.fetch("SELECT sum(post_count) FROM artists")
    return total


async def test_200_cancels_against_the_due_moment(fleet, any_hf, simulator):
    posts = await drafts(simulator)
    await fleet.worker(PUBLISHER_CONCURRENCY="10")
    begin = await scheduled(any_hf, posts)
    told = await raced(any_hf, posts, lambda artist, post: scheduling.cancel(artist.id, post), begin=begin)
    await none_waits(any_hf, before=begin + 600)
    states, out = await states_of(any_hf), published(simulator)
    for post_id, said in told.items():
        state, title, _ = states[post_id]
        assert (state, out[title]) == (("cancelled", 0) if said == "won" else ("published", 1)), (said, title)
    assert len(told) == RACES
    assert (
        await counted(any_hf)
        == out.total()
        == list(told.values()).count("published") + sum(said == "publishing" for said in told.values())
    )


async def test_200_moves_against_the_due_moment(fleet, any_hf, simulator):
    posts = await drafts(simulator)
    await fleet.worker(PUBLISHER_CONCURRENCY="10")
    begin = await scheduled(any_hf, posts)
    later = round(begin) + 5000.0

    async def ask(artist, post_id):
        await scheduling.move(artist.id, post_id, later)

    told = await raced(any_hf, posts, ask, begin=begin)
    await none_waits(any_hf, before=begin + 600)
    states, out = await states_of(any_hf), published(simulator)
    for post_id, said in told.items():
        state, title, due = states[post_id]
        if said == "won":
            assert (state, due, out[title]) == ("scheduled", later, 0), title
        else:
            assert (state, out[title]) == ("published", 1), (said, title)
    assert await counted(any_hf) == out.total()


async def test_200_times_publish_now_against_the_due_moment(fleet, any_hf, simulator):
    posts = await drafts(simulator)
    await fleet.worker(PUBLISHER_CONCURRENCY="10")
    begin = await scheduled(any_hf, posts)
    told = await raced(
        any_hf, posts, lambda artist, post: scheduling.publish_now(artist.id, post), begin=begin
    )
    await none_waits(any_hf, before=begin + 600)
    states, out = await states_of(any_hf), published(simulator)
    assert {state for state, _, _ in states.values()} == {"published"}
    assert out == Counter({title: 1 for _, title, _ in states.values()})
    assert len(told) == RACES
    assert await counted(any_hf) == RACES


async def test_200_decisions_against_the_lookup(fleet, any_hf, simulator):
    """Half of them are there, and half are not; the artist says so while a worker looks for itself."""
    posts = await drafts(simulator)
    simulator.faults.put("gallery/all", "html-504")
    simulator.faults.put("stash/publish", "lost", share=0.5)
    simulator.faults.put("stash/publish", "html-504")
    now = await any_hf.now()
    for artist, post_id in posts:
        await scheduling.schedule(artist.id, post_id, now)
    await fleet.worker(
        PUBLISHER_CONCURRENCY="10", CIRCUIT_BREAKER_ENABLED="false", PUBLISHER_LOOK_AGAIN_S="2"
    )
    await until(lambda: are_unknown(any_hf, posts), 120)
    there = set(published(simulator))
    assert 50 < len(there) < 150
    simulator.faults.clear()
    states = await states_of(any_hf)

    async def ask(artist, post_id):
        title = states[post_id][1]
        url = f"https://www.deviantart.com/x/art/{title[-3:]}"
        is_there = title in there
        await scheduling.decide(artist.id, post_id, done=is_there, url=url if is_there else None)

    told = await raced(any_hf, posts, ask, begin=await any_hf.now())

    async def over():
        return {each[0] for each in (await states_of(any_hf)).values()} == {"published"}

    await until(over, 120)
    out = published(simulator)
    assert out == Counter({title: 1 for _, title, _ in states.values()})
    assert await counted(any_hf) == RACES
    assert len(told) == RACES


async def are_unknown(hf, posts):
    found = await states_of(hf)
    return sum(each[0] == "unknown" for each in found.values()) == len(posts)
