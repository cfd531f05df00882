"""SQLite designs: the tables of each and the SQL of its verbs. A step runs them in one BEGIN IMMEDIATE.

A claim is a SELECT and an UPDATE of the rows it found: inside the write transaction nobody can come between,
and reading rows with SELECT costs half of reading them with RETURNING.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import sqlite_tables as tables

NEXT_TOKEN = "UPDATE counter SET value = value + 1 WHERE name = 'token' RETURNING value"
NEXT_RANK = "UPDATE counter SET value = value + ?1 WHERE name = 'rank' RETURNING value - ?1"


@dataclass(frozen=True)
class SqliteDesign:
    """`key` names a row at finish. `finish_set` takes ?1 JSON of [key, result], ?2 token, ?3 now; `finish_each`,
    run once per row, takes ?1 key, ?2 token, ?3 now, ?4 result. A statement may use fewer, from the left."""

    tables: str
    insert: tuple[str, ...]
    select: str
    mark: str
    finish_set: tuple[str, ...]
    finish_each: tuple[str, ...]
    finished: tuple[str, ...] = ()
    key: str = "seq"
    blob: bool = False
    each: bool = False
    fenced: bool = True
    apart: bool = False


# --- the raw limit: no fence, no history, narrow rows ------------------------------------------------------

LIMIT = SqliteDesign(
    tables=tables.LIMIT,
    insert=("INSERT INTO jobs (payload) VALUES (:args)",),
    select="",
    mark="""UPDATE jobs SET state = 1, attempts = attempts + 1, locked_at = ?1 WHERE id IN
            (SELECT id FROM jobs WHERE queue = 'default' AND state = 0 AND run_at <= ?1 ORDER BY run_at, id LIMIT ?2)
            RETURNING id, payload""",
    finish_set=(),
    finish_each=("DELETE FROM jobs WHERE id = ?1",),
    fenced=False,
)
LIMIT_APART = replace(LIMIT, apart=True)

# --- C: live + history -------------------------------------------------------------------------------------

READY = (
    "queue = ?1 AND state = 'queued' AND held IS NULL AND NOT suspect ORDER BY priority DESC, rank LIMIT ?2"
)
# "+state": without the plus the planner walks job_for_rescue, all running rows, instead of the given keys.
HELD_BY_US = "token = ?2 AND +state = 'running'"
GIVEN = "(SELECT value ->> 0 FROM json_each(?1))"
INSERT = """INSERT INTO job (id, rank, task, queue, args, correlation_id, enqueued_at)
            VALUES (:id, :rank, 'mail.send', 'default', :args, :text, :now) ON CONFLICT (id) DO NOTHING"""
MARK = """UPDATE job SET state = 'running', token = ?1, lease_until = ?2, started_at = ?3, worker = ?4,
                 attempt = attempt + 1, alone = 0 WHERE {key} IN (SELECT value FROM json_each(?5))"""
HISTORY_FIELDS = """id, task, queue, priority, args, state, result, attempt, interruptions, errors, token, tenant,
  correlation_id, causation_id, trace, generation, enqueued_at, started_at, finished_at, worker"""
HISTORY_VALUES = """id, task, queue, priority, args, 'succeeded', {result}, attempt, interruptions, errors, token, tenant,
  correlation_id, causation_id, trace, generation, enqueued_at, started_at, ?3, worker"""


def _select(key: str) -> str:
    first = "seq, id" if key == "seq" else "id"
    return f"""SELECT {first}, task, queue, args, attempt + 1, interruptions, deadline_at, correlation_id,
                      causation_id, trace, generation, tenant FROM job WHERE {READY}"""


def _to_history(key: str) -> tuple[str, str]:
    given = "(SELECT value ->> 0 AS given, value ->> 1 AS result FROM json_each(?1))"
    values = HISTORY_VALUES.format(result="g.result")
    return (
        f"""INSERT INTO history ({HISTORY_FIELDS}) SELECT {values} FROM {given} g
             CROSS JOIN job ON job.{key} = g.given AND {HELD_BY_US}""",
        f"DELETE FROM job WHERE {key} IN {GIVEN} AND {HELD_BY_US}",
    )


def _to_history_each(key: str) -> tuple[str, str]:
    values = HISTORY_VALUES.format(result="?4")
    return (
        f"INSERT INTO history ({HISTORY_FIELDS}) SELECT {values} FROM job WHERE {key} = ?1 AND {HELD_BY_US}",
        f"DELETE FROM job WHERE {key} = ?1 AND {HELD_BY_US}",
    )


def live_and_history(id_type: str = "TEXT", seq: bool = True, clustered: bool = False) -> SqliteDesign:
    key = "seq" if seq else "id"
    columns = (
        f"seq INTEGER PRIMARY KEY, id {id_type} NOT NULL UNIQUE"
        if seq
        else f"id {id_type} NOT NULL PRIMARY KEY"
    )
    live = tables.live(columns, tables.HOT_COLUMNS, tables.BODY_COLUMNS, clustered=clustered)
    return SqliteDesign(
        tables=live + tables.history(id_type, clustered),
        insert=(INSERT,),
        select=_select(key),
        mark=MARK.format(key=key),
        finish_set=_to_history(key),
        finish_each=_to_history_each(key),
        finished=(
            """INSERT INTO history (id, task, queue, priority, args, state, result, attempt, interruptions, token,
                 correlation_id, generation, enqueued_at, started_at, finished_at, worker)
               SELECT id, 'mail.send', 'default', 0, args, 'succeeded', 'null', 1, 0, n, id, 1, t, t, t, 'worker-1:4242'
                 FROM temp.made""",
        ),
        key=key,
        blob=id_type == "BLOB",
        # A BLOB key cannot travel in JSON, so those layouts finish row by row.
        each=id_type == "BLOB" and not seq,
    )


C = live_and_history()

# --- A: the row stays where it is --------------------------------------------------------------------------

A = replace(
    C,
    tables=tables.live(
        "seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE",
        tables.HOT_COLUMNS,
        tables.BODY_COLUMNS,
        tables.FINISH_COLUMNS,
        states=tables.ALL_STATES,
    ),
    finish_set=(
        f"""UPDATE job SET state = 'succeeded', lease_until = NULL, finished_at = ?3, result = g.result
              FROM (SELECT value ->> 0 AS given, value ->> 1 AS result FROM json_each(?1)) g
             WHERE job.seq = g.given AND {HELD_BY_US}""",
    ),
    finish_each=(
        f"""UPDATE job SET state = 'succeeded', lease_until = NULL, finished_at = ?3, result = ?4
             WHERE seq = ?1 AND {HELD_BY_US}""",
    ),
    finished=(
        """INSERT INTO job (id, rank, task, queue, args, correlation_id, state, token, attempt, enqueued_at, started_at,
             finished_at, worker, result)
           SELECT id, n, 'mail.send', 'default', args, id, 'succeeded', n, 1, t, t, t, 'worker-1:4242', 'null'
             FROM temp.made""",
    ),
)

# --- D: an immutable body, a hot row, a finished row -------------------------------------------------------

FINISHED_FIELDS = "seq, priority, queue, state, result, attempt, interruptions, errors, token, started_at, finished_at, worker"
FINISHED_VALUES = "seq, priority, queue, 'succeeded', {result}, attempt, interruptions, errors, token, started_at, ?3, worker"

D = SqliteDesign(
    tables=tables.body() + tables.live("seq INTEGER PRIMARY KEY", tables.HOT_COLUMNS) + tables.FINISHED,
    insert=(
        """INSERT INTO body (seq, id, task, args, correlation_id, enqueued_at)
           VALUES (:rank, :id, 'mail.send', :args, :text, :now) ON CONFLICT (id) DO NOTHING""",
        "INSERT INTO job (seq, rank, queue) SELECT seq, seq, 'default' FROM body WHERE seq = :rank",
    ),
    select="""SELECT job.seq, body.id, task, queue, args, attempt + 1, interruptions, deadline_at, correlation_id,
                     causation_id, trace, generation, tenant FROM job CROSS JOIN body ON body.seq = job.seq
               WHERE """
    + READY,
    mark=MARK.format(key="seq"),
    finish_set=(
        f"""INSERT INTO finished ({FINISHED_FIELDS}) SELECT {FINISHED_VALUES.format(result="g.result")}
              FROM (SELECT value ->> 0 AS given, value ->> 1 AS result FROM json_each(?1)) g
             CROSS JOIN job ON job.seq = g.given AND {HELD_BY_US}""",
        f"DELETE FROM job WHERE seq IN {GIVEN} AND {HELD_BY_US}",
    ),
    finish_each=(
        f"""INSERT INTO finished ({FINISHED_FIELDS}) SELECT {FINISHED_VALUES.format(result="?4")}
              FROM job WHERE seq = ?1 AND {HELD_BY_US}""",
        f"DELETE FROM job WHERE seq = ?1 AND {HELD_BY_US}",
    ),
    finished=(
        """INSERT INTO body (id, task, args, correlation_id, enqueued_at)
           SELECT id, 'mail.send', args, id, t FROM temp.made""",
        """INSERT INTO finished (seq, priority, queue, state, result, attempt, interruptions, token, started_at,
             finished_at, worker)
           SELECT b.seq, 0, 'default', 'succeeded', 'null', 1, 0, n, t, t, 'worker-1:4242'
             FROM temp.made m CROSS JOIN body b ON b.id = m.id""",
        "UPDATE counter SET value = (SELECT max(seq) + 1 FROM body) WHERE name = 'rank'",
    ),
)

DESIGNS: dict[str, SqliteDesign] = {
    "limit": LIMIT,
    "limit-apart": LIMIT_APART,
    "design-A": A,
    "design-C": C,
    "design-D": D,
}

LAYOUTS: dict[str, SqliteDesign] = {
    "seq rowid, TEXT id": C,
    "seq rowid, BLOB id": live_and_history("BLOB"),
    "TEXT id, rowid": live_and_history(seq=False),
    "TEXT id, WITHOUT ROWID": live_and_history(seq=False, clustered=True),
    "BLOB id, rowid": live_and_history("BLOB", seq=False),
    "BLOB id, WITHOUT ROWID": live_and_history("BLOB", seq=False, clustered=True),
}

FORMS: dict[str, SqliteDesign] = {
    f"{form} {name[-1]}": replace(design, each=form == "each")
    for name, design in (("design-A", A), ("design-C", C), ("design-D", D))
    for form in ("set", "each")
}
