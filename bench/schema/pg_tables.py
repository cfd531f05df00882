"""PostgreSQL tables of the designs. Columns a claim changes come last: a same-page update then logs only the tail."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

DAYS_KEPT = 30

BASICS = """
CREATE SEQUENCE rank_seq;
CREATE SEQUENCE token_seq;
-- VOLATILE so that the planner inlines it: the body is volatile too.
CREATE FUNCTION hf_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';
"""

LIMIT = """
CREATE TABLE jobs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue text NOT NULL DEFAULT 'default',
  state smallint NOT NULL DEFAULT 0, attempts int NOT NULL DEFAULT 0, run_at timestamptz NOT NULL DEFAULT now(),
  locked_at timestamptz, payload text NOT NULL);
CREATE INDEX jobs_ready ON jobs (queue, run_at, id) WHERE state = 0;
"""

LIVE_STATES = "'queued', 'running', 'unknown', 'dead'"
ALL_STATES = LIVE_STATES + ", 'succeeded', 'cancelled'"

BODY_COLUMNS = """
  task text NOT NULL, args text NOT NULL, correlation_id text NOT NULL,
  expires_at timestamptz, deadline_at timestamptz, concurrency_limit int, guard text,
  causation_id text, trace text, enqueued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  generation int NOT NULL DEFAULT 1"""

HELD_COLUMNS = """
  queue text NOT NULL, held text, run_at timestamptz, unique_key text, ordering_key text,
  concurrency_key text, slot int, tenant text, cancel_reason text, errors jsonb"""

FIXED_COLUMNS = """
  id uuid PRIMARY KEY, rank bigint NOT NULL DEFAULT nextval('rank_seq'), priority smallint NOT NULL DEFAULT 0,
  bounded boolean NOT NULL DEFAULT false, suspect boolean NOT NULL DEFAULT false,
  interruptions int NOT NULL DEFAULT 0, strikes int NOT NULL DEFAULT 0"""

CLAIM_COLUMNS = """
  attempt int NOT NULL DEFAULT 0, has_turn boolean NOT NULL DEFAULT false, alone boolean NOT NULL DEFAULT false,
  state text NOT NULL DEFAULT 'queued', token bigint, lease_until timestamptz, started_at timestamptz, worker text"""

FINISH_COLUMNS = "finished_at timestamptz, reason text, result text"

CLAIM_INDEX = """
CREATE INDEX job_for_claim ON job (queue, priority DESC, rank) WHERE state = 'queued' AND held IS NULL AND NOT suspect;
"""
# On the token a renewal would touch no index and stay on its page; the search for ended leases would then walk all that run.
RESCUE_BY_TOKEN = "CREATE INDEX job_for_rescue ON job (token) WHERE state = 'running';"
RESCUE_BY_LEASE = "CREATE INDEX job_for_rescue ON job (lease_until) WHERE state = 'running';"
HELD_INDEXES = """
CREATE UNIQUE INDEX job_unique ON job (unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX job_for_turn ON job (ordering_key, rank) WHERE ordering_key IS NOT NULL;
CREATE UNIQUE INDEX job_turn ON job (ordering_key) WHERE has_turn;
CREATE INDEX job_for_slot ON job (concurrency_key, rank) WHERE concurrency_key IS NOT NULL;
CREATE UNIQUE INDEX job_slot ON job (concurrency_key, slot) WHERE slot IS NOT NULL;
CREATE INDEX job_for_tenant ON job (tenant, rank) WHERE held = 'tenant';
CREATE INDEX job_for_time ON job (run_at) WHERE held = 'time';
"""
# Deletes leave dead rows and index entries at the very place claims look; the default 20 % waits too long.
VACUUM_OFTEN = """
ALTER TABLE job SET (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.0, autovacuum_analyze_threshold = 100000);
"""

HISTORY_COLUMNS = """
  id uuid NOT NULL, enqueued_at timestamptz NOT NULL, started_at timestamptz, finished_at timestamptz NOT NULL,
  token bigint, attempt int NOT NULL, interruptions int NOT NULL, generation int NOT NULL, priority smallint NOT NULL,
  state text NOT NULL, task text NOT NULL, queue text NOT NULL, args text NOT NULL, correlation_id text NOT NULL,
  worker text, result text, reason text, errors jsonb, tenant text, causation_id text, trace text"""

FINISHED_COLUMNS = """
  id uuid NOT NULL, started_at timestamptz, finished_at timestamptz NOT NULL, token bigint, attempt int NOT NULL,
  interruptions int NOT NULL, priority smallint NOT NULL, state text NOT NULL, queue text NOT NULL,
  worker text, result text, reason text, errors jsonb"""


def live(
    columns: tuple[str, ...] = (FIXED_COLUMNS, BODY_COLUMNS, HELD_COLUMNS, CLAIM_COLUMNS),
    states: str = LIVE_STATES,
    fillfactor: int = 100,
    rescue: str = RESCUE_BY_LEASE,
    checks: bool = True,
    held: bool = True,
    vacuum: bool = True,
) -> str:
    """The table claims work on."""
    rules = f"""
  CONSTRAINT known_state CHECK (state IN ({states})),
  CONSTRAINT running_has_lease CHECK ((state = 'running') = (lease_until IS NOT NULL))"""
    parts = [*columns, rules] if checks else list(columns)
    table = f"CREATE TABLE job ({','.join(parts)}) WITH (fillfactor = {fillfactor});"
    return table + CLAIM_INDEX + rescue + (HELD_INDEXES if held else "") + (VACUUM_OFTEN if vacuum else "")


def archive(name: str, columns: str, by_day: bool = True, by_id: bool = True) -> str:
    """An append-only table of finished jobs; a day's partition is dropped whole."""
    table = f"CREATE TABLE {name} ({columns}){' PARTITION BY RANGE (finished_at)' if by_day else ''};"
    index = f"CREATE INDEX {name}_by_id ON {name} (id);" if by_id else ""
    return table + (_partitions(name) if by_day else "") + index


def body() -> str:
    return f"CREATE TABLE body (id uuid PRIMARY KEY, {BODY_COLUMNS});"


def _partitions(name: str) -> str:
    today = datetime.now(UTC).date()
    days = [today + timedelta(days=offset) for offset in range(-DAYS_KEPT - 1, 3)]
    return "".join(_partition(name, day) for day in days)


def _partition(name: str, day: date) -> str:
    after = day + timedelta(days=1)
    return (
        f"CREATE TABLE {name}_{day:%Y%m%d} PARTITION OF {name} "
        f"FOR VALUES FROM ('{day} 00:00+00') TO ('{after} 00:00+00');"
    )
