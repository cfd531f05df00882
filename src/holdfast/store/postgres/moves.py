"""Out of the live table without having run to the end: cancelled by someone, or expired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from holdfast.kernel.errors import StoreUnavailable
from holdfast.kernel.show import storable
from holdfast.store import saga_verdicts
from holdfast.store.doubts import EXPIRED, noted, unsure
from holdfast.store.postgres.doubts import HAS_STEPS, leave_to_person
from holdfast.store.postgres.locks import Keys, lock_chain, take_chain
from holdfast.store.postgres.promotion import pass_on
from holdfast.store.postgres.rows import MOVED, MOVED_J, same_id
from holdfast.store.records import Cancelled, Ended
from holdfast.store.statements import Procedure, Statement
from holdfast.store.states import State


def cancel(job_id: str, reason: str, *, running: bool = True) -> Procedure[Cancelled | None]:
    """`running`: one that runs is asked to stop; else it is left alone."""
    met = yield from lock_job(job_id, "true" if running else "j.state <> 'running'")
    if not isinstance(met, Locked):
        return None if met is None else Cancelled(met, met)
    for carried in (yield Statement(_CARRIED, (job_id,))):
        raise saga_verdicts.refuse_cancel(job_id, carried[0])
    if met.state is State.RUNNING:
        asked = "UPDATE holdfast.job SET reason = $2::text WHERE id = $1::uuid"
        yield Statement(asked, (job_id, storable(reason)))
        return Cancelled(State.RUNNING, State.RUNNING)
    effects = (yield from leave_to_person([job_id])) if met.has_steps else {}
    yield from bury([job_id], noted(reason, effects.get(job_id, [])))
    return Cancelled(State.CANCELLED, met.state)


class Locked(msgspec.Struct, frozen=True):
    """A live job whose keys and row are ours until the transaction ends."""

    state: State
    has_steps: bool


def lock_job(job_id: str, fit: str) -> Procedure[Locked | State | None]:
    """Lock a job that is `fit`. One that is not stays free for its holder, and the answer is the state it is in.

    What has keys is looked at first without a lock, because its keys must be locked before its row.
    """
    rows = yield Statement(_KEYS, (job_id,))
    for row in rows:
        yield from lock_chain([Keys(*row)])
    for _ in range(_LOOKS):
        rows = yield Statement(_LOCK.format(fit=fit), (job_id,))
        if rows:
            return Locked(State(rows[0][0]), rows[0][1])
        rows = yield Statement(_UNFIT.format(fit=fit), (job_id,))
        if not rows:
            return (yield from _state_when_over(job_id))
        if not rows[0][1]:
            return State(rows[0][0])
    raise StoreUnavailable(
        f"Job {job_id} was claimed and put back {_LOOKS} times while it was being looked at. Nothing was changed; try again."
    )


_LOOKS = 10  # at a job that is claimed and put back meanwhile
_KEYS = "SELECT ordering_key, concurrency_key FROM holdfast.job WHERE id = $1::uuid"
_LOCK = f"SELECT j.state, {HAS_STEPS} FROM holdfast.job j WHERE j.id = $1::uuid AND {{fit}} FOR UPDATE"
_UNFIT = "SELECT j.state, {fit} FROM holdfast.job j WHERE j.id = $1::uuid"
_CARRIED = "SELECT id FROM holdfast.saga WHERE job_id = $1::uuid AND finished_at IS NULL"


def _state_when_over(job_id: str) -> Procedure[State | None]:
    rows = yield Statement("SELECT state FROM holdfast.history WHERE id = $1::uuid", (job_id,))
    return State(rows[0][0]) if rows else None


class Expired(msgspec.Struct, frozen=True):
    job_id: str
    keys: Keys


def find_expired(limit: int, skip: int = 0) -> Procedure[list[Expired]]:
    sql = """SELECT id::text, ordering_key, concurrency_key FROM holdfast.job
        WHERE expires_at IS NOT NULL AND state = 'queued' AND expires_at <= (SELECT holdfast.now())
        ORDER BY expires_at, id LIMIT $1 OFFSET $2"""
    return [Expired(row[0], Keys(row[1], row[2])) for row in (yield Statement(sql, (limit, skip)))]


def expire_found(limit: int) -> Procedure[list[Ended]]:
    """In one transaction, past those that are passed over."""
    gone, passed_over = list[Ended](), 0
    while len(gone) < limit:
        found = yield from find_expired(limit - len(gone), passed_over)
        if not found:
            break
        part = yield from expire(found)
        gone += part
        passed_over += len(found) - len(part)
    return gone


def expire(found: Sequence[Expired]) -> Procedure[list[Ended]]:
    lacking = yield from take_chain([item.keys for item in found])
    sql = f"""SELECT j.id::text, {HAS_STEPS}, j.task FROM holdfast.job j WHERE j.id = ANY($1::uuid[]) AND j.state = 'queued'
        AND j.expires_at <= holdfast.now() ORDER BY j.id FOR UPDATE SKIP LOCKED"""
    rows = yield Statement(sql, ([item.job_id for item in found if item.keys not in lacking],))
    with_steps = [row[0] for row in rows if row[1]]
    effects = (yield from leave_to_person(with_steps)) if with_steps else {}
    yield from _park(effects)
    yield from bury([row[0] for row in rows if row[0] not in effects], EXPIRED)
    return [Ended(row[0], row[2], State.UNKNOWN if row[0] in effects else State.CANCELLED) for row in rows]


def _park(effects: Mapping[str, Sequence[str]]) -> Procedure[None]:
    """Jobs that expired while nobody knows of these effects. They keep their turns and unique keys."""
    if not effects:
        return
    reasons = [unsure(EXPIRED, names) for names in effects.values()]
    rows = yield Statement(_PARK, (list(effects), reasons))
    yield from pass_on([Keys(None, row[0]) for row in rows])


_PARK = f"""
UPDATE holdfast.job j SET state = 'unknown', held = NULL, slot = NULL, reason = g.reason
FROM unnest($1::uuid[], $2::text[]) AS g(id, reason) WHERE {same_id("g")} RETURNING j.concurrency_key"""


def bury(job_ids: Sequence[str], reason: str) -> Procedure[int]:
    """Move jobs whose rows and keys we have locked to the history, and pass on what they held."""
    if not job_ids:
        return 0
    rows = yield Statement(_BURY, (list(job_ids), storable(reason)))
    yield from pass_on([Keys(*row) for row in rows])
    return len(rows)


_BURY = f"""
WITH gone AS (
    DELETE FROM holdfast.job j WHERE j.id = ANY($1::uuid[]) AND j.state <> 'running' RETURNING {MOVED_J}),
kept AS (
    INSERT INTO holdfast.history ({MOVED}, state, finished_at, reason)
    SELECT {MOVED}, 'cancelled', (SELECT holdfast.now()), $2::text FROM gone)
SELECT ordering_key, concurrency_key FROM gone"""
