"""From the raw limit to design C on PostgreSQL, one promise at a time: what each of them costs."""

from __future__ import annotations

from dataclasses import replace

from . import pg_designs as designs
from . import pg_tables as tables
from .pg_designs import GIVEN, HELD_BY_US, C, PgDesign, claim

NARROW = f"""{tables.BASICS}
CREATE TABLE job (
  id uuid PRIMARY KEY, rank bigint NOT NULL DEFAULT nextval('rank_seq'), priority smallint NOT NULL DEFAULT 0,
  suspect boolean NOT NULL DEFAULT false, held text, queue text NOT NULL, task text NOT NULL, args text NOT NULL,
  correlation_id text NOT NULL, attempt int NOT NULL DEFAULT 0, alone boolean, state text NOT NULL DEFAULT 'queued',
  token bigint, lease_until timestamptz, started_at timestamptz, worker text);
{tables.CLAIM_INDEX}"""
WIDE = tables.BASICS + tables.live(checks=False, held=False, rescue="")
RESCUED = tables.BASICS + tables.live(checks=False, held=False)
WHOLE = tables.BASICS + tables.live()
FORGET = f"WITH gone AS (DELETE FROM job j USING {GIVEN} WHERE {HELD_BY_US} RETURNING j.id) "
FEW = claim(returned="j.id, j.token, j.rank, j.args")


def _step(made: str, then: str) -> PgDesign:
    return replace(C, tables=made, step=FORGET + then, finish=FORGET + "SELECT id FROM gone")


STEPS: dict[str, PgDesign] = {
    "ids of callers, fenced": _step(NARROW, FEW),
    "the wide row": _step(WIDE, FEW),
    "all columns handed over": _step(WIDE, claim()),
    "index for rescue": _step(RESCUED, claim()),
    "indexes and checks for held jobs": _step(WHOLE, claim()),
    "what is over is kept": designs.C,
}
