"""Find jobs, newest first: by their keys along the indexes made for it, and by anything else along their ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from holdfast.store.postgres.rows import LIVE, OVER, one_story, to_record
from holdfast.store.records import FIRST_ID, LAST_ID, JobRecord
from holdfast.store.statements import Procedure, Statement
from holdfast.store.states import LIVE as LIVE_STATES
from holdfast.store.states import OVER as OVER_STATES
from holdfast.store.states import Held, State

_LIVE, _OVER = f"SELECT {LIVE} FROM holdfast.job j", f"SELECT {OVER} FROM holdfast.history h"


def find(
    *, state: State | None, held: Held | None, before: str | None, limit: int, **wanted: str | None
) -> Procedure[list[JobRecord]]:
    """Newest first: ids are minted in the order of time, and have an index."""
    found: list[JobRecord] = []
    ended = state in (State.DEAD, State.UNKNOWN) and wanted.get("correlation_id") is None
    wanted = {"state": None if ended else state, **wanted}
    if state not in OVER_STATES:
        select = f"{_LIVE} WHERE {_ended(state)}" if ended and state else f"{_LIVE} WHERE true"
        order = "j.state DESC, j.id DESC" if ended else "j.id DESC"
        rows = yield _find(select, order, {"held": held, **wanted}, before, limit)
        found += map(to_record, rows)
    if held is None and (state is None or state in OVER_STATES):
        rows = yield _find(f"{_OVER} WHERE true", "h.id DESC", wanted, before, limit)
        found += map(to_record, rows)
    return _newest(found, limit)


def _ended(state: State) -> str:
    """Written so that only the index of these is left: any other would be walked for those that are rare."""
    return f"""j.state IN ('dead', 'unknown') AND (j.state, j.id) > ('{state}', '{FIRST_ID}')
        AND (j.state, j.id) < ('{state}', '{LAST_ID}')"""


def _find(
    select: str, order: str, wanted: Mapping[str, str | None], before: str | None, limit: int
) -> Statement:
    table = order[0]
    given = {column: str(value) for column, value in wanted.items() if value is not None}
    tests = [f"{table}.{column} = ${place}::text" for place, column in enumerate(given, 2)]
    if "correlation_id" in given:
        place = 2 + list(given).index("correlation_id")
        tests[place - 2], order = one_story(table, "id", place)
    params = (limit, *given.values())
    if before is not None:
        params = (*params, before)
        tests.append(f"{table}.id < ${len(params)}::uuid")
    where = "".join(f" AND {test}" for test in tests)
    return Statement(f"{select}{where} ORDER BY {order} LIMIT $1", params)


def of_unique(keys: Sequence[str], each: int) -> Procedure[list[JobRecord]]:
    """The newest of each key, so many."""
    found: list[JobRecord] = []
    for sql in (_UNIQUE_LIVE, _UNIQUE_OVER):
        found += map(to_record, (yield Statement(sql, (list(keys), each))))
    kept: dict[str | None, int] = {}
    newest = []
    for record in _once_each(found):
        kept[record.unique] = kept.get(record.unique, 0) + 1
        if kept[record.unique] <= each:
            newest.append(record)
    return newest


_KEY = "t.unique_key >= k.key AND t.unique_key <= k.key"
_NEWEST = "ORDER BY t.unique_key DESC, t.id DESC LIMIT $2"
_UNIQUE_LIVE = f"""
SELECT {LIVE} FROM unnest($1::text[]) AS k(key) CROSS JOIN LATERAL (
    (SELECT * FROM holdfast.job t WHERE t.unique_key = k.key AND t.unique_key IS NOT NULL AND t.state <> 'dead')
    UNION ALL (SELECT * FROM holdfast.job t WHERE {_KEY} AND t.state = 'dead' {_NEWEST})) AS j"""
_UNIQUE_OVER = f"""
SELECT {OVER} FROM unnest($1::text[]) AS k(key) CROSS JOIN LATERAL (
    SELECT * FROM holdfast.history t WHERE {_KEY} {_NEWEST}) AS h"""


def of_tenant(
    tenant: str, states: Collection[State], before: str | None, limit: int
) -> Procedure[list[JobRecord]]:
    found: list[JobRecord] = []
    for select, table, some in ((_LIVE, "j", LIVE_STATES), (_OVER, "h", OVER_STATES)):
        wanted = sorted(some & set(states)) if states else sorted(some)
        if wanted:
            parts = [_of_tenant(select, table, state) for state in wanted]
            params = (limit, tenant, before or LAST_ID)
            found += map(to_record, (yield Statement(" UNION ALL ".join(parts), params)))
    return _newest(found, limit)


def _of_tenant(select: str, table: str, state: State) -> str:
    columns = f"({table}.tenant, {table}.state, {table}.id)"
    return f"""({select} WHERE {table}.tenant IS NOT NULL AND {columns} > ($2::text, '{state}', '{FIRST_ID}')
        AND {columns} < ($2::text, '{state}', $3::uuid)
        ORDER BY {table}.tenant DESC, {table}.state DESC, {table}.id DESC LIMIT $1)"""


def _newest(found: Sequence[JobRecord], limit: int) -> list[JobRecord]:
    return _once_each(found)[:limit]


def _once_each(found: Sequence[JobRecord]) -> list[JobRecord]:
    """The newest first. One that has ended between two statements is in both answers: the later one counts."""
    records = {record.id: record for record in found}
    return [records[job_id] for job_id in sorted(records, reverse=True)]
