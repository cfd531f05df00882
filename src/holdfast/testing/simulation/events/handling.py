"""Handlers of simulated subscribers: each plays what its event says of its group, writes its row, and emits what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.events.event import AnyEvent
from holdfast.jobs.control import Reject, Retry
from holdfast.jobs.job import Job
from holdfast.kernel.clock import sleep
from holdfast.store.ports import Tx
from holdfast.testing.simulation.events.spec import BILLED, GroupSpec
from holdfast.testing.simulation.fleet import Life

ROW = "INSERT INTO sim_handled (handler, event_id, job_id, token) VALUES ($1, $2, $3, $4)"


class Broken(Exception):
    """A handler of the simulation failed."""


def handler(life: Life, group: GroupSpec) -> Callable[..., Any]:
    """One for each group, by the name of it."""

    async def in_transaction(event: AnyEvent, job: Job, tx: Tx) -> None:
        end = _begins(life, group, event, job)
        await _spend(end, within=True)
        _fails(end, "fail")
        await tx.execute(ROW, group.name, event.id, job.id, job.token)
        if group.emits and event.type != BILLED:
            data = {"op": event.data["op"], "cause": event.id, "by": group.name, "plays": event.data["plays"]}
            await life.app.emit(BILLED, data, key=event.key, tx=tx)
        _fails(end, "fail late")

    async def alone(event: AnyEvent, job: Job) -> None:
        end = _begins(life, group, event, job)
        await _spend(end, within=False)
        _fails(end, "fail")
        life.history.event("done outside", (group.name, event.id))
        _fails(end, "fail late")

    return in_transaction if group.with_tx else alone


def _begins(life: Life, group: GroupSpec, event: AnyEvent, job: Job) -> str:
    """How this run ends. Written down with all that the handler was given."""
    told = (event.type, event.key, event.version, event.correlation_id, event.causation_id, event.trace)
    life.history.event("handling", (group.name, event.id, told, event.data, job.id, job.token))
    ends = event.data.get("plays", {}).get(group.name) or ["done"]
    if life.fleet.healed:
        return "done"  # its code is mended
    run = (group.name, event.id)
    life.fleet.runs[str(run)] += 1
    end: str = ends[min(life.fleet.runs[str(run)], len(ends)) - 1]
    if end == "retry":
        raise Retry(after=0.5)
    if end == "reject":
        raise Reject("simulated")
    return end


async def _spend(end: str, *, within: bool) -> None:
    """Longer than a lease only outside of a transaction: within one it would be cut off."""
    if end == "slow":
        await sleep(0.6)
    elif end == "long":
        await sleep(2.0 if within else 8.0)


def _fails(end: str, how: str) -> None:
    if end == how:
        raise Broken(how)
