"""`hf.jobs.find`: jobs by their keys, and what is said when it cannot be answered."""

from __future__ import annotations

import pytest

from holdfast import Job
from holdfast.errors import UsageError


def _publish(hf):
    @hf.task(name="publish")
    async def publish(job: Job, post: int) -> None: ...

    return publish


async def test_by_each_of_their_keys_newest_first(hf):
    publish = _publish(hf)
    first = await publish.options(unique="post:1", tenant="ann", delay=60).enqueue(1)
    other = await publish.options(unique="post:2", tenant="ann", delay=60).enqueue(2)
    await first.cancel()
    second = await publish.options(unique="post:1", correlation_id="c1", delay=60).enqueue(1)
    ids = [[record.id for record in found] for found in (
        await hf.jobs.find(unique="post:1"),
        await hf.jobs.find(unique=["post:1", "post:2", "post:3"]),
        await hf.jobs.find(tenant="ann"),
        await hf.jobs.find(tenant="ann", before=other.id),
        await hf.jobs.find(correlation_id="c1"),
    )]  # fmt: skip
    assert ids == [
        [second.id, first.id],
        [second.id, other.id],
        [other.id, first.id],
        [first.id],
        [second.id],
    ]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"unique": 7}, "unique is a key, or a list of keys; not 7"),
        ({}, "one of unique=, tenant= and correlation_id="),
        ({"unique": "a", "states": {"dead"}}, "states= goes with tenant="),
    ],
)
async def test_what_cannot_be_answered_is_said(hf, asked, told):
    with pytest.raises(UsageError, match=told):
        await hf.jobs.find(**asked)


async def test_errors_name_what_the_caller_wrote(hf):
    with pytest.raises(UsageError, match='order_by="time" is the order of jobs'):
        await _publish(hf).options(order_by="time").enqueue(1)
    with pytest.raises(UsageError, match="Pass it whole, as `handle"):
        await hf.jobs.cancel("01a1f43c")
