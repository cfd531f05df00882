"""How many run at a time, who goes first, and that one slow service slows no other."""

from __future__ import annotations

import asyncio
import time

import admissions_kit as kit
from admissions.core import MAIL, PAY, VERIFY
from admissions.work import letters
from admissions.work.agreeing import compare
from admissions.work.asking import ask
from admissions.work.hearing import hear
from admissions.work.releasing import release
from test_admissions_outages import scanner_at
from test_admissions_release import decided

from holdfast.testing import drain
from simulators.clamd.app import Simulator as Clamd

SLOTS = {VERIFY: 12, PAY: 12, MAIL: 12, "default": 4}


async def true(fact):
    end = time.monotonic() + 60
    while not await fact():
        assert time.monotonic() < end, "it did not come true"
        await asyncio.sleep(0.05)


def all_in(applications, state):
    async def fact():
        return {(await kit.row(each))["state"] for each in applications} == {state}

    return fact


async def test_at_most_three_scans_and_two_payments_at_a_time(any_portal, stripe_simulator, box, monkeypatch):
    """A28: of all workers together, however many slots they have. A25: each stage has its queue."""
    with Clamd() as clamd:
        clamd.settings.answers_in = 0.05
        stripe_simulator.settings.answers_in = 0.05
        scanner_at(monkeypatch, clamd.address)
        applications = [await kit.submitted(mail=f"a{number}@example.org") for number in range(10)]
        async with any_portal.worker(queues=SLOTS, poll=0.05), any_portal.worker(queues=SLOTS, poll=0.05):
            await true(all_in(applications, "awaiting_payment"))
        assert clamd.ledger.most_open["scan"] in (2, 3)
        assert stripe_simulator.ledger.most_open["create"] in (1, 2)


async def test_at_most_four_mails_at_a_time(portal, stripe_simulator, box):
    """A28: of the fleet, and the others wait without holding a place of a worker."""
    slow = Slow(box)
    for number in range(12):
        await portal.mail.send(to=f"a{number}@example.org", subject="Hello", text="Hello")
    async with portal.worker(queues=SLOTS, poll=0.05), portal.worker(queues=SLOTS, poll=0.05):
        await true(slow.has(4))
        await asyncio.sleep(0.3)
        assert slow.open == 4
        slow.go_on.set()
        await true(slow.has_sent(12))
    assert slow.most == 4


class Slow:
    """A mail server that does not answer before `go_on`."""

    def __init__(self, box):
        self._box, self._carry = box, box.carry
        box.carry = self.carry
        self.open = self.most = 0
        self.go_on = asyncio.Event()

    async def carry(self, letter, recipient):
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await self.go_on.wait()
            await self._carry(letter, recipient)
        finally:
            self.open -= 1

    def has(self, number):
        async def fact():
            return self.open >= number

        return fact

    def has_sent(self, number):
        async def fact():
            return len(self._box.received) == number

        return fact


async def test_a_slow_mail_server_changes_nothing_for_verification(portal, stripe_simulator, box):
    """A31: all are verified, and their payments are open, before the first mail has left."""
    slow = Slow(box)
    applications = [await kit.submitted(mail=f"a{number}@example.org") for number in range(8)]
    async with portal.worker(queues=SLOTS, poll=0.05):
        await true(slow.has(4))
        await true(all_in(applications, "awaiting_payment"))
        assert box.received == []
        slow.go_on.set()
        await true(slow.has_sent(16))


async def test_a_login_link_overtakes_a_round_of_letters(manual_clock, portal, stripe_simulator, box):
    """A rush of letters delays no link to log in: at most the four that have a place go first."""
    term = await decided(portal, 60)
    await portal.queues.pause(MAIL)
    await release.start(term, id=f"release:{term}")
    await manual_clock.run(drain(portal))
    person = await kit.person("login@example.org")
    async with portal.transaction() as tx:
        await letters.link(tx, person, "reset", "http://127.0.0.1/reset")
    await portal.queues.resume(MAIL)
    await manual_clock.run(drain(portal))
    order = [mail.to for mail in box.received]
    assert len(order) == 61
    assert order.index("login@example.org") <= 4


async def test_who_waits_for_an_answer_goes_first(manual_clock, portal, stripe_simulator, box):
    """A27: a person's payment, then webhooks, then the stages, then our own questions; an hourly comparison last."""
    application = await kit.submitted()
    await manual_clock.run(drain(portal))
    await kit.submitted(mail="b@example.org")
    await portal.queues.pause(PAY)
    await manual_clock.run(drain(portal))
    intent = (await kit.payment(application))["intent"]
    await compare.enqueue(0, "")
    await ask.enqueue(application)
    await hear.enqueue("payment_intent.succeeded", intent)
    await kit.pay(application)
    await portal.queues.resume(PAY)
    ran = await manual_clock.run(drain(portal))
    ours = [each.task for each in ran if each.task in ORDER]
    assert ours == ORDER


ORDER = ["admissions.confirm", "admissions.hear", "open_payment", "admissions.ask", "admissions.compare"]
