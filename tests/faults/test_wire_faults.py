"""The wire to PostgreSQL: cut before and after COMMIT, half-open, slow, silent. Rows 19 to 23 and 40."""

from __future__ import annotations

import asyncio
import signal
import time

from faultkit import on_postgres
from waiting import until

from holdfast.store.states import State

SHIP = """
@hf.task(name="ship", retry=QUICK)
async def ship(job: Job) -> None:
    mark("began", job=job.id, token=job.token)
    async with job.commit() as tx:
        await effect(tx, job)

@hf.task(name="wait", retry=QUICK)
async def wait(job: Job) -> None:
    mark("began", job=job.id)
    try:
        await gate("go")
    except asyncio.CancelledError:
        mark("stopped", job=job.id)
        raise
    async with job.commit() as tx:
        await effect(tx, job)
"""


@on_postgres
async def test_backends_are_ended_again_and_again(fleet):
    """Row 19: a backend that is ended takes its transaction with it; every job's rows are there once."""
    fleet.program(SHIP)
    await fleet.started("-c", "5")
    jobs = await fleet.put_many("ship", 150)
    for part in (10, 40, 70, 100):
        await fleet.marked("began", part)
        async with fleet.hf.transaction() as tx:
            await tx.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
    await fleet.all_become(jobs)
    assert sorted(job for job, _ in await fleet.effects()) == sorted(jobs)


@on_postgres
async def test_cut_before_commit(fleet, wire):
    """Row 20: a COMMIT that never reached the server stored nothing; the job runs again, its rows are there once."""
    fleet.program(SHIP)
    await fleet.started(url=wire.url)
    wire.lose_request(b"COMMIT\0", after=b"INTO effects")
    job = await fleet.put("ship")
    await fleet.becomes(job)
    assert wire.cuts == 1
    assert len(fleet.marks("began")) == 2
    assert len(await fleet.effects()) == 1


@on_postgres
async def test_cut_after_commit(fleet, wire):
    """Row 21: the answer to COMMIT was lost; the token says that it happened, and nothing runs again."""
    fleet.program(SHIP)
    await fleet.started(url=wire.url)
    wire.lose_answer_to(b"COMMIT\0", after=b"INTO effects")
    job = await fleet.put("ship")
    done = await fleet.becomes(job)
    assert wire.cuts == 1
    other = await fleet.put("ship")  # the worker goes on
    await fleet.becomes(other)
    assert (done.attempt, len(fleet.marks("began", job=job))) == (1, 1)
    assert sorted(each for each, _ in await fleet.effects()) == sorted([job, other])


@on_postgres
async def test_cut_after_a_claim(fleet, wire):
    """Row 21: nobody heard of the claim; the worker finds that it has it, puts it back uncharged, and it is done once."""
    fleet.program(SHIP)
    job = await fleet.put("ship")
    wire.lose_answer_to(b"AND NOT j.suspect")
    await fleet.started(url=f"{wire.url}?statement_cache_size=0")
    done = await fleet.becomes(job)
    assert wire.cuts == 1
    assert (done.attempt, done.interruptions, len(fleet.marks("began"))) == (1, 0, 1)
    assert len(await fleet.effects()) == 1


HALF_OPEN = """
from holdfast.store.postgres import transaction
transaction.PostgresTx.begins = transaction._BEGIN.replace("60s", "1s")  # or this test would take a minute

@hf.task(name="lock", retry=QUICK)
async def lock(job: Job) -> None:
    async with job.commit() as tx:
        await tx.execute("UPDATE effects SET token = token WHERE kind = 'shared'")
        mark("locked", job=job.id)
        await gate("go")
"""


@on_postgres
async def test_half_open(fleet, wire):
    """Row 22: a worker is gone and the server never hears of it; its transaction ends, its locks are free again."""
    fleet.program(HALF_OPEN)
    async with fleet.hf.transaction() as tx:
        await tx.execute("INSERT INTO effects VALUES ('', 0, 'shared')")
    worker = await fleet.started(url=wire.url)
    job = await fleet.put("lock")
    await fleet.marked("locked")
    wire.fall_silent()
    worker.signal(signal.SIGKILL)
    fleet.open("go")
    await fleet.started()
    await fleet.becomes(job)
    assert len(fleet.marks("locked")) == 2


