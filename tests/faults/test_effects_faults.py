"""Bare effects whose worker dies, or whose other side does not answer. Rows 3 and 59."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest
from faultkit import ROOT
from waiting import until

from holdfast.store.states import State
from tools.processes import Process, environment

POST = """
async def find(item: str):
    mark("looked")
    return Found(item) if marked("sent", item=item) else NotFound

def poster(name, **manner):
    @hf.task(name=name, retry=QUICK)
    async def post(job: Job) -> str:
        async def send(item: str) -> str:
            mark("sent", item=item, token=job.token)
            return item

        return await job.effect("post", send, job.id, **manner)

poster("blind", policy="at_most_once")
poster("sighted", policy="at_most_once", reconcile=find)
poster("again", policy="at_least_once")
"""


async def _killed_after_sending(fleet, task):
    fleet.program(POST)
    first = fleet.start(HOLDFAST_CRASH="effect.called")
    job = await fleet.put(task)
    assert await first.ended() == -signal.SIGKILL
    assert len(fleet.marks("sent", item=job)) == 1
    await fleet.started()
    return job


async def test_killed_after_a_bare_effect_without_a_lookup(fleet):
    """Row 3: nobody knows, so a person is asked, and nothing is sent again."""
    job = await _killed_after_sending(fleet, "blind")
    await fleet.becomes(job, State.UNKNOWN)
    assert [each.id for each in await fleet.hf.unknown.find()] == [job]
    await fleet.hf.unknown.resolve(job, actor="ada", done=True, result=job)
    done = await fleet.becomes(job)
    assert json.loads(done.result) == job
    assert len(fleet.marks("sent", item=job)) == 1


async def test_killed_after_a_bare_effect_with_a_lookup(fleet):
    """Row 3: the lookup finds it, and nothing is sent again."""
    job = await _killed_after_sending(fleet, "sighted")
    done = await fleet.becomes(job)
    assert (json.loads(done.result), done.interruptions) == (job, 1)
    assert (len(fleet.marks("sent", item=job)), len(fleet.marks("looked"))) == (1, 1)


async def test_killed_after_a_bare_effect_that_may_be_repeated(fleet):
    """Row 3: only who says at_least_once gets a second call."""
    job = await _killed_after_sending(fleet, "again")
    await fleet.becomes(job)
    assert len(fleet.marks("sent", item=job)) == 2


PUBLISH = """
from pathlib import Path
from chaos.publishing import Client

client = Client(Path(os.environ["FAULTS_FOLDER"]))

async def publish(job: Job, **more) -> str:
    return await job.effect("publish", client.publish, job.id, policy="at_most_once", timeout=0.5, settle=1, **more)

@hf.task(name="blind", retry=QUICK)
async def blind(job: Job) -> str:
    return await publish(job)

@hf.task(name="sighted", retry=QUICK)
async def sighted(job: Job) -> str:
    return await publish(job, reconcile=client.find)
"""


@pytest.fixture
async def accepted(fleet):
    """What a provider has accepted that never answers: a process of its own."""
    given = {
        "CHAOS_FOLDER": str(fleet.folder),
        "CHAOS_PARENT": str(os.getpid()),
        "CHAOS_MANNER": "accept, then be silent",
    }
    command = [sys.executable, "-m", "chaos.provider"]
    process = Process(command, fleet.folder, environment([ROOT], **given), fleet.folder / "log-provider")
    await until((fleet.folder / "provider.port").exists)
    journal = fleet.folder / "provider.jsonl"
    yield lambda: [json.loads(line)["name"] for line in journal.read_text().splitlines()]
    process.destroy()


async def test_a_provider_that_accepts_and_then_is_silent(fleet, accepted):
    """Row 59: a lookup finds what it has accepted; without one a person is asked. It is never published twice."""
    fleet.program(PUBLISH)
    await fleet.started(PYTHONPATH=str(ROOT))
    sighted, blind = await fleet.put("sighted"), await fleet.put("blind")
    done = await fleet.becomes(sighted)
    assert json.loads(done.result) == sighted
    unknown = await fleet.becomes(blind, State.UNKNOWN)
    assert "Nobody knows whether effect 'publish' was done" in unknown.reason
    assert sorted(accepted()) == sorted([sighted, blind])
