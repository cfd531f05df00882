-- Events: the outbox that a relay publishes from, the inbox that lets a group handle each event once, and what could not
-- be understood. Times are seconds since 1970.

-- The newest position in the log of published events.
INSERT INTO holdfast_counter (name, value) VALUES ('position', 0);

-- The newest version of each key. A row stays when its events are forgotten, so that versions never go back.
CREATE TABLE holdfast_event_key (
    key     TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) WITHOUT ROWID;

-- AUTOINCREMENT: a number is never given again. Whatever is `held` is not looked at by who reads what waits, in order.
CREATE TABLE holdfast_outbox (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL,
    type           TEXT    NOT NULL,
    key            TEXT,
    version        INTEGER,
    data           TEXT    NOT NULL,
    time           REAL    NOT NULL,
    correlation_id TEXT,
    causation_id   TEXT,
    trace          TEXT,
    state          TEXT    NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'published', 'quarantined')),
    held           INTEGER NOT NULL DEFAULT 0, -- it failed, or stands behind one of its key that did
    rest_until     REAL,                       -- of one that failed and blocks nobody: when it may be tried again
    position       INTEGER,
    published_at   REAL,
    tries          INTEGER NOT NULL DEFAULT 0,
    error          TEXT,
    CHECK ((state = 'published') = (position IS NOT NULL) AND (position IS NULL) = (published_at IS NULL)),
    CHECK ((key IS NULL) = (version IS NULL))
);
CREATE UNIQUE INDEX holdfast_outbox_by_id ON holdfast_outbox (id);
CREATE UNIQUE INDEX holdfast_outbox_by_version ON holdfast_outbox (key, version) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX holdfast_outbox_log ON holdfast_outbox (position) WHERE position IS NOT NULL;
CREATE INDEX holdfast_outbox_for_relay ON holdfast_outbox (seq) WHERE state = 'waiting' AND held = 0;
CREATE INDEX holdfast_outbox_resting ON holdfast_outbox (rest_until) WHERE state = 'waiting' AND rest_until IS NOT NULL;
CREATE INDEX holdfast_outbox_behind ON holdfast_outbox (key, version) WHERE held = 1 AND rest_until IS NULL;
CREATE INDEX holdfast_outbox_aside ON holdfast_outbox (state, seq) WHERE held = 1;
CREATE INDEX holdfast_outbox_by_correlation ON holdfast_outbox (correlation_id) WHERE correlation_id IS NOT NULL;

-- A key that waits: nothing of it from this version on is published before its time; null: before a person says so.
CREATE TABLE holdfast_event_block (
    key     TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    until   REAL
) WITHOUT ROWID;
CREATE INDEX holdfast_event_block_due ON holdfast_event_block (until) WHERE until IS NOT NULL;

-- How far each group has read the log.
CREATE TABLE holdfast_event_group (
    name     TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    seen_at  REAL    NOT NULL
) WITHOUT ROWID;

-- The primary key is the promise: a group has one delivery of each event.
CREATE TABLE holdfast_inbox (
    group_name TEXT NOT NULL,
    event_id   TEXT NOT NULL,
    job_id     TEXT,
    at         REAL NOT NULL,
    handled_at REAL,
    PRIMARY KEY (group_name, event_id)
) WITHOUT ROWID;
CREATE INDEX holdfast_inbox_for_prune ON holdfast_inbox (at);

-- What each member of a group hears, for as long as it is heard of: two versions of a program may run at once.
CREATE TABLE holdfast_event_member (
    group_name TEXT NOT NULL,
    member     TEXT NOT NULL,
    hears      TEXT NOT NULL,
    until      REAL NOT NULL,
    PRIMARY KEY (group_name, member)
) WITHOUT ROWID;

CREATE TABLE holdfast_stray (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    hash       BLOB NOT NULL,
    transport  TEXT NOT NULL,
    group_name TEXT NOT NULL,
    raw        BLOB NOT NULL,
    reason     TEXT NOT NULL,
    at         REAL NOT NULL
);
CREATE UNIQUE INDEX holdfast_stray_once ON holdfast_stray (hash);

-- One story is found by its correlation id, whatever became of its jobs.
CREATE INDEX holdfast_job_by_correlation ON holdfast_job (correlation_id) WHERE correlation_id IS NOT NULL;
