"""A dead job is replayed with other arguments: its secrets stay secret, and stay what they were when nobody retypes them."""

import json

import pytest

from holdfast import Holdfast, Reject, Secret
from holdfast.kernel.errors import JobDead, UsageError
from holdfast.kernel.masking import SECRETS_FIELD, masked
from holdfast.kernel.outcomes import Dead
from holdfast.store.records import Finish


def program(url):
    hf = Holdfast(url)

    @hf.task(name="mail.send")
    async def send(user: str, password: Secret[str] = "none") -> None: ...

    return hf, send


@pytest.fixture
async def dead_job(tmp_path):
    hf, send = program(f"sqlite:///{tmp_path / 'jobs.db'}")
    async with hf:
        handle = await send.enqueue(user="ada", password="geheim")
        [claim] = await hf.store.claims.claim({"default": 1}, lease=30, worker="w")
        await hf.store.claims.finish([Finish(claim, Dead("no such user"))])
    return handle.id, hf._inside.location.address


@pytest.mark.parametrize("knows_task", [True, False])
async def test_a_masked_secret_stays_what_it_was(dead_job, knows_task):
    job_id, path = dead_job
    hf = program(f"sqlite:///{path}")[0] if knows_task else Holdfast(f"sqlite:///{path}")
    async with hf:
        answer = await hf.dead.replay_edited(job_id, {"user": "bob", "password": "***"}, actor="ada")
        assert answer.outcome == "queued"
        record = await hf.jobs.get(job_id)
    stored = json.loads(record.args)
    assert (stored["user"], stored["password"]) == ("bob", "geheim")
    assert masked(record.args) == {"user": "bob", "password": "***"}
    assert record.generation == 1


@pytest.mark.parametrize("knows_task", [True, False])
async def test_a_new_secret_is_hidden_too(dead_job, knows_task):
    job_id, path = dead_job
    hf = program(f"sqlite:///{path}")[0] if knows_task else Holdfast(f"sqlite:///{path}")
    async with hf:
        await hf.dead.replay_edited(job_id, {"user": "***", "password": "neu"}, actor="ada")
        record = await hf.jobs.get(job_id)
    assert json.loads(record.args) == {"user": "***", "password": "neu", SECRETS_FIELD: ["password"]}
    assert masked(record.args)["password"] == "***"


async def test_arguments_that_the_task_does_not_take_are_refused(dead_job):
    job_id, path = dead_job
    hf, _ = program(f"sqlite:///{path}")
    async with hf:
        with pytest.raises(UsageError, match="user, password"):
            await hf.dead.replay_edited(job_id, {"wrong": 1}, actor="ada")
        assert (await hf.jobs.get(job_id)).state == "dead"


@pytest.mark.parametrize(
    "keys",
    [
        {"unique": "user:{user}"},
        {"ordered": "user:{user}"},
        {"tenant": "user:{user}"},
        {"concurrency": ("user:{user}", 1)},
    ],
    ids=lambda keys: next(iter(keys)),
)
async def test_arguments_that_make_another_key_are_refused(hf, keys):
    @hf.task(name="mail.send", **keys)
    async def send(user: str, copies: int = 1) -> None:
        raise Reject("no such user")

    async with hf.worker():
        handle = await send.enqueue(user="ada")
        with pytest.raises(JobDead):
            await handle.result(10)
    with pytest.raises(UsageError, match=f"{next(iter(keys))} is 'user:bob', and job .* has 'user:ada'"):
        await hf.dead.replay_edited(handle.id, {"user": "bob"}, actor="ada")
    assert (await handle.record()).state == "dead"
    answer = await hf.dead.replay_edited(handle.id, {"user": "ada", "copies": 2}, actor="ada")
    assert answer.outcome == "queued"


async def test_a_key_that_the_caller_gave_stays(hf):
    @hf.task(name="mail.send", unique="user:{user}")
    async def send(user: str) -> None:
        raise Reject("no such user")

    async with hf.worker():
        handle = await send.options(unique="welcome").enqueue(user="ada")
        with pytest.raises(JobDead):
            await handle.result(10)
    await hf.dead.replay_edited(handle.id, {"user": "bob"}, actor="ada")
    assert (await handle.record()).unique == "welcome"
