"""What became of ends that a process had sent when it was killed: the database knows by the job's token."""

from __future__ import annotations

from collections import Counter

from holdfast.kernel.errors import TROUBLE
from holdfast.store.ports import Store
from holdfast.store.states import State

_STATES = {
    "succeeded": State.SUCCEEDED,
    "cancelled": State.CANCELLED,
    "dead": State.DEAD,
    "unknown": State.UNKNOWN,
    "failed": State.QUEUED,
    "snoozed": State.QUEUED,
}


async def settle(store: Store, sent: bytes) -> list[tuple[int, float]] | None:
    """How many to add where. None: it cannot be told yet."""
    found = Counter[int]()
    try:
        for line in sent.decode().splitlines():
            job, token, interruptions, outcome, place = line.split()
            was_written = await _was_written(store, job, int(token), int(interruptions), outcome)
            if was_written is None:
                return None
            found[int(place)] += was_written
    except TROUBLE:
        return None
    return [(place, float(number)) for place, number in found.items() if number]


async def _was_written(
    store: Store, job_id: str, token: int, interruptions: int, outcome: str
) -> bool | None:
    """One that still runs under this token will be rescued: until then its end may be on its way. A rescue is charged."""
    record = await store.jobs.get(job_id)
    if record is None or record.token != token:
        return False
    if record.state is State.RUNNING:
        return None
    return record.state is _STATES[outcome] and record.interruptions == interruptions
