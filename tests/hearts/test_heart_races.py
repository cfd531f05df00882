"""Cancel, move, hold and decide against the moment at which a post is due: never both, never neither, and no post is lost."""

from __future__ import annotations

import asyncio
import random
import time

import pytest
from waiting import until

RACES = 200
SPREAD = 3.0  # seconds over which the posts become due
pytestmark = pytest.mark.timeout(600)


async def scheduled(publisher, account=str):
    """A post for each race, in accounts of their own unless told otherwise; when they are due."""
    begins = time.time() + 1.0
    dues = {post: begins + random.uniform(0, SPREAD) for post in range(RACES)}
    await publisher.schedule([(post, account(post), due) for post, due in dues.items()])
    return dues


async def at_the_moment(dues, act):
    """What `act` says of each post, about when a worker takes it: before, at and after."""

    async def one(post):
        await asyncio.sleep(max(0.0, dues[post] + random.uniform(-0.1, 0.9) - time.time()))
        return await act(post)

    return dict(zip(dues, await asyncio.gather(*map(one, dues)), strict=True))


async def all_are(publisher, *states):
    try:
        await until(lambda: _all_are(publisher, states), 120)
    except AssertionError:
        raise AssertionError(await publisher.told_of_others(states)) from None
    return await publisher.states()


async def _all_are(publisher, states):
    return set((await publisher.states()).values()) <= set(states)


def published_once(provider, posts):
    return provider.count("publish") == dict.fromkeys(map(str, posts), 1)


async def test_a_post_is_cancelled_or_published(publishing, provider):
    async with publishing() as publisher:
        in_time = await at_the_moment(await scheduled(publisher), publisher.cancel)
        states = await all_are(publisher, "published", "cancelled")
    assert {post for post, state in states.items() if state == "cancelled"} == {
        post for post, was in in_time.items() if was
    }
    assert published_once(provider, [post for post, was in in_time.items() if not was])
    assert 0 < sum(in_time.values()) < RACES, "one side has won all races"


async def test_a_post_is_moved_or_published_and_comes_once(publishing, provider):
    async with publishing() as publisher:
        dues = await scheduled(publisher)
        later = {post: due + 1.5 for post, due in dues.items()}
        moved = await at_the_moment(dues, lambda post: publisher.move(post, later[post]))
        await all_are(publisher, "published")
    assert published_once(provider, dues)
    too_soon = [
        post for post, was in moved.items() if was and provider.at("publish", str(post)) < later[post]
    ]
    assert too_soon == []
    assert 0 < sum(moved.values()) < RACES, "one side has won all races"


async def test_a_post_of_a_held_account_waits_and_a_release_loses_none(publishing, provider):
    """Those that a worker had taken before are published; of all others nothing is begun until the release."""
    async with publishing() as publisher:
        dues = await scheduled(publisher)

        async def hold(post):
            await publisher.hold(str(post))
            return await publisher.waits(post)

        waited = await at_the_moment(dues, hold)
        held = await until(lambda: _held(publisher, dues), 120)
        assert {post for post, did in waited.items() if did} <= held, "what waited was begun all the same"
        assert published_once(provider, dues.keys() - held)
        assert 0 < len(held) < RACES, "one side has won all races"
        await asyncio.gather(*(publisher.release(str(post)) for post in dues))
        await all_are(publisher, "published")
    assert published_once(provider, dues)


async def _held(publisher, dues):
    """Those that are held, as soon as all others are published."""
    held = {post for post in dues if await publisher.is_held(post)}
    states = await publisher.states()
    return held if held == {post for post, state in states.items() if state == "scheduled"} else None


async def test_holds_and_releases_at_the_due_moment_lose_no_post(publishing, provider):
    """Ten accounts, held and released all the time, while posts become due and are moved."""
    async with publishing() as publisher:
        dues = await scheduled(publisher, account=lambda post: str(post % 10))

        async def in_turn(account):
            while time.time() < max(dues.values()) + 1:
                await publisher.hold(account)
                await asyncio.sleep(random.uniform(0, 0.2))
                await publisher.release(account)
                await asyncio.sleep(random.uniform(0, 0.2))

        moves = at_the_moment(dues, lambda post: publisher.move(post, time.time() + random.uniform(0, 0.5)))
        await asyncio.gather(moves, *(in_turn(str(account)) for account in range(10)))
        await all_are(publisher, "published")
        assert await publisher.hf.tenants.paused() == []
    assert published_once(provider, dues)


async def test_the_artist_or_a_lookup_decides_and_nothing_is_done_twice(publishing, provider):
    """All answers are lost. Of the even posts the call was made, of the odd ones it was not."""
    provider.shows = False
    provider.lost = {str(post) for post in range(0, RACES, 2)}
    provider.unsent = {str(post) for post in range(1, RACES, 2)}
    async with publishing() as publisher:
        now = time.time()
        await publisher.schedule([(post, str(post), now) for post in range(RACES)])
        await all_are(publisher, "unknown")
        provider.shows = True
        soon = dict.fromkeys(range(RACES), time.time() + 0.3)
        by_artist = await at_the_moment(soon, lambda post: publisher.decide(post, done=post % 2 == 0))
        await all_are(publisher, "published")
        for post, was in by_artist.items():
            [decision] = await publisher.decisions(post)
            assert decision.actor == ("artist" if was else "look-up")
    assert published_once(provider, range(RACES))
    assert 0 < sum(by_artist.values()) < RACES, "one side has won all races"
