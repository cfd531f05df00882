"""The flags of the portal, each switched while it runs: what it turns off, and what stays true all the same."""

from __future__ import annotations

import admissions_kit as kit
import pytest
from admissions.desk import applying, status
from admissions.desk.refusals import Closed
from admissions.flags import ACKNOWLEDGEMENT, FLAGS, NEW_SUBMISSIONS, SCANNER, STATUS_CACHE
from admissions.outside.scanning import BUILT_IN
from test_admissions_outages import scanner_at

from holdfast.testing import drain
from simulators.clamd.app import Simulator as Clamd


async def switch(hf, name, value):
    await hf.flags.set(name, value, by="ada", reason="a test")


async def owner_of(hf, application):
    async with hf.transaction() as tx:
        [(owner,)] = await tx.fetch("SELECT person_id FROM applications WHERE id = $1", application)
    return owner


def test_each_flag_says_what_stays_true():
    assert set(FLAGS) == {
        "status-cache",
        "live-progress",
        "scanner",
        "acknowledgement-mail",
        "new-submissions",
    }
    assert all(FLAGS.values())
    assert {applying.FLAG, status.FLAG} <= set(FLAGS)


async def test_without_the_cache_each_look_reads_the_row(manual_clock, portal, stripe_simulator, box):
    application = await kit.submitted()
    owner = await owner_of(portal, application)
    await manual_clock.run(drain(portal))
    assert (await status.of(owner, application))["status"] == "awaiting_payment"
    await switch(portal, STATUS_CACHE, False)
    await kit.pay(application)
    await manual_clock.run(drain(portal))
    assert (await status.of(owner, application))["status"] == "completed"
    await switch(portal, STATUS_CACHE, True)
    assert (await status.of(owner, application))["status"] == "completed"


async def test_without_the_scanner_the_built_in_one_looks_and_says_so(manual_clock, portal, box, monkeypatch):
    with Clamd() as clamd:
        scanner_at(monkeypatch, clamd.address)
        first = await kit.submitted()
        await manual_clock.run(drain(portal))
        await switch(portal, SCANNER, False)
        second = await kit.submitted(mail="b@example.org", files=(kit.PDF, kit.PDF + kit.EICAR))
        await manual_clock.run(drain(portal))
    async with portal.transaction() as tx:
        rows = await tx.fetch("SELECT application_id, scanner, state FROM documents ORDER BY name, state")
    assert {row[1:] for row in rows if row[0] == first} == {("clamd", "clean")}
    assert {row[1:] for row in rows if row[0] == second} == {(BUILT_IN, "clean"), (BUILT_IN, "infected")}
    assert (await kit.row(second))["state"] == "needs_files"


async def test_without_acknowledgements_a_submission_counts_as_before(
    manual_clock, portal, stripe_simulator, box
):
    await switch(portal, ACKNOWLEDGEMENT, False)
    application = await kit.submitted()
    await manual_clock.run(drain(portal))
    await kit.pay(application)
    await manual_clock.run(drain(portal))
    assert [mail.subject.partition(" ")[0] for mail in box.of("anh@example.org")] == ["Pay", "Your"]
    assert (await kit.row(application))["state"] == "completed"


async def test_a_closed_door_stops_nothing_that_was_submitted(manual_clock, portal, stripe_simulator, box):
    application = await kit.submitted()
    await switch(portal, NEW_SUBMISSIONS, False)
    with pytest.raises(Closed):
        await applying.begin(await kit.person("b@example.org"), await kit.term())
    await manual_clock.run(drain(portal))
    await kit.pay(application)
    await manual_clock.run(drain(portal))
    assert (await kit.row(application))["state"] == "completed"
