"""The person beside sagas: decides truthfully about those that need one, sends what is waited for in vain, and prunes."""

from __future__ import annotations

from holdfast.kernel.clock import sleep
from holdfast.kernel.codec import encode
from holdfast.kernel.randomness import jittered, random
from holdfast.store.saga_records import STUCK, SagaRecord, SagaState
from holdfast.store.steps import OPEN, Progress
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.plan import LEASE
from holdfast.testing.simulation.sagas.calling import TROUBLE
from holdfast.testing.simulation.sagas.provider import Provider
from holdfast.testing.simulation.sagas.spec import GO, PAID, TICKED

KEPT = 3.0  # seconds for which what is over is kept when somebody prunes
QUIET = LEASE + 8.0  # seconds after the heal: who lost a job has stopped, and what it sent has arrived
IN_VAIN = 25.0  # seconds after the heal, until which nothing is sent that was not planned
UNDO = "undo/"


async def operate(life: Life) -> None:
    """The program."""
    story = life.fleet.plan.story
    assert story is not None
    while not life.process.draining:
        await sleep(jittered(5.0))
        if life.fleet.life_on(0) is not life:
            continue
        try:
            if story.prunes:
                await life.store.sagas.prune(keep=KEPT)
            since = life.fleet.loop.time() - life.fleet.healed_at if life.fleet.healed else 0.0
            if since > QUIET and story.decides:
                await _decide_all(life)
            if since > IN_VAIN:
                await _send(life)
        except TROUBLE:
            continue  # the next round tries again


async def _decide_all(life: Life) -> None:
    for state in sorted(STUCK):
        for record in await life.store.sagas.find(state=state):
            await _decide(life, record)


async def _decide(life: Life, record: SagaRecord) -> None:
    """What nobody knew, this person does. Else it is tried once more, or undone."""
    provider: Provider = life.fleet.provider
    job = await life.store.jobs.get(record.job_id)
    steps = [] if job is None else await life.store.steps.load(record.job_id, job.generation)
    for each in steps:
        ref = f"{record.id}/{each.name}"
        if (
            each.progress in OPEN
            and not each.name.startswith((UNDO, "wait/"))
            and not provider.is_under_way(ref)
        ):
            done = ref in provider.there
            await life.store.sagas.settle(
                record.id, each.name, done=done, result=encode(ref) if done else None, actor="operator"
            )
            return
        if each.name.startswith(UNDO) and "wait/" not in each.name and each.progress is Progress.FAILED:
            gone = f"{record.id}/{each.name.removeprefix(UNDO)}" not in provider.there
            if gone and random() < 0.5:
                await life.store.sagas.settle(record.id, each.name, done=True, actor="operator")
                return
    if random() < 0.3 and not record.undoing:
        await life.store.sagas.cancel(record.id, actor="operator", reason="it is stuck")
    elif random() < 0.5:
        await life.store.sagas.retry(record.id, actor="operator")


async def _send(life: Life) -> None:
    """What sagas wait for without a timeout comes at last."""
    for record in await life.store.sagas.find(state=SagaState.WAITING):
        waits = record.waits or ""
        if "signal" in waits:
            await life.store.sagas.signal(record.id, GO)
        for type_, key in ((PAID, record.id), (TICKED, None)):
            if type_ in waits:
                await life.app.bus.emitter.emit(type_, {"op": -1}, key=key, tx=None, expect=None)
