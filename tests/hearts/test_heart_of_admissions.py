"""The payment provider is down for a while: nobody is charged twice, nothing fails, and what was withdrawn meanwhile is not paid."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from heart_admissions import Admissions, Settings
from heart_workers import workers_are_there
from waiting import until

from holdfast import State

APPLICATIONS = 30
PROGRAM = """
from heart_admissions import Admissions, Settings
from heart_workers import workers_are_there
hf = Admissions({settings!r}).hf
"""
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def admitting(url, provider, working):
    @asynccontextmanager
    async def admitting():
        settings = Settings(url, provider.address)
        admissions = Admissions(settings)
        async with admissions.hf:
            await admissions.prepare()
            async with working(PROGRAM.format(settings=settings), queues="default:8,sagas:4"):
                await workers_are_there(admissions.hf, 2)
                yield admissions

    return admitting


async def held(admissions, jobs):
    """Whether all of them wait for the provider."""
    found = [await admissions.hf.jobs.get(job) for job in jobs]
    return all(each.state is State.QUEUED and each.held is not None for each in found)


async def test_an_outage_charges_no_attempt_and_fails_nothing(admitting, provider):
    provider.down = True
    async with admitting() as admissions:
        jobs = [await admissions.submit(each) for each in range(APPLICATIONS)]
        await until(lambda: provider.refused >= 6, 60)  # the breaker has opened, and was asked again
        await until(lambda: held(admissions, jobs), 60)
        assert provider.ledger == []
        provider.down = False
        await until(lambda: _are(admissions, {"paid"}), 120)
        records = [await admissions.hf.jobs.get(job) for job in jobs]
    assert [(each.state, each.attempt) for each in records] == [(State.SUCCEEDED, 1)] * APPLICATIONS
    assert provider.count("intent") == dict.fromkeys(map(str, range(APPLICATIONS)), 1)


async def test_a_withdrawal_cancels_the_held_payment_of_its_application(admitting, provider):
    provider.down = True
    async with admitting() as admissions:
        jobs = [await admissions.submit(each) for each in range(6)]
        await until(lambda: provider.refused >= 4, 60)
        await until(lambda: held(admissions, jobs), 60)
        runs = [await admissions.withdraw.start(each, id=f"withdraw:{each}") for each in range(3)]
        assert [await run.result(60) for run in runs] == [1, 1, 1]
        provider.down = False
        await until(lambda: _are(admissions, {"paid", "withdrawn"}), 120)
        records = [await admissions.hf.jobs.get(job) for job in jobs]
    assert [each.state for each in records] == [State.CANCELLED] * 3 + [State.SUCCEEDED] * 3
    assert provider.count("intent") == dict.fromkeys(("3", "4", "5"), 1)


async def _are(admissions, states):
    return set((await admissions.states()).values()) == states
