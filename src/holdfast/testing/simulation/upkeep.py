"""What any process does beside its jobs: rescue, promote, expire, repair, let go, prune."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.randomness import jittered, random
from holdfast.store.states import Held, State
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.history import REFUSALS
from holdfast.testing.simulation.plan import GUARDS, KEEP, SCAN
from holdfast.testing.simulation.stepping import decide


async def upkeep(life: Life) -> None:
    """The program: rounds of upkeep, about every SCAN seconds."""
    await _rescue_last_life(life)
    while not life.process.draining:
        await sleep(jittered(SCAN / 2))
        await _try(life, "promote", lambda: life.store.holds.promote(window=life.fleet.plan.window))
        await sleep(jittered(SCAN / 2))
        await _try(life, "rescue", life.store.claims.rescue)
        if random() < 0.4:
            await _try(life, "expire", life.store.holds.expire)
        if life.fleet.healed or random() < 0.3:
            await _unhold(life)
        if random() < 0.1:
            await _try(life, "repair", life.store.holds.repair)
        if random() < 0.05:
            await _try(life, "prune", lambda: life.store.history.prune(keep=KEEP))
            await _try(life, "prune_keys", life.store.keys.prune)
            await _try(life, "prune_leases", life.store.leases.prune)


async def _unhold(life: Life) -> None:
    """All of them, or those of one queue or one guard."""
    queue = life.fleet.plan.queues[0] if random() < 0.2 else None
    guard = GUARDS[0] if random() < 0.2 else None
    unhold = partial(life.store.holds.unhold, Held.GUARD, queue=queue, guard=guard)
    await _try(life, "unhold", unhold, (queue, guard))


async def operate(life: Life) -> None:
    """The program of a person, after the heal: resume what was left paused, and decide what is unknown."""
    while not life.process.draining:
        await sleep(jittered(6.0))
        if life.fleet.healed and life.fleet.life_on(0) is life:
            await _try(life, "resume", lambda: resume_all(life))
            await _decide_unknown(life)


async def resume_all(life: Life) -> None:
    for paused in await life.store.queues.paused():
        await life.store.queues.resume(paused.queue, by="operator")
    for stopped in await life.store.tenants.paused():
        await life.store.tenants.resume(stopped.tenant, by="operator")


async def _decide_unknown(life: Life) -> None:
    """Say of each effect whether it was done, or give the job up."""
    try:
        for job in await life.store.jobs.find(state=State.UNKNOWN):
            if life.fleet.plan.stepping and random() < 0.5:
                await decide(life, job)
            else:
                cancel = partial(life.store.jobs.cancel, job.id, "nobody knows")
                await life.history.call("give up", job.id, cancel)
    except (*REFUSALS, CommitUnknown):
        return  # the next round tries again


async def _rescue_last_life(life: Life) -> None:
    """A supervisor that saw a process die need not wait for its leases."""
    node = life.process.node
    if node.lives > 1 and random() < 0.3:
        dead = f"{node.name}.{node.lives - 1}"
        await _try(life, "rescue_worker", lambda: life.store.claims.rescue_worker(dead), dead)


async def _try(life: Life, verb: str, work: Callable[[], Awaitable[object]], asked: object = None) -> None:
    try:
        await life.history.call(verb, asked, work)
    except (*REFUSALS, CommitUnknown):
        return  # the next round tries again
