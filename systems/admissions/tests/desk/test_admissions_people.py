"""People: confirmed addresses, passwords, links that are good once, and roles."""

from __future__ import annotations

import re

import pytest
from admissions.desk import people
from admissions.desk.people import NotLoggedIn
from admissions.desk.refusals import Invalid, Refusal
from admissions.domain.roles import Role

from holdfast.testing import drain

PASSWORD = "correct horse battery"


def link_in(mail):
    return re.search(r"key=(\S+)", mail.text)[1]


async def registered(hf, box, mail="Anh@Example.org"):
    await people.register(mail, PASSWORD, "Ánh")
    await drain(hf)
    return link_in(box.of("anh@example.org")[-1])


async def test_a_confirmed_address_logs_in(portal, box):
    key = await registered(portal, box)
    with pytest.raises(NotLoggedIn) as told:
        await people.log_in("anh@example.org", PASSWORD)
    assert told.value.key == "login_unconfirmed"
    confirmed = await people.confirm(key)
    found = await people.log_in(" ANH@example.org ", PASSWORD)
    assert (found.id, found.role, found.is_confirmed) == (confirmed.id, Role.APPLICANT, True)


async def test_a_link_is_good_once_and_in_its_time(manual_clock, portal, box):
    key = await registered(portal, box)
    manual_clock.advance(86_401)
    with pytest.raises(Refusal, match="link_over"):
        await people.confirm(key)
    await people.ask_for_reset("anh@example.org")
    await drain(portal)
    key = link_in(box.of("anh@example.org")[-1])
    with pytest.raises(Refusal):
        await people.confirm(key)  # of another kind


async def test_a_new_password_by_mail(portal, box):
    await people.confirm(await registered(portal, box))
    await people.ask_for_reset("anh@example.org")
    await people.ask_for_reset("nobody@example.org")  # says nothing
    await drain(portal)
    key = link_in(box.of("anh@example.org")[-1])
    await people.reset(key, "another long password")
    with pytest.raises(Refusal):
        await people.reset(key, "a third long password")
    with pytest.raises(NotLoggedIn):
        await people.log_in("anh@example.org", PASSWORD)
    assert (await people.log_in("anh@example.org", "another long password")).name == "Ánh"
    assert box.of("nobody@example.org") == []


async def test_who_registers_again_learns_nothing_and_gets_a_mail(portal, box):
    await people.confirm(await registered(portal, box))
    await people.register("anh@example.org", "somebody else's password", "Eve")
    await drain(portal)
    assert "password" in box.of("anh@example.org")[-1].subject
    with pytest.raises(NotLoggedIn):
        await people.log_in("anh@example.org", "somebody else's password")


@pytest.mark.parametrize(
    ("mail", "password", "name"),
    [("nowhere", PASSWORD, "A"), ("a@b.org", "short", "A"), ("a@b.org", PASSWORD, " ")],
)
async def test_what_cannot_be_is_told_by_field(portal, mail, password, name):
    with pytest.raises(Invalid) as told:
        await people.register(mail, password, name)
    assert len(told.value.wrong) == 1


async def test_a_new_address_counts_when_its_own_link_was_opened(portal, box):
    who = await people.confirm(await registered(portal, box))
    await people.ask_for_change(who.id, "new@example.org")
    await drain(portal)
    assert (await people.get(who.id)).mail == "anh@example.org"
    await people.confirm(link_in(box.of("new@example.org")[-1]))
    assert (await people.get(who.id)).mail == "new@example.org"


async def test_the_last_administrator_stays_one(portal, box):
    who = await people.confirm(await registered(portal, box))
    await people.set_role(who.id, who.id, Role.ADMINISTRATOR)
    with pytest.raises(Refusal, match="last_administrator"):
        await people.set_role(who.id, who.id, Role.OFFICER)


async def test_no_password_is_kept_as_it_is(portal, box):
    await registered(portal, box)
    async with portal.transaction() as tx:
        [(kept,)] = await tx.fetch("SELECT password FROM people")
        secrets = await tx.fetch("SELECT sha256 FROM tickets")
    assert kept.startswith("$argon2id$")
    assert PASSWORD not in kept
    assert not any(link_in(mail) in str(secrets) for mail in box.received)
