"""What pages and people ask of jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from bench.million.crowd import TENANTS
from holdfast import Holdfast
from holdfast.store.states import State

Question = Callable[[Holdfast, int], Awaitable[Any]]


def _post(number: int) -> str:
    return f"post:{number * 5 + 1}"


QUESTIONS: dict[str, Question] = {
    "the time, which is no work": lambda hf, _: hf.store.now(),  # what the machine itself takes just now
    "jobs.find(unique=…)": lambda hf, number: hf.jobs.find(unique=_post(number)),
    "jobs.find(unique=[50])": lambda hf, number: hf.jobs.find(
        unique=[_post(number + place) for place in range(50)]
    ),
    "jobs.find(unique=…), over": lambda hf, number: hf.jobs.find(unique=f"old:{number}"),
    "jobs.find(tenant=…)": lambda hf, number: hf.jobs.find(tenant=f"tenant:{number % TENANTS}", limit=50),
    "jobs.find(tenant=…, dead)": lambda hf, number: hf.jobs.find(
        tenant=f"tenant:{number % TENANTS}", states={State.DEAD}
    ),
    "jobs.find(tenant=…, succeeded)": lambda hf, number: hf.jobs.find(
        tenant=f"tenant:{number % TENANTS}", states={State.SUCCEEDED}
    ),
    "jobs.find(correlation_id=…)": lambda hf, number: hf.jobs.find(correlation_id=f"story:{number}"),
    "dead.find()": lambda hf, _: hf.dead.find(limit=50),
    "dead.find(queue=…), none": lambda hf, _: hf.dead.find(queue="nowhere"),
    "unknown.find()": lambda hf, _: hf.unknown.find(limit=50),
    "queues.count()": lambda hf, _: hf.queues.count(),
    "tenants.paused()": lambda hf, _: hf.tenants.paused(),
}
