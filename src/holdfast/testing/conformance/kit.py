"""Short words for what most tests do."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Done, Outcome
from holdfast.store.ports import Store
from holdfast.store.records import Claim, Finish, JobRecord, NewJob
from holdfast.store.states import Held, State

LEASE = 30.0


def job(**options: Any) -> NewJob:
    """A plain job, unless the options say more."""
    return NewJob(**{"id": new_id(), "task": "mail.send", **options})


async def put(store: Store, **options: Any) -> str:
    """Enqueue one job and return its id."""
    (answer,) = await store.jobs.enqueue([job(**options)])
    return answer.id


async def put_many(store: Store, number: int, **options: Any) -> list[str]:
    return [answer.id for answer in await store.jobs.enqueue([job(**options) for _ in range(number)])]


async def take(store: Store, number: int = 1, queue: str = "default", *, worker: str = "w1") -> list[Claim]:
    return await store.claims.claim({queue: number}, lease=LEASE, worker=worker)


async def take_one(store: Store, queue: str = "default", *, worker: str = "w1") -> Claim:
    claims = await take(store, 1, queue, worker=worker)
    assert len(claims) == 1, f"one job of {queue!r} should be ready; there are: {await store.jobs.count()}"
    return claims[0]


async def take_suspect(store: Store, queue: str = "default", *, worker: str = "w1") -> Claim:
    claim = await store.claims.claim_suspect([queue], lease=LEASE, worker=worker)
    assert claim is not None, f"a suspect of {queue!r} should be ready; there are: {await store.jobs.count()}"
    return claim


async def end(store: Store, claim: Claim, outcome: Outcome | None = None) -> bool:
    """Finish one claim; `Done` unless told otherwise."""
    (accepted,) = await store.claims.finish([Finish(claim, Done() if outcome is None else outcome)])
    return accepted


async def the(store: Store, job_id: str) -> JobRecord:
    """The job's record; it must be there."""
    record = await store.jobs.get(job_id)
    assert record is not None, f"job {job_id} should exist, live or in the history"
    return record


async def state_of(store: Store, job_id: str) -> tuple[State, Held | None]:
    record = await the(store, job_id)
    return record.state, record.held


async def total(store: Store) -> int:
    """How many live jobs there are."""
    return sum(count.number for count in await store.jobs.count())


def ids(claims: Sequence[Claim]) -> list[str]:
    return [claim.job_id for claim in claims]


READY = (State.QUEUED, None)


def held(reason: Held) -> tuple[State, Held]:
    return State.QUEUED, reason


class Rollback(Exception):
    """Raised by a test to leave a transaction."""


@contextmanager
def raises(kind: type[BaseException], *words: str) -> Generator[None, None, None]:
    """The block must raise this, and the message must have these words."""
    message = None
    try:
        yield
    except kind as error:
        message = str(error)
    assert message is not None, f"{kind.__name__} should have been raised"
    missing = [word for word in words if word not in message]
    assert not missing, f"the message of {kind.__name__} should have {missing}: {message}"