@on_postgres
async def test_a_slow_database(fleet, wire):
    """Row 23: every request takes a second. Leases survive, nothing runs twice, and nobody storms the server."""
    fleet.program(SHIP)
    await fleet.started("-c", "5", url=wire.url, lease=8)
    await fleet.started(lease=8)  # it would take what seems to be lost
    before = wire.connections
    wire.delay = 1.0
    jobs = await fleet.put_many("wait", 5)
    await fleet.marked("began", 5)
    renewed = {job: (await fleet.record(job)).lease_until for job in jobs}

    async def all_renewed():
        return all([(await fleet.record(job)).lease_until > renewed[job] for job in jobs])

    await until(all_renewed, 10)
    fleet.open("go")
    for record in await fleet.all_become(jobs):
        assert (record.attempt, record.interruptions) == (1, 0)
    assert len(await fleet.effects()) == 5
    assert wire.connections - before <= 12  # a pool of ten, and two for renewals


@on_postgres
async def test_cut_off_from_the_database(fleet, wire):
    """Row 40: who cannot renew stops its job before the lease ends, another runs it, and it comes back by itself."""
    fleet.program(SHIP)
    lone = await fleet.started(url=wire.url, lease=3)
    job = await fleet.put("wait")
    await fleet.marked("began")
    wire.fall_silent()
    held = await fleet.record(job)
    [stopped] = await fleet.marked("stopped", seconds=6)
    assert stopped["at"] < held.lease_until
    other = await fleet.started(lease=3)
    fleet.open("go")
    done = await fleet.becomes(job)
    assert done.started_at >= held.lease_until
    assert len(await fleet.effects()) == 1
    other.signal(signal.SIGTERM)
    await other.ended()
    wire.flow()
    again = await fleet.put("ship")
    await fleet.becomes(again)
    assert fleet.marks("began", job=again)[0]["pid"] == lone.pid


@on_postgres
async def test_a_finish_that_is_swallowed_is_asked_again_after_a_lease(fleet, wire):
    """Row 40: one connection is dead and nobody was told, while the claim is renewed by another."""
    fleet.program(SHIP + '\n@hf.task(name="plain")\nasync def plain() -> None: ...\n')
    await fleet.started(url=wire.url, lease=1)
    await fleet.becomes(await fleet.put("ship"))  # so that its connections are there
    wire.swallow(b"INTO holdfast.history")
    began = time.monotonic()
    job = await fleet.put("plain")
    done = await fleet.becomes(job)
    assert wire.cuts == 1
    assert done.attempt == 1
    assert time.monotonic() - began < 10  # not the 30 s after which a statement is given up


@on_postgres
async def test_asked_to_leave_while_cut_off(fleet, wire):
    """Rows 13 and 40: a worker that cannot reach its database leaves soon all the same."""
    fleet.program(SHIP)
    lone = await fleet.started("--shutdown-timeout", "1", url=wire.url, lease=3)
    job = await fleet.put("wait")
    await fleet.marked("began")
    wire.fall_silent()
    lone.signal(signal.SIGTERM)
    assert await lone.ended(seconds=20) in (
        0,
        3,
    )  # a grace of 1 s, and a second or two for each thing it tries
    assert (await fleet.record(job)).state is State.RUNNING


@on_postgres
async def test_a_supervisor_that_is_asked_twice_while_cut_off(fleet, wire):
    """Rows 14 and 40: it cannot put back what its children held, and does not wait for that."""
    fleet.program(SHIP)
    supervisor = await fleet.started("-p", "1", "--shutdown-timeout", "600", url=wire.url, lease=10)
    await fleet.put("wait")
    await fleet.marked("began")
    wire.fall_silent()
    supervisor.signal(signal.SIGTERM)
    await supervisor.says("are asked to leave")
    told = time.monotonic()
    while time.monotonic() < told + 0.5:  # two that come at once are one
        await asyncio.sleep(0.05)
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended(seconds=15) == 130
