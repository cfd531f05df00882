"""What the desk's pages stand on: documents that came later, saved views, people, rounds, stays, and what has stopped."""

from __future__ import annotations

import admissions_kit as kit
import pytest
from admissions.core import hf
from admissions.desk import (
    applying,
    audit,
    cases,
    decisions,
    directory,
    rounds,
    staying,
    stopped,
    story,
    views,
)
from admissions.desk.refusals import Invalid, NotHere, TooLate
from admissions.domain.decisions import Outcome
from admissions.domain.roles import Role

from holdfast import within
from holdfast.testing import drain


async def completed(clock, mail="anh@example.org"):
    application = await kit.submitted(mail=mail)
    await clock.run(drain(hf, raise_dead=True))
    await kit.pay(application)
    await clock.run(drain(hf, raise_dead=True))
    return application


async def owner_of(application):
    async with hf.transaction() as tx:
        [(found,)] = await tx.fetch("SELECT person_id FROM applications WHERE id = $1", application)
    return found


async def add(application, content):
    with within(tenant=application):
        staged = await hf.blobs.stage(content, content_type="application/pdf")
    return await applying.add_document(
        await owner_of(application), application, "transcript", "later.pdf", staged
    )


async def test_what_was_asked_for_is_scanned_though_the_application_is_complete(
    manual_clock, any_portal, stripe_simulator, box
):
    application = await completed(manual_clock)
    ada = await kit.person("ada@uni.example", role="officer")
    await cases.ask_for(ada, application, "transcript", "The last year, stamped.")
    document = await add(application, kit.PDF)
    with pytest.raises(TooLate):
        await cases.open_file(ada, application, document)
    await manual_clock.run(drain(hf, raise_dead=True))
    assert (await cases.open_file(ada, application, document)).state == "clean"
    assert (await kit.row(application))["state"] == "completed"
    with pytest.raises(TooLate, match="no_file_asked"):
        await add(application, kit.PDF)


async def test_what_was_asked_for_and_is_infected_is_asked_for_again(
    manual_clock, portal, stripe_simulator, box
):
    application = await completed(manual_clock)
    ada = await kit.person("ada@uni.example", role="officer")
    await cases.ask_for(ada, application, "transcript", "The last year, stamped.")
    await add(application, kit.PDF + kit.EICAR)
    await manual_clock.run(drain(hf, raise_dead=True))
    assert "later.pdf" in box.of("anh@example.org")[-1].text
    its = await story.of(await owner_of(application), application)
    assert (its.state, its.takes_files, [each.name for each in its.documents]) == (
        "completed",
        True,
        ["0.pdf"],
    )
    document = await add(application, kit.PDF)
    await manual_clock.run(drain(hf, raise_dead=True))
    assert (await cases.open_file(ada, application, document)).name == "later.pdf"


async def test_views_are_of_the_one_who_has_saved_them(any_portal):
    ada, bob = [await kit.person(f"{name}@uni.example", role="officer") for name in ("ada", "bob")]
    await views.save(ada, " Waiting ", "state=completed")
    await views.save(ada, "Waiting", "state=failed")
    [found] = await views.of(ada)
    assert (found.name, found.query, await views.of(bob)) == ("Waiting", "state=failed", [])
    with pytest.raises(NotHere):
        await views.remove(bob, found.id)
    for name in ("", "x" * 61):
        with pytest.raises(Invalid):
            await views.save(ada, name, "")
    await views.remove(ada, found.id)
    assert await views.of(ada) == []


async def test_people_are_found_in_both_directions(any_portal):
    for number in range(5):
        await kit.person(f"p{number}@example.org", role="officer" if number == 3 else "applicant")
    first = await directory.listing(limit=3)
    assert [each.mail[:2] for each in first] == ["p0", "p1", "p2"]
    assert [each.mail[:2] for each in await directory.listing(after=first[-1].mail)] == ["p3", "p4"]
    assert [each.mail[:2] for each in await directory.listing(before=first[-1].mail)] == ["p1", "p0"]
    assert [each.mail[:2] for each in await directory.listing(role=Role.OFFICER)] == ["p3"]
    assert [each.mail[:2] for each in await directory.listing(search="P4@")] == ["p4"]
    assert await directory.listing(search="%") == []
    assert [name for _, name in await directory.officers()] == ["Ánh"]


async def test_the_queue_goes_back(manual_clock, any_portal, box):
    for number in range(4):
        await kit.submitted(mail=f"a{number}@example.org")
        manual_clock.advance(10)
    found = await cases.queue()
    place = found[2].submitted_at, found[2].id
    assert [each.id for each in await cases.queue(before=place)] == [found[1].id, found[0].id]


async def test_rounds_and_stays_are_counted(manual_clock, any_portal, stripe_simulator, box):
    application = await completed(manual_clock)
    ada = await kit.person("ada@uni.example", role="officer")
    [before] = await rounds.listing()
    assert (before.total, before.none, before.drafted) == (1, 1, 0)
    mark = await cases.mark(application)
    await decisions.draft(ada, application, Outcome.ACCEPT, "Come.")
    [after] = await rounds.listing()
    assert (after.none, after.drafted, after.checked) == (0, 1, 0)
    assert await cases.mark(application) != mark
    found = {each.name: each for each in await staying.stays()}
    assert found["mail"].number == 1
    assert found["fee"].half >= 0


async def test_what_has_stopped_is_told_in_words_and_goes_on(manual_clock, any_portal, box):
    application = await kit.submitted()
    async with hf.transaction() as tx:
        [(key,)] = await tx.fetch("SELECT key FROM documents WHERE application_id = $1", application)
        with within(tenant=application):
            await hf.blobs.delete(key, tx=tx)
    for _ in range(3):
        await manual_clock.run(drain(hf))
        manual_clock.advance(10)
    [found] = await stopped.listing()
    assert (found.stage, found.kind, found.application_id, found.tries) == (
        "verify",
        "BlobMissing",
        application,
        3,
    )
    assert (await kit.row(application))["state"] == "failed"
    with within(tenant=application):
        await hf.blobs.restore(key)
    ada = await kit.person("ada@uni.example", role="officer")
    with pytest.raises(NotHere):
        await stopped.go_on(ada, "no such job")
    await stopped.go_on(ada, found.job_id)
    assert await stopped.listing() == []
    assert [each.what for each in await audit.log(person_id=ada)] == ["case.resumed"]
