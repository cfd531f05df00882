"""When Stripe, the scanner or mail are away: what waits is held, nobody is charged for it, and it goes on by itself."""

from __future__ import annotations

import admissions_kit as kit
from admissions import core
from admissions.work import resources

from holdfast.guards import Breaker
from holdfast.testing import drain
from simulators.clamd.app import Simulator as Clamd


async def states(applications):
    return {(await kit.row(each))["state"] for each in applications}


async def turns(hf, clock, number, seconds, ran, until=None):
    """Look at what can be done, every so many seconds; at most so often, or until all of these are so far."""
    for _ in range(number):
        if until is not None and await states(until) == {"awaiting_payment"}:
            return
        clock.advance(seconds)
        ran += await clock.run(drain(hf))


def charged(ran, task):
    """The highest attempt of any run of it."""
    return max((each.attempt for each in ran if each.task == task), default=0)


async def test_stripe_is_down_for_two_minutes(manual_clock, portal, stripe_simulator, box):
    """A47. All breakers and waits as usual: nobody is failed, no attempt is charged, and all go on within a minute."""
    stripe_simulator.faults.put("*", "unavailable")
    ran, applications = [], []
    for turn in range(24):
        if turn < 12:
            applications.append(await kit.submitted(mail=f"a{turn}@example.org"))
        await turns(portal, manual_clock, 1, 5, ran)
    assert await states(applications) == {"verified"}
    assert charged(ran, "open_payment") == 1
    assert not await portal.dead.find()
    stripe_simulator.faults.clear()
    await turns(portal, manual_clock, 12, 5, ran)
    assert await states(applications) == {"awaiting_payment"}
    assert charged(ran, "open_payment") == 1
    by_application = [each["metadata"]["application"] for each in stripe_simulator.ledger.find("intent")]
    assert sorted(by_application) == sorted(applications)


async def test_the_scanner_is_down_and_everything_waits(manual_clock, portal, box, monkeypatch):
    """A37. Held without an attempt; when it is back each file is scanned once."""
    with Clamd() as clamd:
        address = clamd.address
    scanner = scanner_at(monkeypatch, address)
    ran, applications = [], [await kit.submitted(mail=f"a{number}@example.org") for number in range(12)]
    await turns(portal, manual_clock, 12, 10, ran)
    assert await states(applications) == {"verifying"}
    assert charged(ran, "verify") == 1
    with Clamd() as clamd:
        scanner.now_at(clamd.address)
        await turns(portal, manual_clock, 60, 10, ran, applications)
        assert await states(applications) == {"awaiting_payment"}
        assert len(clamd.ledger.find("scanned")) == 12
    assert charged(ran, "verify") == 1


class Moved:
    """A clamd whose address may change."""

    def __init__(self, address):
        self.now_at(address)

    def now_at(self, address):
        from admissions.outside.scanning import Clamd as Outside

        self._clamd = Outside(address)

    async def scan(self, content):
        return await self._clamd.scan(content)


def scanner_at(monkeypatch, address):
    found = Moved(address)
    monkeypatch.setattr(resources, "scanner_of", lambda _: found)
    return found


async def test_a_scanner_that_says_that_it_cannot_is_asked_again(manual_clock, portal, box, monkeypatch):
    with Clamd() as clamd:
        scanner_at(monkeypatch, clamd.address)
        clamd.faults.put("scan", "error", times=2)
        clamd.faults.put("scan", "refused", times=2)
        application = await kit.submitted()
        ran = []
        await turns(portal, manual_clock, 60, 10, ran, [application])
        assert await states([application]) == {"awaiting_payment"}
        assert charged(ran, "verify") == 1
        assert clamd.faults.happened == {"error": 2, "refused": 2}


async def test_a_failing_stage_runs_three_times_and_waits_at_most_two_and_four_seconds(
    manual_clock, portal, stripe_simulator, box, monkeypatch
):
    """A33. Of our own bug; the waits are by chance below that."""
    from admissions.outside.payments import Payments

    calls = []

    def broken(*_):
        calls.append(manual_clock.now())
        raise ZeroDivisionError

    monkeypatch.setattr(Payments, "create", broken)
    application = await kit.submitted()
    for _ in range(60):
        await manual_clock.run(drain(portal))
        manual_clock.advance(0.25)
    first, second, third = calls
    assert (core.STAGES.attempts, core.STAGES.first, core.STAGES.ceiling) == (3, 2.0, 4.0)
    assert 0 <= second - first <= 2 + 0.25
    assert 0 <= third - second <= 4 + 0.25
    assert (await kit.row(application))["state"] == "failed"


async def test_lost_answers_of_stripe_make_one_intent_for_each(manual_clock, portal, stripe_simulator, box):
    """A44: each is asked for again with the same key."""
    stripe_simulator.faults.put("create", "lost", share=0.5, times=30)
    applications = [await kit.submitted(mail=f"a{number}@example.org") for number in range(12)]
    ran = []
    await turns(portal, manual_clock, 60, 10, ran, applications)
    assert await states(applications) == {"awaiting_payment"}
    made = stripe_simulator.ledger.find("intent")
    assert sorted(each["metadata"]["application"] for each in made) == sorted(applications)
    assert stripe_simulator.faults.happened["lost"] >= 5


def test_the_breaker_of_stripe_is_that_of_the_settings():
    """A45: half of at least 10 calls in 60 s, 30 s open, 2 probes; the scanner has one of its own."""
    wanted = Breaker(failure_ratio=0.5, minimum=10, window=60.0, cooldown=30.0, permits=2)
    assert repr(core._breaker()) == repr(wanted)
    assert core.stripe.name == "stripe-api"
    assert core.scanner.name == "clamd"


async def test_refusals_open_no_breaker(manual_clock, portal, stripe_simulator, box):
    """A46: declined cards and other 4xx are answers. Stripe is well."""
    application = await kit.submitted()
    await manual_clock.run(drain(portal))
    for _ in range(15):
        await kit.pay(application, "pm_card_chargeDeclined")
        await manual_clock.run(drain(portal))
        assert (await kit.payment(application))["state"] == "declined"
        manual_clock.advance(1)
    assert (await portal.guards.look("stripe-api")).state == "closed"
    await kit.pay(application)
    await manual_clock.run(drain(portal))
    assert (await kit.row(application))["state"] == "completed"
