-- What a fleet's guards share. Rows are updated about once a second, so what changes with each update is in no index;
-- `forget` is the minute from which on a row may be deleted, and changes once a minute.

-- A bucket of quota for each limiter and key. It held `level` units at the moment `at`, and `rate` of them drain a second.
CREATE TABLE holdfast_bucket (
    name         TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    level        REAL    NOT NULL CHECK (level >= 0),
    at           REAL    NOT NULL,
    rate         REAL    NOT NULL CHECK (rate > 0),
    drained      REAL    NOT NULL, -- units that could have drained since the row was made
    slowed       REAL,             -- the rate that the other side has left us
    version      INTEGER NOT NULL, -- of that rate
    lowered      INTEGER NOT NULL, -- the version that it was last lowered to
    paused_until REAL,
    fastest      REAL    NOT NULL DEFAULT 0, -- the largest rate and burst that anybody has asked with lately,
    burst        REAL    NOT NULL DEFAULT 0,
    terms_until  REAL,                       -- and until when they count for all
    forget       INTEGER NOT NULL,
    PRIMARY KEY (name, key)
) WITHOUT ROWID;
CREATE INDEX holdfast_bucket_for_prune ON holdfast_bucket (forget);
CREATE INDEX holdfast_bucket_slowed ON holdfast_bucket (name, slowed) WHERE slowed IS NOT NULL;
CREATE INDEX holdfast_bucket_paused ON holdfast_bucket (name, paused_until) WHERE paused_until IS NOT NULL;

-- What the fleet and people have decided about a guard. Its generation only grows, so the row stays.
CREATE TABLE holdfast_guard (
    name             TEXT PRIMARY KEY,
    generation       INTEGER NOT NULL DEFAULT 0,
    reset_generation INTEGER NOT NULL DEFAULT 0,
    opened_at        REAL,
    opened_until     REAL,
    held             TEXT CHECK (held IN ('open', 'closed')),
    held_by          TEXT,
    held_at          REAL,
    CHECK ((held IS NULL) = (held_by IS NULL) AND (held IS NULL) = (held_at IS NULL))
) WITHOUT ROWID;

-- What each node says of its breaker, until it says it again or is not heard of any more.
CREATE TABLE holdfast_breaker (
    guard      TEXT    NOT NULL,
    node       TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('closed', 'open', 'half_open')),
    generation INTEGER NOT NULL,
    open_for   REAL    NOT NULL,
    calls      INTEGER NOT NULL,
    failures   INTEGER NOT NULL,
    slow       INTEGER NOT NULL,
    at         REAL    NOT NULL,
    until      REAL    NOT NULL,
    forget     INTEGER NOT NULL,
    PRIMARY KEY (guard, node)
) WITHOUT ROWID;
CREATE INDEX holdfast_breaker_for_prune ON holdfast_breaker (forget);

-- Permits for calls while a fleet's breaker is half open.
CREATE TABLE holdfast_probe (
    token  INTEGER PRIMARY KEY,
    guard  TEXT    NOT NULL,
    node   TEXT    NOT NULL,
    at     REAL    NOT NULL,
    until  REAL    NOT NULL,
    forget INTEGER NOT NULL
);
CREATE INDEX holdfast_probe_of_guard ON holdfast_probe (guard, until);
CREATE INDEX holdfast_probe_for_prune ON holdfast_probe (forget);

-- The guard that a queued job is held by, so that its jobs are found among those of others.
ALTER TABLE holdfast_queued ADD COLUMN gate TEXT;
CREATE INDEX holdfast_queued_gated ON holdfast_queued (gate, rank) WHERE held = 'guard';
