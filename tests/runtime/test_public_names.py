"""What a program finds on its objects: these names and no others, for completion and `dir`."""

from __future__ import annotations

import pytest

from holdfast import Holdfast, Job
from holdfast.jobs.handle import Handle
from holdfast.jobs.sync_job import BlockingJob
from holdfast.sagas.handle import SagaRun
from holdfast.sagas.running import RunningSaga
from holdfast.testing import drain

OF_JOB = """arguments attempt blocking commit complete correlation_id effect event heartbeat id interruptions key_for queue reason
    step stop_reason story task tenant token"""
OF_BLOCKING_JOB = "commit complete effect heartbeat step story"
OF_SAGA = "gather id key_for name run_child signal sleep step wait_for"
OF_HANDLE = "cancel cancel_sync created id record record_sync result result_sync standing status status_sync"
OF_SAGA_RUN = """cancel cancel_sync created id record record_sync result result_sync signal signal_sync status
    status_sync"""

OF_HOLDFAST = """alerts blobs blocking cache cached choreography cron dead emit emit_many emit_many_sync emit_sync event every flag flags guard guards jobs lock logins mail migrate now on on_alert on_cancelled on_dead on_unknown outbox
    queues resource saga sagas session snapshot sqlalchemy store task tenants transaction undo unknown use vault versions view views worker workers working"""


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("kind", "names"), [(Job, OF_JOB), (BlockingJob, OF_BLOCKING_JOB), (RunningSaga, OF_SAGA)]
)
def test_of_a_class(kind, names):
    assert public(kind) == set(names.split())


async def test_of_what_a_program_gets(tmp_path):
    async with Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}") as hf:
        found = {}

        @hf.task
        async def look(job: Job) -> None:
            found["job"], found["blocking"] = public(job), public(job.blocking)

        @hf.saga("battle")
        async def battle(saga) -> None:
            found["saga"] = public(saga)

        handle, run = await look.enqueue(), await battle.start()
        await drain(hf)
        assert found["job"] == set(OF_JOB.split())
        assert found["blocking"] == set(OF_BLOCKING_JOB.split())
        assert found["saga"] == set(OF_SAGA.split())
        assert isinstance(handle, Handle)
        assert public(handle) == set(OF_HANDLE.split())
        assert isinstance(run, SagaRun)
        assert public(run) == set(OF_SAGA_RUN.split())


def test_of_a_holdfast():
    """What it is wired of is not for programs; where a part is missing here, name it there too."""
    assert public(Holdfast("sqlite:///never-made.db")) == set(OF_HOLDFAST.split())
