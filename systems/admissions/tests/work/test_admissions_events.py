"""Facts between the stages: each handled once in each group, in order for each application, and the view that is made of them."""

from __future__ import annotations

import asyncio
import sys

import admissions_kit as kit
from admissions.core import Submitted, Verified, key_of
from admissions.status import application_view
from test_admissions_pipeline import steps_of

from holdfast.testing import drain


async def completed(portal, clock, **options):
    application = await kit.submitted(**options)
    await clock.run(drain(portal, raise_dead=True))
    await kit.pay(application)
    await clock.run(drain(portal, raise_dead=True))
    assert (await kit.row(application))["state"] == "completed"
    return application


async def events(portal):
    async with portal.transaction() as tx:
        return await tx.fetch("SELECT type, key, version FROM holdfast_outbox ORDER BY seq")


async def test_each_fact_of_the_way_is_told_once_and_in_order(manual_clock, portal, stripe_simulator, box):
    """A20, A23."""
    application = await completed(portal, manual_clock)
    found = [row for row in await events(portal) if row[1] == key_of(application)]
    assert [row[0] for row in found] == [
        "application.submitted", "document.uploaded", "document.verified", "payment.opened", "payment.completed", "email.sent",
        "application.completed",
    ]  # fmt: skip
    assert [row[2] for row in found] == list(range(1, 8))


async def test_a_fact_that_is_told_a_hundred_times_is_handled_once(
    manual_clock, portal, stripe_simulator, box
):
    """A22: as a stage that is run again for the same application, too."""
    application = await kit.submitted()
    await manual_clock.run(drain(portal, raise_dead=True))
    async with portal.transaction() as tx:
        for _ in range(100):
            await portal.emit("document.verified", Verified(application, 1), key=key_of(application), tx=tx)
    await manual_clock.run(drain(portal, raise_dead=True))
    assert len(stripe_simulator.ledger.find("intent")) == 1
    assert len(box.of("anh@example.org")) == 2
    assert (await steps_of(portal, application)).count("payment_opened") == 1


async def test_facts_that_nobody_can_read_stop_no_others(manual_clock, portal, stripe_simulator, box):
    """A18: a hundred, written by another program. Each is dead by itself, with its reason; none is marked as done."""
    first = await completed(portal, manual_clock)
    async with portal.transaction() as tx:
        for number in range(100):
            await tx.execute(
                "INSERT INTO holdfast_outbox (id, type, key, version, data, time) "
                "SELECT $1, type, $2, 1, $3, time FROM holdfast_outbox WHERE type = 'document.verified' AND key = $4",
                f"01a00000-0000-7000-8000-{number:012}", f"bad:{number}", '{"application": 7}', key_of(first),
            )  # fmt: skip
    second = await kit.submitted(mail="b@example.org")
    for _ in range(4):
        await manual_clock.run(drain(portal, most=5_000))
        manual_clock.advance(5)
    assert (await kit.row(second))["state"] == "awaiting_payment"
    dead = await portal.dead.find(limit=200)
    assert len([each for each in dead if each.task == "open_payment"]) == 100
    assert all(each.reason or each.errors for each in dead)


async def test_a_submission_has_a_hearer(manual_clock, portal, stripe_simulator, box):
    """A19: it makes the status, and nothing else has to happen for that."""
    told = Submitted("ab" * 16, "term", "2026-1", await portal.now(), 1)
    await portal.emit("application.submitted", told, key=key_of("ab" * 16))
    ran = await manual_clock.run(drain(portal, raise_dead=True))
    assert [each.task for each in ran] == ["renew_status"]
    found = await application_view.get("ab" * 16)
    assert (found["status"], found["number"], found["emailSent"]) == ("submitted", "2026-1", False)


async def test_one_application_is_one_story(manual_clock, portal, stripe_simulator, box, tmp_path):
    """A74: `holdfast trace` tells what waited, ran and was told, from the submission to the end."""
    application = await kit.submitted()
    await manual_clock.run(drain(portal, raise_dead=True))
    async with portal.transaction() as tx:
        [(job,)] = await tx.fetch(
            "SELECT job_id FROM letters WHERE application_id = $1 AND kind = 'receipt'", application
        )
    story = (await portal.jobs.get(job)).correlation_id
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "holdfast", "trace", story, "--url", f"sqlite:///{tmp_path / 'admissions.db'}",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await child.communicate()
    told = out.decode()
    assert child.returncode == 0
    for part in (
        "application.submitted",
        "document.uploaded",
        "verify",
        "document.verified",
        "open_payment",
        "payment.opened",
    ):
        assert part in told, told


async def test_the_view_is_the_same_when_it_is_made_anew(manual_clock, portal, stripe_simulator, box):
    """A61, A60: versions do not go back, and a rebuild of the events gives the same rows."""
    applications = [
        await completed(portal, manual_clock, mail=f"a{number}@example.org") for number in range(3)
    ]
    before = [await application_view.get(each) for each in applications]
    assert [(row["status"], row["progress"], row["emailSent"]) for row in before] == [
        ("completed", 100, True)
    ] * 3
    await application_view.rebuild()
    for _ in range(3):
        await manual_clock.run(drain(portal, raise_dead=True))
    assert [await application_view.get(each) for each in applications] == before
