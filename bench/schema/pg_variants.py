"""Design C on PostgreSQL with one thing changed at a time: what each rule, index and form of SQL costs."""

from __future__ import annotations

from dataclasses import replace

from . import pg_designs as designs
from . import pg_tables as tables
from .pg_designs import HELD_BY_US, C, PgDesign, claim

HISTORY = tables.archive("history", tables.HISTORY_COLUMNS)
WITH_STATE = HELD_BY_US.replace("j.lease_until IS NOT NULL", "j.state = 'running'")
OPEN_ARRAYS = "unnest($1::uuid[], $2::bigint[], $3::text[]) AS g(id, token, result)"
TWO_ARRAYS = "j.id = ANY ($1::uuid[]) AND j.token = ANY ($2::bigint[]) AND j.lease_until IS NOT NULL"


def _tables(live: str = "", history: str = HISTORY) -> PgDesign:
    return replace(C, tables=tables.BASICS + (live or tables.live()) + history)


def _finish(old: str, new: str) -> PgDesign:
    return replace(C, step=C.step.replace(old, new), finish=C.finish.replace(old, new))


def _two_arrays() -> PgDesign:
    given = f"USING {designs.GIVEN} WHERE {HELD_BY_US}"
    changed = _finish(given, f"WHERE {TWO_ARRAYS} AND $3::text[] IS NOT NULL")
    return replace(changed, step=changed.step.replace("g.result", "'null'::text AS result"), finish=C.finish)


RENEW = "UPDATE job SET lease_until = (SELECT hf_now()) + interval '30 s' WHERE id = ANY ($1::uuid[]) AND token = $2"

VARIANTS: dict[str, PgDesign] = {
    "as chosen": C,
    "fillfactor 50": _tables(tables.live(fillfactor=50)),
    "fillfactor 70": _tables(tables.live(fillfactor=70)),
    "no CHECKs": _tables(tables.live(checks=False)),
    "no job_for_rescue": _tables(tables.live(rescue="")),
    "job_for_rescue on token": _tables(tables.live(rescue=tables.RESCUE_BY_TOKEN)),
    "no indexes for held jobs": _tables(tables.live(held=False)),
    "autovacuum defaults": _tables(tables.live(vacuum=False)),
    "history unpartitioned": _tables(history=tables.archive("history", tables.HISTORY_COLUMNS, by_day=False)),
    "history without index": _tables(history=tables.archive("history", tables.HISTORY_COLUMNS, by_id=False)),
    "claim by id": replace(C, step=designs.HISTORY_FINISH + claim(by="id")),
    "bound limit": replace(C, step=designs.HISTORY_FINISH + claim(limit="$7")),
    "fence by state": _finish(HELD_BY_US, WITH_STATE),
    "array lengths shown": _finish(designs.GIVEN, OPEN_ARRAYS),
    "fence by two arrays": _two_arrays(),
}
