-- A job is one row in holdfast_job, written once, and one narrow row in the table of the state it is in:
-- queued, running, parked (dead or unknown) or over (succeeded or cancelled). Moves touch only the narrow rows.
-- Times are seconds since 1970. A queued job is ready when held is null.

CREATE TABLE holdfast_counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- 'token' fences holders (epoch * 2^40 + n), 'rank' orders the ready.
INSERT INTO holdfast_counter (name, value) VALUES ('token', 1 << 40), ('rank', 0);

-- AUTOINCREMENT: a number is never given again, so a late write by number can never hit another job.
CREATE TABLE holdfast_job (
    seq               INTEGER PRIMARY KEY AUTOINCREMENT,
    id                TEXT    NOT NULL,
    task              TEXT    NOT NULL,
    queue             TEXT    NOT NULL,
    priority          INTEGER NOT NULL,
    args              TEXT    NOT NULL,
    generation        INTEGER NOT NULL,
    bounded           INTEGER NOT NULL, -- its task has a max_waiting
    enqueued_at       REAL    NOT NULL,
    expires_at        REAL,
    deadline          REAL,
    unique_key        TEXT,
    ordering_key      TEXT,
    concurrency_key   TEXT,
    concurrency_limit INTEGER,
    tenant            TEXT,
    guard             TEXT,
    correlation_id    TEXT,
    causation_id      TEXT,
    trace             TEXT,
    interruptions     INTEGER NOT NULL DEFAULT 0,
    strikes           INTEGER NOT NULL DEFAULT 0,
    errors            TEXT
);
CREATE UNIQUE INDEX holdfast_job_by_id ON holdfast_job (id);

CREATE TABLE holdfast_queued (
    seq             INTEGER PRIMARY KEY,
    rank            INTEGER NOT NULL,
    priority        INTEGER NOT NULL,
    queue           TEXT    NOT NULL,
    held            TEXT,
    attempt         INTEGER NOT NULL DEFAULT 0,
    suspect         INTEGER NOT NULL DEFAULT 0,
    token           INTEGER, -- of the last claim
    run_at          REAL,
    expires_at      REAL,
    bounded_task    TEXT,    -- the task, when its jobs are counted for max_waiting
    ordering_key    TEXT,
    concurrency_key TEXT,
    tenant          TEXT
);
CREATE INDEX holdfast_queued_for_claim ON holdfast_queued (queue, priority DESC, rank)
    WHERE held IS NULL AND NOT suspect;
CREATE INDEX holdfast_queued_for_suspect ON holdfast_queued (queue, rank) WHERE held IS NULL AND suspect;
CREATE INDEX holdfast_queued_due ON holdfast_queued (run_at) WHERE held = 'time';
CREATE INDEX holdfast_queued_arrived ON holdfast_queued (rank) WHERE held = 'arrived';
CREATE INDEX holdfast_queued_by_hand ON holdfast_queued (held, rank) WHERE held IN ('guard', 'unknown_task');
CREATE INDEX holdfast_queued_expiring ON holdfast_queued (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX holdfast_queued_bounded ON holdfast_queued (bounded_task) WHERE bounded_task IS NOT NULL;
CREATE INDEX holdfast_queued_behind ON holdfast_queued (ordering_key, rank) WHERE held = 'ordering';
CREATE INDEX holdfast_queued_for_slot ON holdfast_queued (concurrency_key, priority DESC, rank)
    WHERE held = 'concurrency';
CREATE INDEX holdfast_queued_tenant_ready ON holdfast_queued (queue, tenant)
    WHERE tenant IS NOT NULL AND held IS NULL;
CREATE INDEX holdfast_queued_for_window ON holdfast_queued (queue, tenant, priority DESC, rank)
    WHERE held = 'tenant';

-- As many rows as there are slots in the fleet: rescue reads all of it.
CREATE TABLE holdfast_running (
    seq         INTEGER PRIMARY KEY,
    token       INTEGER NOT NULL,
    lease_until REAL    NOT NULL,
    worker      TEXT    NOT NULL,
    alone       INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    started_at  REAL    NOT NULL,
    rank        INTEGER NOT NULL,
    stop        TEXT -- someone asks it to stop, and why
);

CREATE TABLE holdfast_parked (
    seq        INTEGER PRIMARY KEY,
    state      TEXT    NOT NULL CHECK (state IN ('dead', 'unknown')),
    token      INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    worker     TEXT,
    started_at REAL,
    reason     TEXT    NOT NULL
);

CREATE TABLE holdfast_over (
    seq         INTEGER PRIMARY KEY,
    state       TEXT    NOT NULL CHECK (state IN ('succeeded', 'cancelled')),
    token       INTEGER,
    attempt     INTEGER NOT NULL,
    worker      TEXT,
    started_at  REAL,
    finished_at REAL    NOT NULL,
    reason      TEXT,
    result      TEXT
);

-- What a job holds; the primary keys are the promises: one job that is not over for each unique key, one whose turn
-- it is for each ordering key, one for each slot of a concurrency key.
CREATE TABLE holdfast_unique (
    key TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE holdfast_turn (
    key TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE holdfast_slot (
    key  TEXT    NOT NULL,
    slot INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    PRIMARY KEY (key, slot)
) WITHOUT ROWID;

CREATE TABLE holdfast_queue (
    name      TEXT PRIMARY KEY,
    paused_by TEXT NOT NULL,
    paused_at REAL NOT NULL
) WITHOUT ROWID;
