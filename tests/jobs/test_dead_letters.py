"""Dead letters: found, replayed at a rate, edited, discarded; every action leaves its mark, and no secret in it."""

from __future__ import annotations

import asyncio

import pytest
from waiting import until

from holdfast import Backoff, Secret
from holdfast.kernel.errors import PayloadError, UsageError


@pytest.fixture
def broken(hf):
    @hf.task(name="mail", retry=Backoff(attempts=1))
    async def mail(to: str, password: Secret[str] = "") -> str:
        if to == "nobody":
            raise ValueError("no such address")
        return f"sent to {to}"

    return mail


async def die(hf, task, count=1):
    handles = await task.enqueue_many([{"to": "nobody", "password": "hunter2"}] * count)
    async with hf.worker():
        await until(lambda: _all_dead(hf, count))
    return handles


async def _all_dead(hf, count):
    return len(await hf.dead.find(limit=1000)) == count


async def test_an_edited_replay_succeeds(hf, broken):
    [handle] = await die(hf, broken)
    [found] = await hf.dead.find(task="mail")
    assert found.id == handle.id
    answer = await hf.dead.replay_edited(handle.id, {"to": "ada", "password": "***"}, actor="operator")
    assert answer.outcome == "queued"
    async with hf.worker():
        assert await handle.result(10) == "sent to ada"
    record = await handle.record()
    assert (record.generation, record.attempt) == (1, 1)
    assert "hunter2" in record.args  # the mask means: as it was
    [row] = await hf.store.audit.find(subject=handle.id)
    assert (row.actor, row.action) == ("operator", "dead.replay")
    assert "hunter2" not in f"{row.before}{row.after}"


async def test_bad_edits_change_nothing(hf, broken):
    [handle] = await die(hf, broken)
    with pytest.raises(UsageError, match="cannot be called so"):
        await hf.dead.replay_edited(handle.id, {"too": "ada"}, actor="operator")
    with pytest.raises(PayloadError):
        await hf.dead.replay_edited(handle.id, {"to": 5}, actor="operator")
    assert await handle.status() == "dead"
    with pytest.raises(UsageError, match="is not dead: there is none"):
        await hf.dead.replay_edited("00000000-0000-7000-8000-000000000000", {}, actor="operator")


async def test_many_at_a_rate(hf, broken):
    handles = await die(hf, broken, 12)
    told = []
    began = asyncio.get_running_loop().time()
    answers = await hf.dead.replay(
        [handle.id for handle in handles], actor="operator", rate=5, told=told.append
    )
    assert asyncio.get_running_loop().time() - began >= 2
    assert [answer.outcome for answer in answers] == ["queued"] * 12
    assert told == [5, 10, 12]
    with pytest.raises(UsageError):
        await hf.dead.replay([], actor="operator", rate=0)


async def test_discard(hf, broken):
    [handle] = await die(hf, broken)
    assert await hf.dead.discard([handle.id], actor="operator", reason="a test") == [True]
    assert await handle.status() == "cancelled"
    assert await hf.dead.find() == []
