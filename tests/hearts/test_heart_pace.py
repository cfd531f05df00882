"""A thousand posts that are due at once, of two hundred artists with a rate each: what they cost, and that each comes once."""

from __future__ import annotations

import time

import pytest
from heart_commits import Commits
from test_heart_races import all_are, published_once

POSTS, ARTISTS = 1000, 200
INTERVAL = 0.3  # seconds between two calls of an artist
pytestmark = pytest.mark.timeout(600)


async def test_a_thousand_posts_behind_limiters_cost_five_commits_each(publishing, provider, url):
    """Two guarded calls: one write of the step, two of the effect, and the success; claims and holds are made for many."""
    async with publishing(rate=1 / INTERVAL, burst=1) as publisher:
        due = time.time() + 2
        await publisher.schedule([(post, str(post % ARTISTS), due) for post in range(POSTS)])
        async with Commits(publisher.hf, url) as commits:
            before = await commits.count()
            await all_are(publisher, "published")
            cost = (await commits.count() - before) / POSTS
    assert published_once(provider, range(POSTS))
    assert cost <= 5, f"{cost} commits a post"
    assert cost >= 1, "not even the success was seen"
