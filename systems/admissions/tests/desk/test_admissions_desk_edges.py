"""What two people do at once at the desk, and values that no form of ours sends."""

from __future__ import annotations

import asyncio

import admissions_kit as kit
import pytest
from admissions.desk import applying, cases, decisions, finance, people
from admissions.desk.refusals import Invalid, NotHere, Refusal, TooLate
from admissions.domain.roles import Role
from admissions.ids import new_id

from holdfast import within
from holdfast.testing import drain

PASSWORD = "correct horse battery"


async def paid(count):
    """Applications whose fee is booked; their ids."""
    found = [await kit.submitted(mail=f"a{number}@example.org") for number in range(count)]
    from admissions.core import hf

    async with hf.transaction() as tx:
        for number, application in enumerate(found):
            await tx.execute(
                "INSERT INTO payments (application_id, intent, state, amount, currency, words, changed_at) VALUES ($1, $2, 'paid', 7500, 'usd', '', $3)",
                application, f"pi_{number}", 1000.0,
            )  # fmt: skip
            await tx.execute(
                "INSERT INTO entries (reference, application_id, intent, amount, currency, source, at) VALUES ($1, $2, $3, 7500, 'usd', 'look', 1.0)",
                f"ch_{number}", application, f"pi_{number}",
            )  # fmt: skip
    return found


async def test_pages_of_payments_show_each_once(any_portal, stripe_simulator):
    """Also those that were changed in the same moment."""
    applications = await paid(5)
    found, before = [], None
    while page := await finance.payments(before=before, limit=2):
        found += [each.application_id for each in page]
        before = page[-1].changed_at, page[-1].application_id
    assert found == sorted(applications, reverse=True)


async def test_a_second_refund_waits_for_the_first(any_portal, stripe_simulator):
    [application] = await paid(1)
    ada = await kit.person("ada@uni.example", role="finance")
    await finance.refund(ada, application, 2500, "waiver")
    with pytest.raises(TooLate, match="refund_under_way"):
        await finance.refund(ada, application, 7000, "waiver")


async def test_a_case_is_given_to_staff_alone(any_portal, stripe_simulator):
    application = await kit.submitted()
    ada = await kit.person("ada@uni.example", role="officer")
    other = await kit.person("other@example.org")
    version = (await cases.case(ada, application)).row.version
    for nobody in (other, new_id(), "nobody"):
        with pytest.raises(Invalid):
            await cases.assign(ada, application, nobody, version=version)
    await cases.assign(ada, application, ada, version=version)
    await cases.assign(ada, application, None, version=version + 1)


async def test_a_round_that_is_not_there(portal):
    for wish in (decisions.ready(new_id()), decisions.release("ada", new_id())):
        with pytest.raises(NotHere):
            await wish


async def test_registered_twice_at_once_is_one_person_with_one_mail(any_portal, box):
    await asyncio.gather(*(people.register("anh@example.org", PASSWORD, "Ánh") for _ in range(4)))
    async with any_portal.transaction() as tx:
        assert await tx.fetch("SELECT count(*) FROM people") == [(1,)]
    await drain(any_portal)
    assert box.of("anh@example.org")


async def test_two_administrators_cannot_leave_the_portal_without_one(any_portal):
    ada, bob = [await kit.person(f"{name}@uni.example", role="administrator") for name in ("ada", "bob")]
    told = await asyncio.gather(
        people.set_role(ada, bob, Role.OFFICER),
        people.set_role(bob, ada, Role.OFFICER),
        return_exceptions=True,
    )
    assert sum(isinstance(each, Refusal) for each in told) == 1
    roles = {(await people.get(each)).role for each in (ada, bob)}
    assert roles == {Role.ADMINISTRATOR, Role.OFFICER}


@pytest.mark.parametrize(
    "mail",
    ["a@b", "a b@c.org", "a@b..org", "ä@example.org", "a@exämple.org", "a\x01@b.org", "a@b.org\nBcc: c@d.org",
     f"{'a' * 65}@b.org", f"a@{'b.' * 150}org", "@b.org", "a@-b.org", ".a@b.org", "a@b.org,c@d.org", "A <a@b.org>"],
)  # fmt: skip
async def test_what_no_mail_can_be_sent_to_is_told_where_it_is_typed(portal, mail):
    with pytest.raises(Invalid):
        await people.register(mail, PASSWORD, "A")
    who = await kit.person()
    with pytest.raises(Invalid):
        await people.ask_for_change(who, mail)


async def test_files_that_come_at_once_are_not_more_than_five(any_portal):
    who, term = await kit.person(), await kit.term()
    application = await applying.begin(who, term)
    with within(tenant=application):
        staged = [await any_portal.blobs.stage(kit.PDF, content_type="application/pdf") for _ in range(8)]
    told = await asyncio.gather(
        *(applying.add_document(who, application, "other", "a.pdf", each) for each in staged),
        return_exceptions=True,
    )
    assert sum(isinstance(each, str) for each in told) == 5
    assert all(isinstance(each, str | Invalid) for each in told), told
