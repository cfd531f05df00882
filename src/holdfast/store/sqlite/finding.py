"""Find jobs, newest first: by their keys along the indexes made for it, and by anything else along their numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.store.records import JobRecord
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.rows import RECORD, to_record
from holdfast.store.states import Held, State

_JOB = "FROM holdfast_job AS j\n"


def _record_of(rows: str) -> str:
    """The record of each of these rows, in their order: SQLite begins with what stands first in a CROSS JOIN."""
    assert _JOB in RECORD
    return RECORD.replace(_JOB, f"FROM {rows} CROSS JOIN holdfast_job AS j ON j.seq = d.seq\n", 1)


_PARKED = _record_of("holdfast_parked AS d INDEXED BY holdfast_parked_by_state")


def find(
    db: Db,
    *,
    state: State | None,
    correlation_id: str | None,
    before: str | None,
    limit: int,
    **wanted: Any,
) -> list[JobRecord]:
    given = {column: str(value) for column, value in wanted.items() if value is not None}
    # Written out: SQLite uses an index of such rows only for what it can read in the statement.
    of_reason = f"held = '{Held(given.pop('held'))}'" if "held" in given else "true"
    is_ended = state in (State.DEAD, State.UNKNOWN) and correlation_id is None
    if state is not None and not is_ended:
        given["state"] = str(state)
    where = " AND ".join([of_reason, *(f"{column} = :{column}" for column in given)])
    of_story = "true" if correlation_id is None else "j.correlation_id = :correlation_id"
    records, place = (
        (f"{_PARKED} WHERE d.state = '{state}' AND", "d.seq") if is_ended else (f"{RECORD} WHERE", "j.seq")
    )
    older = "true" if before is None else f"{place} < {_PLACE}"
    sql = f"SELECT * FROM ({records} {of_story} AND {older} ORDER BY {place} DESC) WHERE {where} LIMIT :limit"
    named = {"correlation_id": correlation_id, "before": before, "limit": limit}
    return _records(db, sql, {**given, **named})


# Of one that is gone: that of the last with a smaller id, since ids are minted in the order of time.
_PLACE = """coalesce((SELECT seq FROM holdfast_job WHERE id = :before),
    (SELECT seq + 1 FROM holdfast_job WHERE id < :before ORDER BY id DESC LIMIT 1))"""


def of_unique(db: Db, *, keys: Sequence[str], each: int) -> list[JobRecord]:
    """The newest of each key, so many."""
    found: list[int] = []
    for key in dict.fromkeys(keys):
        found += [seq for (seq,) in db.rows(_UNIQUE, key, each)]
    return _records(db, _BY_SEQ, {"numbers": msgspec.json.encode(found).decode()})


_UNIQUE = (
    "SELECT seq FROM holdfast_job WHERE unique_key = ? AND unique_key IS NOT NULL ORDER BY seq DESC LIMIT ?"
)
_BY_SEQ = f"{RECORD} WHERE j.seq IN (SELECT value FROM json_each(:numbers)) ORDER BY j.seq DESC"
_OF_TENANT = """SELECT d.seq FROM holdfast_job AS d INDEXED BY holdfast_job_of_tenant
    WHERE d.tenant = :tenant AND d.tenant IS NOT NULL"""
_IN = {
    State.QUEUED: "EXISTS (SELECT 1 FROM holdfast_queued AS q WHERE q.seq = d.seq)",
    State.SUCCEEDED: "EXISTS (SELECT 1 FROM holdfast_over AS o WHERE o.seq = d.seq AND o.state = 'succeeded')",
    State.CANCELLED: "EXISTS (SELECT 1 FROM holdfast_over AS o WHERE o.seq = d.seq AND o.state = 'cancelled')",
    State.RUNNING: "d.seq IN (SELECT seq FROM holdfast_running)",
    State.DEAD: "d.seq IN (SELECT seq FROM holdfast_parked WHERE state = 'dead')",
    State.UNKNOWN: "d.seq IN (SELECT seq FROM holdfast_parked WHERE state = 'unknown')",
}


def of_tenant(
    db: Db, *, tenant: str, states: Collection[State], before: str | None, limit: int
) -> list[JobRecord]:
    """The numbers first, along the index alone: most jobs of a tenant may be in other states."""
    of_states = " OR ".join(_IN[state] for state in states) or "true"
    older = "true" if before is None else f"d.seq < {_PLACE}"
    sql = f"{_OF_TENANT} AND ({of_states}) AND {older} ORDER BY d.seq DESC LIMIT :limit"
    named = {"tenant": tenant, "before": before, "limit": limit}
    found = [seq for (seq,) in db.connection.execute(sql, named)]
    return _records(db, _BY_SEQ, {"numbers": msgspec.json.encode(found).decode()})


def _records(db: Db, sql: str, named: Mapping[str, Any]) -> list[JobRecord]:
    return [to_record(row) for row in db.connection.execute(sql, named).fetchall()]
