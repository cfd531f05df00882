"""Guarded tasks: their guard is asked before each run, and their bodies call through it, or do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.guards.backoff import Backoff
from holdfast.guards.faults import Fault, fault_of
from holdfast.guards.guard import Guard
from holdfast.jobs.job import Job
from holdfast.jobs.registry import Registry
from holdfast.jobs.task import Sender
from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import DeadlinePassed, Refused
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.guards.calling import Calling
from holdfast.testing.simulation.guards.spec import GuardSpec, RateSpec
from holdfast.testing.simulation.plan import Beat
from holdfast.testing.simulation.service.tasks import Watch

ATTEMPTS = 2
BEGUN = "run begun"


def declare(
    registry: Registry, sender: Sender, life: Life, guards: Mapping[str, Guard[Any]], calling: Calling
) -> None:
    """One task for each guard, of the same name."""
    assert life.fleet.plan.traffic is not None
    for spec in life.fleet.plan.traffic.guards:
        options = {
            "name": spec.name,
            "guard": guards[spec.name],
            "retry": Backoff(attempts=ATTEMPTS, first=0.4, ceiling=1.5),
        }
        registry.add(_task(life, spec, guards[spec.name], calling), sender, options)
    for rate in life.fleet.plan.traffic.rates:
        registry.add(_rated(life, rate), sender, {"name": rate.task, "rate": rate.given})
    registry.hooks.use(Watch(life))


def _rated(life: Life, rate: RateSpec) -> Any:
    async def play(job: Job, op: int, place: int, script: list[Beat], user: str) -> None:  # noqa: ARG001
        life.history.event(BEGUN, (rate.name, "" if rate.per is None else f"user:{user}", job.id))
        await sleep(script[0].seconds)

    return play


def _task(life: Life, spec: GuardSpec, guard: Guard[Any], calling: Calling) -> Any:
    async def play(job: Job, op: int, place: int, script: list[Beat], user: str) -> None:  # noqa: ARG001
        life.history.event(BEGUN, (spec.name, "" if spec.per is None else f"user:{user}", job.id))
        beat = script[0]
        await sleep(beat.seconds)
        try:
            for _ in range({"call": 1, "call twice": 2}.get(beat.outcome, 0)):
                await calling.call(spec, user, job.id)
        except Exception as error:
            life.history.event("body failed", (job.id, job.token, job.attempt, _why(guard, error)))
            raise

    return play


def _why(guard: Guard[Any], error: Exception) -> str:
    """Whether it is no fault of the job."""
    if isinstance(error, Refused) and not isinstance(error, DeadlinePassed):
        return "refused"
    fault = fault_of(error, guard.classify)
    if guard.uncharged is not None:
        return "uncharged" if fault in guard.uncharged else "failed"
    return "throttled" if fault is Fault.THROTTLED else "failed"
