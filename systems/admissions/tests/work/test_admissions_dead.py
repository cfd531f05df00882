"""What has failed for good: kept with its reason and without secrets, told once, and let go on, one or fifty."""

from __future__ import annotations

import asyncio
import sys

import admissions_kit as kit
import pytest
from admissions.outside.payments import Payments, Refused
from admissions.work import completing, letters, paying, verifying

from holdfast.testing import drain

CANARY = "canary-7f3a"


async def failed(hf, clock, monkeypatch, number):
    """Applications whose payment could not be prepared: Stripe does not know our key."""

    def wrong(*_):
        raise Refused("Invalid API Key provided.")

    monkeypatch.setattr(Payments, "create", wrong)
    applications = [await kit.submitted(mail=f"{CANARY}-{each}@example.org") for each in range(number)]
    for _ in range(4):
        await clock.run(drain(hf))
        clock.advance(5)
    monkeypatch.undo()
    return applications


async def test_fifty_dead_ones_are_replayed_and_complete(
    manual_clock, portal, stripe_simulator, box, monkeypatch
):
    """A56: one event id and one charge each, and the application leaves `failed`."""
    applications = await failed(portal, manual_clock, monkeypatch, 50)
    assert {(await kit.row(each))["state"] for each in applications} == {"failed"}
    dead = await portal.dead.find(limit=100)
    assert len(dead) == 50
    events = {(await portal.jobs.get(each.id)).unique for each in dead}
    await portal.dead.replay([each.id for each in dead], actor="officer")
    await manual_clock.run(drain(portal))
    manual_clock.advance(60)
    await manual_clock.run(drain(portal))
    for each in applications:
        await kit.pay(each)
    for _ in range(4):
        await manual_clock.run(drain(portal))
        manual_clock.advance(30)
    assert {(await kit.row(each))["progress"] for each in applications} == {100}
    assert len(stripe_simulator.ledger.find("charged")) == 50
    assert {(await portal.jobs.get(each.id)).unique for each in dead} == events


async def test_a_death_is_recorded_once_with_its_error_and_its_tries(
    manual_clock, portal, stripe_simulator, box, monkeypatch
):
    """A53."""
    [application] = await failed(portal, manual_clock, monkeypatch, 1)
    [dead] = await portal.dead.find()
    job = await portal.jobs.get(dead.id)
    assert (job.task, job.queue, job.attempt) == ("open_payment", "create_payment", 3)
    assert "Invalid API Key" in job.errors[-1].error
    assert len(job.errors) == 3
    assert application in job.args


async def by_command(path, *words):
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "holdfast", *words, "--url", f"sqlite:///{path}", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    assert child.returncode == 0, words
    return out.decode()


async def test_one_cause_is_told_once_however_many_die(
    manual_clock, portal, stripe_simulator, box, monkeypatch, caplog
):
    """A54: in the log, without data."""
    await failed(portal, manual_clock, monkeypatch, 20)
    found, told = [], []
    async with portal.worker(queues={"default": 1}):
        for _ in range(500):
            manual_clock.advance(5)
            await asyncio.sleep(0.02)
            async with portal.transaction() as tx:
                found = await tx.fetch("SELECT kind, cause, number FROM holdfast_alert")
            told = [each.getMessage() for each in caplog.records if each.name == "admissions.alerts"]
            if told:
                break
    assert found == [("dead", "open_payment", 20)]
    [line] = told
    assert "JOB_FAILED, severity HIGH, opened" in line
    assert CANARY not in line


async def test_its_owner_reads_a_reason_and_officers_read_which_job(
    manual_clock, portal, stripe_simulator, box, monkeypatch
):
    """A55."""
    [application] = await failed(portal, manual_clock, monkeypatch, 1)
    assert "nothing was taken" in (await kit.row(application))["reason"]
    async with portal.transaction() as tx:
        rows = await tx.fetch(
            "SELECT kind, is_inner, words FROM steps WHERE application_id = $1 AND kind LIKE 'failed%' ORDER BY id",
            application,
        )
    [dead] = await portal.dead.find()
    assert [row[0] for row in rows] == ["failed", "failed_inside"]
    assert dead.id not in rows[0][2]
    assert dead.id in rows[1][2]


async def test_a_confirmation_that_never_leaves_is_seen_and_goes_on(
    manual_clock, portal, stripe_simulator, box, tmp_path
):
    """After two days of a mail server that says "later": failed with words, its address in no listing (A53), and completed by a replay."""
    address = f"{CANARY}@example.org"
    application = await kit.submitted(mail=address)
    await manual_clock.run(drain(portal))
    box.refuse(address, 450)
    await kit.pay(application)
    for _ in range(70):
        await manual_clock.run(drain(portal))
        manual_clock.advance(3700)
    row = await kit.row(application)
    assert (row["state"], row["failed_in"], row["progress"]) == ("failed", "paid", 50)
    dead = await portal.dead.find()
    shown = [
        await by_command(tmp_path / "admissions.db", "dead", *words, "--json")
        for words in (["list"], ["show", dead[0].id])
    ]
    assert all(dead[0].id in each and CANARY not in each for each in shown)
    box.accept(address)
    await portal.dead.replay([each.id for each in dead], actor="officer")
    await manual_clock.run(drain(portal))
    assert (await kit.row(application))["progress"] == 100
    assert len({mail.message_id for mail in box.of(address) if mail.subject.startswith("Your")}) == 1


@pytest.mark.parametrize("stage", ["verify", "open_payment", "confirm_by_mail", "complete"])
async def test_every_stage_that_is_dead_goes_on_by_a_replay(
    manual_clock, portal, stripe_simulator, box, monkeypatch, stage
):
    """And a word of the payment that comes again does not wake it."""

    async def wrong(*_, **__):
        raise ZeroDivisionError

    place = {
        "verify": (verifying, "_unscanned"),
        "open_payment": (paying, "_store"),
        "confirm_by_mail": (letters, "paid"),
        "complete": (completing, "move"),
    }
    application = await kit.submitted()
    if stage in ("confirm_by_mail", "complete"):
        await manual_clock.run(drain(portal))
        await kit.pay(application)
    if stage == "complete":
        real = completing.move

        async def wrong(tx, application_id, after, **options):
            if after == "completed":
                raise ZeroDivisionError
            return await real(tx, application_id, after, **options)

    monkeypatch.setattr(*place[stage], wrong)
    for _ in range(8):
        await manual_clock.run(drain(portal))
        manual_clock.advance(5)
    monkeypatch.undo()
    manual_clock.advance(3700)
    await manual_clock.run(drain(portal))  # the hourly comparison, too
    assert (await kit.row(application))["state"] == "failed"
    [dead] = await portal.dead.find()
    assert dead.task == stage
    await portal.dead.replay([dead.id], actor="officer")
    await manual_clock.run(drain(portal))
    if stage in ("verify", "open_payment"):
        await kit.pay(application)
        await manual_clock.run(drain(portal))
    row = await kit.row(application)
    assert (row["state"], row["progress"]) == ("completed", 100)
    assert len(stripe_simulator.ledger.find("charged")) == 1
    assert len([mail for mail in box.of("anh@example.org") if mail.subject.startswith("Your")]) == 1
