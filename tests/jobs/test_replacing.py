"""An enqueue with a taken unique key: what stands is told, and is replaced when that is asked for."""

from __future__ import annotations

import asyncio

import pytest
from waiting import until

from holdfast import Secret, State
from holdfast.errors import UsageError
from holdfast.testing import drain, inline


@pytest.fixture
def published(hf):
    done = []

    @hf.task(name="publish", unique="post:{post}")
    async def publish(post: int, title: str, token: Secret[str] = "") -> None:
        done.append((post, title, token))

    hf.publish = publish
    return done


async def test_the_handle_tells_what_stands(hf, published):
    now = await hf.store.now()
    first = await hf.publish.options(at=now + 60).enqueue(7, "Buoy")
    assert (first.created, first.standing) == (True, None)
    second = await hf.publish.enqueue(7, "Crane")
    assert (second.id, second.created) == (first.id, False)
    standing = second.standing
    assert (standing.id, standing.state, standing.replaced) == (first.id, State.QUEUED, False)
    assert standing.due_at == pytest.approx(now + 60, abs=0.001)


async def test_a_rescheduled_post_is_published_once_as_it_was_said_last(hf, published):
    first = await hf.publish.options(delay=60).enqueue(7, "Buoy", "sesame")
    async with hf.transaction() as tx:
        moved = await hf.publish.options(delay=30, replace=True, tx=tx).enqueue(7, "Crane", "open")
    assert (moved.id, moved.standing.replaced) == (first.id, True)
    async with hf.worker():
        now = await hf.publish.options(replace=True).enqueue(7, "Gull", "now")
        assert now.standing.replaced
        assert await now.result(10) is None
    assert published == [(7, "Gull", "now")]


async def test_one_that_runs_is_left_alone_and_says_so(hf):
    begun, goes_on = asyncio.Event(), asyncio.Event()

    @hf.task(unique="post:{post}")
    async def publish(post: int, title: str) -> None:
        begun.set()
        await goes_on.wait()

    async with hf.worker():
        first = await publish.enqueue(7, "Buoy")
        await begun.wait()
        late = await publish.options(delay=60, replace=True).enqueue(7, "Crane")
        assert (late.created, late.standing.state, late.standing.replaced) == (False, State.RUNNING, False)
        goes_on.set()
        await first.result(10)


async def test_without_a_unique_key_it_is_refused(hf):
    @hf.task
    async def plain(n: int) -> None: ...

    with pytest.raises(UsageError, match="give unique"):
        await plain.options(replace=True).enqueue(1)


async def test_from_sync_code(hf, published):
    def in_a_thread():
        hf.publish.options(delay=60).enqueue_sync(7, "Buoy")
        return hf.publish.options(delay=30, replace=True).enqueue_sync(7, "Crane")

    handle = await asyncio.to_thread(in_a_thread)
    assert handle.standing.replaced


async def test_inline_runs_what_is_due_by_it_and_drain_has_the_last_arguments(hf, published):
    with inline(hf):
        await hf.publish.options(delay=60).enqueue(7, "Buoy")
        await hf.publish.options(delay=90, replace=True).enqueue(7, "Crane")
        assert published == []
        await hf.publish.options(replace=True).enqueue(7, "Gull")
        assert published == [(7, "Gull", "")]
    await hf.publish.options(delay=60).enqueue(8, "Buoy")
    await hf.publish.options(replace=True).enqueue(8, "Crane")
    assert [ran.state for ran in await drain(hf)] == [State.SUCCEEDED]
    assert published[-1] == (8, "Crane", "")


async def test_races_with_the_due_moment_tell_the_truth(hf, published):
    """200 posts are replaced about when they are due: what was replaced runs as said then, what was not as said first."""
    begins = await hf.store.now() + 0.5
    told = {}

    async def at_its_moment(post):
        due = begins + post / 200
        await hf.publish.options(at=due).enqueue(post, "first")
        await asyncio.sleep(max(0.0, due - await hf.store.now() + (post % 7 - 3) / 100))
        again = await hf.publish.options(delay=0.05, replace=True).enqueue(post, "second")
        told[post] = "new" if again.created else "second" if again.standing.replaced else "first"

    async with hf.worker({"default": 20}, poll=0.02):
        await asyncio.gather(*(at_its_moment(post) for post in range(200)))
        await until(lambda: nothing_is_left(hf), 30)
    titles = {post: [] for post in range(200)}
    for post, title, _ in published:
        titles[post].append(title)
    for post, answer in told.items():
        assert titles[post] == (["first", "second"] if answer == "new" else [answer]), (post, answer)
    assert {"second"} <= set(told.values())


async def nothing_is_left(hf):
    return not await hf.queues.count()
