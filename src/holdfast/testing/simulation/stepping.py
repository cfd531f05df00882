"""Bodies that write of steps, on the bare verbs: intents, results, failures; and late ones, of those who lost their job."""

from __future__ import annotations

import random as chance
from functools import partial

from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.randomness import jittered, random
from holdfast.store.records import Claim, JobRecord
from holdfast.store.steps import Kind, Progress, Step
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.history import REFUSALS

TROUBLE = (*REFUSALS, CommitUnknown)
TRIES = 4
_ENDS = (Progress.DONE, Progress.DONE, Progress.DONE, Progress.FAILED, Progress.HANDLED)


def is_stepping(seed: int) -> bool:
    """Drawn apart from the plan, which stays as it was without steps."""
    return chance.Random(f"stepping:{seed}").random() < 0.5


async def take_steps(life: Life, claim: Claim) -> None:
    """Up to three, every second of them an effect. What an earlier run has done is not done again, whoever tries."""
    if (known := await _recorded(life, claim)) is None:
        return
    for number in range(1 + int(random() * 3)):
        name = f"s{number}"
        if name in known:
            if random() < 0.3 and known[name] is Progress.DONE:
                await _write(life, claim, name, number, Kind.STEP, Progress.FAILED)
            continue
        kind = Kind.AT_MOST_ONCE if number % 2 else Kind.STEP
        if kind is not Kind.STEP and not await _write(life, claim, name, number, kind, Progress.BEGUN):
            return
        await sleep(jittered(0.6))
        end = _ENDS[int(random() * len(_ENDS))]
        if not await _write(life, claim, name, number, kind, end):
            return


async def last_step(life: Life, claim: Claim) -> None:
    """After all that its body does: a zombie's comes late."""
    await _write(life, claim, "last", 9, Kind.STEP, Progress.HANDLED)


async def doubt(life: Life, claim: Claim) -> None:
    """Before it is said to be unknown: two effects of which nobody knows."""
    if (known := await _recorded(life, claim)) is None:
        return
    for number, name in enumerate(("u0", "u1"), 3):
        if name in known:
            continue
        for progress in (Progress.BEGUN, Progress.UNKNOWN):
            if not await _write(life, claim, name, number, Kind.AT_MOST_ONCE, progress):
                return


async def decide(life: Life, job: JobRecord) -> None:
    """As a person would, one effect after the other."""
    for each in await life.store.steps.load(job.id, job.generation):
        if each.progress is Progress.UNKNOWN:
            done = random() < 0.5
            resolve = partial(
                life.store.steps.resolve,
                job.id,
                actor="operator",
                effect=each.name,
                done=done,
                result="7" if done else None,
            )
            await life.history.call("resolve", (job.id, each.name, done), resolve)


async def _recorded(life: Life, claim: Claim) -> dict[str, Progress] | None:
    """What an earlier run has recorded for good; None: the store does not say."""
    load = partial(life.store.steps.load, claim.job_id, claim.generation)
    try:
        found = await life.history.call("load", (claim.job_id, claim.token), load)
    except TROUBLE:
        return None
    return {each.name: each.progress for each in found if each.progress in (Progress.DONE, Progress.HANDLED)}


async def _write(life: Life, claim: Claim, name: str, number: int, kind: Kind, progress: Progress) -> bool:
    """Whether to go on. The deaf do not believe that they have lost their job."""
    result = f'"{claim.token}"' if progress is Progress.DONE else None
    step = Step(name=name, number=number, kind=kind, progress=progress, result=result)
    asked = (claim.job_id, claim.token, name, str(progress))
    for _ in range(TRIES):
        try:
            accepted = await life.history.call("step", asked, partial(life.store.steps.write, claim, step))
        except TROUBLE:
            await sleep(jittered(0.4))
        else:
            return accepted or life.fleet.plan.deaf
    return False
