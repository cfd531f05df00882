"""The person who operates a fleet of real workers: resumes what was left paused, and decides truthfully what is unknown."""

from __future__ import annotations

from functools import partial

from holdfast.kernel.clock import sleep
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.randomness import jittered
from holdfast.store.records import JobRecord
from holdfast.store.states import State
from holdfast.store.steps import Progress
from holdfast.testing.simulation.fleet import Fleet, Life
from holdfast.testing.simulation.history import REFUSALS
from holdfast.testing.simulation.plan import LEASE
from holdfast.testing.simulation.service.provider import DIALLING, SLOWEST, Provider
from holdfast.testing.simulation.upkeep import resume_all

# After the heal nobody stands still: who lost a job has stopped within a lease, and what it sent has arrived.
QUIET = LEASE + DIALLING + SLOWEST
_DECEIVING = ("pause", "stall", "host clock", "slow")  # with these, someone may still be about to call


async def operate(life: Life) -> None:
    """The program."""
    while not life.process.draining:
        await sleep(jittered(6.0))
        if life.fleet.life_on(0) is not life:
            continue
        try:
            if life.fleet.healed:
                await life.history.call("resume", None, partial(resume_all, life))
            if _can_see(life.fleet):
                await _decide_all(life)
        except (*REFUSALS, CommitUnknown):
            continue  # the next round tries again


def _can_see(fleet: Fleet) -> bool:
    """Whether what the provider has not heard of by now will not come."""
    if fleet.healed:
        return fleet.loop.time() > fleet.healed_at + QUIET
    return not any(fault.kind in _DECEIVING for fault in fleet.plan.faults)


async def _decide_all(life: Life) -> None:
    for job in await life.store.jobs.find(state=State.UNKNOWN):
        await _decide(life, job)


async def _decide(life: Life, job: JobRecord) -> None:
    provider: Provider = life.fleet.provider
    for each in await life.store.steps.load(job.id, job.generation):
        if each.progress is not Progress.UNKNOWN or provider.is_under_way(job.id, each.name):
            continue
        answer = provider.answer(job.id, each.name)
        work = partial(
            life.store.steps.resolve,
            job.id,
            actor="operator",
            effect=each.name,
            done=answer is not None,
            result=None if answer is None else encode(answer),
        )
        await life.history.call("resolve", (job.id, each.name, answer is not None), work)
