"""What a job with guarded calls costs in commits: nothing for being let through, and no intent for being refused."""

from collections import Counter

import pytest
from waiting import until

from holdfast import Job
from holdfast.guards import Breaker, Limiter
from holdfast.store.sqlite.connection import Db
from holdfast.store.states import State

_WRITES = {
    "claims": ("claim", "claim_suspect", "finish", "finish_and_claim", "release"),
    "steps": ("write",),
    "holds": ("hold",),
}


@pytest.fixture
def commits(hf, monkeypatch):
    """Verbs that wrote, each of them one commit: a claim that found nothing writes nothing."""
    counted = Counter()

    def count(port, verb):
        original = getattr(port, verb)

        async def call(*args, **named):
            answer = await original(*args, **named)
            found = answer[1] if verb == "finish_and_claim" else answer
            if verb not in ("claim", "claim_suspect") or found:
                counted[verb] += 1
            return answer

        monkeypatch.setattr(port, verb, call)

    for name, verbs in _WRITES.items():
        for verb in verbs:
            count(getattr(hf.store, name), verb)
    return counted


def posting(hf, guard):
    @hf.task(name="post")
    async def post(job: Job, user: int) -> str:
        upload = await job.step("submit", lambda: f"upload of {user}", guard=guard.keyed(user))
        return await job.effect(
            "publish", lambda: f"{upload} is out", policy="at_most_once", guard=guard.keyed(user)
        )

    return post


def guard_of(hf):
    return hf.guard(
        "site", breaker=Breaker(failures=3), limiter=Limiter(rate=100, burst=100, per="user:{user}")
    )


async def test_two_guarded_calls_cost_five_commits(hf, commits):
    post = posting(hf, guard_of(hf))
    handle = await post.enqueue(7)
    async with hf.worker({"default": 1}):
        assert await handle.result(20) == "upload of 7 is out"
    assert commits.total() <= 5, commits
    assert commits["write"] == 3, "one of the step, two of the effect"


async def test_a_refusal_costs_the_claim_and_the_hold(hf, commits):
    guard = guard_of(hf)
    post = posting(hf, guard)
    guard.breaker.hold_open()
    handle = await post.enqueue(7)
    async with hf.worker({"default": 1}):
        await until(lambda: hf.store.holds.gated())
        assert (commits["write"], commits.total()) == (0, 2), commits
        [gated] = await hf.store.holds.gated()
        assert gated.guard == "site/user:7"
        guard.breaker.let_go()
        await handle.result(20)
    assert commits.total() <= 7, commits
    assert (await hf.jobs.get(handle.id)).attempt == 1


async def test_the_file_itself_is_written_five_times(hf, monkeypatch):
    """By the database's own count, of everything that a run writes."""
    if "Sqlite" not in type(hf.store).__name__:
        pytest.skip("SQLite counts its changes")
    post, writes, ours = (
        posting(hf, guard_of(hf)),
        [],
        ("holdfast_queued", "holdfast_running", "holdfast_step"),
    )
    handle = await post.enqueue(7)
    commit, run, execute = Db.commit, Db.run, []

    def ran(db, sql, *params):
        changed = run(db, sql, *params)
        if changed and any(table in sql for table in ours):
            execute.append(sql)
        return changed

    def committed(db):
        if execute:
            writes.append(list(execute))
            execute.clear()
        commit(db)

    monkeypatch.setattr(Db, "run", ran)
    monkeypatch.setattr(Db, "commit", committed)
    async with hf.worker({"default": 1}):
        await handle.result(20)
    assert len(writes) == 5, writes
    assert (await hf.jobs.get(handle.id)).state is State.SUCCEEDED
