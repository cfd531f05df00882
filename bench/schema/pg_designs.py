"""PostgreSQL designs: the tables of each and the SQL of its verbs.

Parameters of a fenced step: $1 ids, $2 tokens, $3 results (what to finish), $4 queue, $5 worker, $6 lowest rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import pg_tables as tables

NOW = "(SELECT hf_now())"
ARGS = """'{"seq": ' || g || ', "t": 1763179200000000000, "s": 0.0, "pad": "' || repeat('x', 40) || '"}'"""


@dataclass(frozen=True)
class PgDesign:
    """`step` finishes what $1.. name and claims {batch} more, in one statement; `finish` is its first half."""

    tables: str
    fill: str
    step: str
    finish: str
    insert: str
    finished: str = ""
    claim: str = ""
    fenced: bool = True
    kept: str = ""


# --- the raw limit: no fence, no history, narrow rows ------------------------------------------------------

LIMIT_CLAIM = """
UPDATE jobs SET state = 1, attempts = attempts + 1, locked_at = now()
 WHERE id = ANY (ARRAY(SELECT id FROM jobs WHERE queue = 'default' AND state = 0 AND run_at <= now()
                        ORDER BY run_at, id LIMIT {limit} FOR UPDATE SKIP LOCKED))
RETURNING id, payload"""
LIMIT_ACK = "DELETE FROM jobs WHERE id = ANY ($1::bigint[])"

LIMIT = PgDesign(
    tables=tables.LIMIT,
    fill=f"INSERT INTO jobs (payload) SELECT {ARGS} FROM generate_series(1, $1::int) g",
    step=f"WITH acked AS ({LIMIT_ACK}) " + LIMIT_CLAIM.format(limit="$2"),
    finish=LIMIT_ACK,
    insert="INSERT INTO jobs (payload) SELECT a FROM unnest($1::uuid[], $2::text[]) AS n(id, a)",
    fenced=False,
)
LIMIT_APART = replace(LIMIT, claim=LIMIT_CLAIM.format(limit="$1"))

# --- shared by A and C: one live row per job ---------------------------------------------------------------

FILL = f"""
INSERT INTO job (id, task, queue, args, correlation_id)
SELECT uuidv7(), 'mail.send', 'default', {ARGS}, uuidv7()::text FROM generate_series(1, $1::int) g"""
INSERT = """
INSERT INTO job (id, task, queue, args, correlation_id)
SELECT i, 'mail.send', 'default', a, i::text FROM unnest($1::uuid[], $2::text[]) AS n(i, a) ON CONFLICT (id) DO NOTHING"""

RETURNED = """j.id, j.token, j.rank, j.task, j.queue, j.args, j.attempt, j.interruptions, j.deadline_at,
          j.correlation_id, j.causation_id, j.trace, j.generation, j.tenant"""


def claim(by: str = "ctid", limit: str = "{batch}", returned: str = RETURNED) -> str:
    """A literal limit lets the cached plan be a good one; ARRAY() is evaluated once, so the limit holds."""
    return f"""
UPDATE job j SET attempt = attempt + 1, alone = false, state = 'running', token = (SELECT nextval('token_seq')),
       lease_until = {NOW} + interval '30 s', started_at = {NOW}, worker = $5
 WHERE {by} = ANY (ARRAY(SELECT {by} FROM job
         WHERE queue = $4 AND state = 'queued' AND held IS NULL AND NOT suspect AND rank >= $6
         ORDER BY priority DESC, rank LIMIT {limit} FOR UPDATE SKIP LOCKED))
RETURNING {returned}"""


# The sub-selects hide the arrays' length: told "500 rows" and "no row has a token" (as statistics of an idle table
# say), the planner joins by comparing everything with everything.
GIVEN = "unnest((SELECT $1::uuid[]), (SELECT $2::bigint[]), (SELECT $3::text[])) AS g(id, token, result)"
# Not "state = 'running'": that would let the planner walk job_for_rescue, all running rows, instead of the ids.
HELD_BY_US = "j.id = g.id AND j.token = g.token AND j.lease_until IS NOT NULL"

HISTORY_FINISH = f"""
WITH gone AS (
  DELETE FROM job j USING {GIVEN} WHERE {HELD_BY_US}
  RETURNING j.id, j.enqueued_at, j.started_at, j.token, j.attempt, j.interruptions, j.generation, j.priority,
            j.task, j.queue, j.args, j.correlation_id, j.worker, g.result, j.errors, j.tenant, j.causation_id, j.trace),
kept AS (
  INSERT INTO history (id, enqueued_at, started_at, finished_at, token, attempt, interruptions, generation, priority,
                       state, task, queue, args, correlation_id, worker, result, errors, tenant, causation_id, trace)
  SELECT id, enqueued_at, started_at, {NOW}, token, attempt, interruptions, generation, priority,
         'succeeded', task, queue, args, correlation_id, worker, result, errors, tenant, causation_id, trace FROM gone)
"""
HISTORY_LOAD = f"""
INSERT INTO history (id, enqueued_at, started_at, finished_at, token, attempt, interruptions, generation, priority,
                     state, task, queue, args, correlation_id, worker, result)
