"""A million jobs: most of them for later, each with a tenant and a unique key; some ready, some over, a few dead or unknown."""

from __future__ import annotations

from bench.place import arguments
from holdfast import Holdfast
from holdfast.kernel.codec import encode
from holdfast.kernel.ids import new_ids
from holdfast.kernel.outcomes import Dead, Done, Outcome, Unknown
from holdfast.store.records import Finish, NewJob

TENANTS = 1_000
ENDED = 2_000  # jobs that were run
_PART = 500
_LATER = 30 * 86_400.0


async def fill(hf: Holdfast, jobs: int) -> None:
    await _end(hf)
    for start in range(0, jobs, _PART):
        ids = new_ids(min(_PART, jobs - start))
        await hf.store.jobs.enqueue([_job(job_id, start + place) for place, job_id in enumerate(ids)])


def _job(job_id: str, number: int) -> NewJob:
    args = encode(arguments(number))
    if number % 5 == 0:
        return NewJob(id=job_id, task="plain", args=args, queue=f"plain{number % 3}")
    tenant, unique = f"tenant:{number % TENANTS}", f"post:{number}"
    return NewJob(
        id=job_id, task="publish", args=args, tenant=tenant, unique=unique, delay=_LATER + number % 10_000,
        correlation_id=f"story:{number // 3}",
    )  # fmt: skip


async def _end(hf: Holdfast) -> None:
    ids = new_ids(ENDED)
    made = [
        NewJob(id=job_id, task="publish", tenant=f"tenant:{number % TENANTS}", unique=f"old:{number}")
        for number, job_id in enumerate(ids)
    ]
    await hf.store.jobs.enqueue(made)
    ended = 0
    while ended < ENDED:
        await hf.store.holds.promote(limit=500)
        claims = await hf.store.claims.claim({"default": 500}, lease=60, worker="bench")
        finishes = [Finish(claim, _outcome(ended + place)) for place, claim in enumerate(claims)]
        await hf.store.claims.finish(finishes)
        ended += len(claims)


def _outcome(number: int) -> Outcome:
    if number % 100 == 0:
        return Dead("it would not")
    return Unknown("nobody knows") if number % 100 == 1 else Done()
