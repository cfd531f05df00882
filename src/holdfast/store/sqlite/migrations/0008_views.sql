-- Views: what projections make of events, how far they have read, and what they could not take.

-- One row for each generation of a view. While the next is being built, the one before it serves.
CREATE TABLE holdfast_view (
    view       TEXT    NOT NULL,
    generation INTEGER NOT NULL CHECK (generation > 0),
    state      TEXT    NOT NULL CHECK (state IN ('building', 'serving', 'old')),
    start      INTEGER NOT NULL,          -- it reads what is behind this position
    position   INTEGER NOT NULL,          -- and has read up to here
    token      INTEGER NOT NULL DEFAULT 0, -- of the lease that moved it there
    history    INTEGER NOT NULL DEFAULT 0,
    begun_at   REAL    NOT NULL,
    seen_at    REAL    NOT NULL,
    PRIMARY KEY (view, generation),
    CHECK (position >= start)
) WITHOUT ROWID;
CREATE UNIQUE INDEX holdfast_view_serving ON holdfast_view (view) WHERE state = 'serving';
CREATE UNIQUE INDEX holdfast_view_building ON holdfast_view (view) WHERE state = 'building';

CREATE TABLE holdfast_view_row (
    view       TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    key        TEXT    NOT NULL,
    data       TEXT,                      -- JSON; null: it was deleted, and its version is remembered for a while
    source     TEXT,                      -- the key of the events it is made of; null: several
    version    INTEGER,                   -- of the newest of them
    position   INTEGER NOT NULL,          -- of the newest event in it: only grows
    updated_at REAL    NOT NULL,
    forget     INTEGER,                   -- the minute from which on a deleted row may be forgotten
    PRIMARY KEY (view, generation, key),
    CHECK ((data IS NULL) = (forget IS NOT NULL)),
    CHECK ((source IS NULL) = (version IS NULL))
) WITHOUT ROWID;
CREATE INDEX holdfast_view_row_for_prune ON holdfast_view_row (forget) WHERE forget IS NOT NULL;

-- Events that a projection could not take. The row of their key waits for them, and so do later events of that row.
CREATE TABLE holdfast_view_aside (
    view       TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    event_id   TEXT    NOT NULL,
    key        TEXT,
    event      TEXT    NOT NULL, -- all of it: the log may be pruned before it is taken
    error      TEXT    NOT NULL,
    tries      INTEGER NOT NULL DEFAULT 1,
    at         REAL    NOT NULL,
    tried_at   REAL    NOT NULL,
    PRIMARY KEY (view, generation, position)
) WITHOUT ROWID;
CREATE INDEX holdfast_view_aside_of_key ON holdfast_view_aside (view, generation, key);

-- The newest version of each key that a reader has seen.
CREATE TABLE holdfast_seen (
    reader  TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    version INTEGER NOT NULL,
    day     INTEGER NOT NULL, -- of the last change: it is in an index, so it changes once a day
    PRIMARY KEY (reader, key)
) WITHOUT ROWID;
CREATE INDEX holdfast_seen_for_prune ON holdfast_seen (day);