SELECT i, t, t, t, g, 1, 0, 1, 0, 'succeeded', 'mail.send', 'default', {ARGS}, i::text, 'worker-1:4242', 'null'
  FROM (SELECT g, uuidv7(-a) AS i, now() - a AS t
          FROM (SELECT g, interval '{tables.DAYS_KEPT} days' * (1 - g::float8 / $1::int) AS a
                  FROM generate_series(1, $1::int) g) ages) rows"""

C = PgDesign(
    tables=tables.BASICS + tables.live() + tables.archive("history", tables.HISTORY_COLUMNS),
    fill=FILL,
    step=HISTORY_FINISH + claim(),
    finish=HISTORY_FINISH + "SELECT id FROM gone",
    insert=INSERT,
    finished=HISTORY_LOAD,
    kept="history",
)

# --- A: the row stays where it is --------------------------------------------------------------------------

IN_PLACE_FINISH = f"""
WITH gone AS (
  UPDATE job j SET state = 'succeeded', lease_until = NULL, finished_at = {NOW}, result = g.result
    FROM {GIVEN} WHERE {HELD_BY_US} RETURNING j.id)
"""
IN_PLACE_COLUMNS = (
    tables.FIXED_COLUMNS,
    tables.BODY_COLUMNS,
    tables.HELD_COLUMNS,
    tables.CLAIM_COLUMNS,
    tables.FINISH_COLUMNS,
)
A = PgDesign(
    tables=tables.BASICS + tables.live(IN_PLACE_COLUMNS, tables.ALL_STATES),
    fill=FILL,
    step=IN_PLACE_FINISH + claim(),
    finish=IN_PLACE_FINISH + "SELECT id FROM gone",
    insert=INSERT,
    finished=f"""
INSERT INTO job (id, task, queue, args, correlation_id, state, token, attempt, enqueued_at, started_at, finished_at,
                 worker, result)
SELECT i, 'mail.send', 'default', {ARGS}, i::text, 'succeeded', g, 1, t, t, t, 'worker-1:4242', 'null'
  FROM (SELECT g, uuidv7(-a) AS i, now() - a AS t
          FROM (SELECT g, interval '{tables.DAYS_KEPT} days' * (1 - g::float8 / $1::int) AS a
                  FROM generate_series(1, $1::int) g) ages) rows""",
    kept="job",
)

# --- D: an immutable body, a hot row, a finished row -------------------------------------------------------

HOT_FINISH = f"""
WITH gone AS (
  DELETE FROM job j USING {GIVEN} WHERE {HELD_BY_US}
  RETURNING j.id, j.started_at, j.token, j.attempt, j.interruptions, j.priority, j.queue, j.worker, g.result, j.errors),
kept AS (
  INSERT INTO finished (id, started_at, finished_at, token, attempt, interruptions, priority, state, queue, worker,
                        result, errors)
  SELECT id, started_at, {NOW}, token, attempt, interruptions, priority, 'succeeded', queue, worker, result, errors
    FROM gone)
"""
HOT_CLAIM = f""",
claimed AS ({claim(returned="j.id, j.token, j.rank, j.queue, j.attempt, j.interruptions, j.tenant")})
SELECT c.id, c.token, c.rank, b.task, c.queue, b.args, c.attempt, c.interruptions, b.deadline_at, b.correlation_id,
       b.causation_id, b.trace, b.generation, c.tenant FROM claimed c JOIN body b ON b.id = c.id"""

D = PgDesign(
    tables=tables.BASICS
    + tables.body()
    + tables.live((tables.FIXED_COLUMNS, tables.HELD_COLUMNS, tables.CLAIM_COLUMNS))
    + tables.archive("finished", tables.FINISHED_COLUMNS),
    fill=f"""
WITH b AS (INSERT INTO body (id, task, args, correlation_id)
           SELECT uuidv7(), 'mail.send', {ARGS}, uuidv7()::text FROM generate_series(1, $1::int) g RETURNING id)
INSERT INTO job (id, queue) SELECT id, 'default' FROM b""",
    step=HOT_FINISH.rstrip() + HOT_CLAIM,
    finish=HOT_FINISH + "SELECT id FROM gone",
    insert="""
WITH b AS (INSERT INTO body (id, task, args, correlation_id)
           SELECT i, 'mail.send', a, i::text FROM unnest($1::uuid[], $2::text[]) AS n(i, a)
           ON CONFLICT (id) DO NOTHING RETURNING id)
INSERT INTO job (id, queue) SELECT id, 'default' FROM b""",
    finished=f"""
WITH rows AS MATERIALIZED (
  SELECT g, uuidv7(-a) AS i, now() - a AS t
    FROM (SELECT g, interval '{tables.DAYS_KEPT} days' * (1 - g::float8 / $1::int) AS a
            FROM generate_series(1, $1::int) g) ages),
bodies AS (INSERT INTO body (id, task, args, correlation_id, enqueued_at)
           SELECT i, 'mail.send', {ARGS}, i::text, t FROM rows)
INSERT INTO finished (id, started_at, finished_at, token, attempt, interruptions, priority, state, queue, worker, result)
SELECT i, t, t, g, 1, 0, 0, 'succeeded', 'default', 'worker-1:4242', 'null' FROM rows""",
    kept="finished",
)

DESIGNS: dict[str, PgDesign] = {
    "limit": LIMIT,
    "limit-apart": LIMIT_APART,
    "design-A": A,
    "design-C": C,
    "design-D": D,
}
