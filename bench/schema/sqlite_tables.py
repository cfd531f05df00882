"""SQLite tables of the designs, in the physical layouts worth comparing."""

from __future__ import annotations

LIMIT = """
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY, queue TEXT NOT NULL DEFAULT 'default', state INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0, run_at REAL NOT NULL DEFAULT 0, locked_at REAL, payload TEXT NOT NULL);
CREATE INDEX jobs_ready ON jobs (queue, run_at, id) WHERE state = 0;
"""

COUNTER = """
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counter VALUES ('token', 0), ('rank', 0);
"""

LIVE_STATES = "'queued', 'running', 'unknown', 'dead'"
ALL_STATES = LIVE_STATES + ", 'succeeded', 'cancelled'"

BODY_COLUMNS = """
  task TEXT NOT NULL, args TEXT NOT NULL, correlation_id TEXT NOT NULL, expires_at REAL, deadline_at REAL,
  concurrency_limit INTEGER, guard TEXT, causation_id TEXT, trace TEXT, enqueued_at REAL NOT NULL,
  generation INTEGER NOT NULL DEFAULT 1"""

# What claims and partial indexes look at comes first: SQLite reads a row's columns from the left.
HOT_COLUMNS = """
  rank INTEGER NOT NULL, priority INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL DEFAULT 'queued',
  queue TEXT NOT NULL, held TEXT, run_at REAL, unique_key TEXT, ordering_key TEXT,
  has_turn INTEGER NOT NULL DEFAULT 0, concurrency_key TEXT, slot INTEGER, tenant TEXT,
  bounded INTEGER NOT NULL DEFAULT 0, suspect INTEGER NOT NULL DEFAULT 0, alone INTEGER NOT NULL DEFAULT 0,
  token INTEGER, lease_until REAL, worker TEXT, started_at REAL, attempt INTEGER NOT NULL DEFAULT 0,
  interruptions INTEGER NOT NULL DEFAULT 0, strikes INTEGER NOT NULL DEFAULT 0, cancel_reason TEXT, errors TEXT"""

INDEXES = """
CREATE INDEX job_for_claim ON job (queue, priority DESC, rank) WHERE state = 'queued' AND held IS NULL AND NOT suspect;
CREATE INDEX job_for_rescue ON job (lease_until) WHERE state = 'running';
CREATE UNIQUE INDEX job_unique ON job (unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX job_for_turn ON job (ordering_key, rank) WHERE ordering_key IS NOT NULL;
CREATE UNIQUE INDEX job_turn ON job (ordering_key) WHERE has_turn;
CREATE INDEX job_for_slot ON job (concurrency_key, rank) WHERE concurrency_key IS NOT NULL;
CREATE UNIQUE INDEX job_slot ON job (concurrency_key, slot) WHERE slot IS NOT NULL;
CREATE INDEX job_for_tenant ON job (tenant, rank) WHERE held = 'tenant';
CREATE INDEX job_for_time ON job (run_at) WHERE held = 'time';
"""

HISTORY_COLUMNS = """
  task TEXT NOT NULL, queue TEXT NOT NULL, priority INTEGER NOT NULL, args TEXT NOT NULL, state TEXT NOT NULL,
  reason TEXT, result TEXT, attempt INTEGER NOT NULL, interruptions INTEGER NOT NULL, errors TEXT, token INTEGER,
  tenant TEXT, correlation_id TEXT NOT NULL, causation_id TEXT, trace TEXT, generation INTEGER NOT NULL,
  enqueued_at REAL NOT NULL, started_at REAL, finished_at REAL NOT NULL, worker TEXT"""

FINISHED = """
CREATE TABLE finished (
  seq INTEGER PRIMARY KEY, priority INTEGER NOT NULL, queue TEXT NOT NULL, state TEXT NOT NULL, reason TEXT,
  result TEXT, attempt INTEGER NOT NULL, interruptions INTEGER NOT NULL, errors TEXT, token INTEGER,
  started_at REAL, finished_at REAL NOT NULL, worker TEXT);
"""

FINISH_COLUMNS = "finished_at REAL, reason TEXT, result TEXT"


def live(key: str, *columns: str, states: str = LIVE_STATES, clustered: bool = False) -> str:
    rules = f"""
  CONSTRAINT known_state CHECK (state IN ({states})),
  CONSTRAINT running_has_lease CHECK ((state = 'running') = (lease_until IS NOT NULL))"""
    table = f"CREATE TABLE job ({','.join([key, *columns, rules])}){' WITHOUT ROWID' if clustered else ''};"
    return table + INDEXES + COUNTER


def history(id_type: str, clustered: bool = False) -> str:
    if clustered:
        return f"CREATE TABLE history (id {id_type} PRIMARY KEY NOT NULL, {HISTORY_COLUMNS}) WITHOUT ROWID;"
    table = f"CREATE TABLE history (id {id_type} NOT NULL, {HISTORY_COLUMNS});"
    return table + "CREATE INDEX history_by_id ON history (id);"


def body() -> str:
    return f"CREATE TABLE body (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, {BODY_COLUMNS});"
