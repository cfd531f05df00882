-- A saga is one row, and a job that carries it from step to step. What it has done stands in the steps of its job.

-- How a step is undone, written with its intent; how often it has failed, and how it did last.
ALTER TABLE holdfast_step ADD COLUMN plan TEXT;
ALTER TABLE holdfast_step ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_step ADD COLUMN error TEXT;

CREATE TABLE holdfast_saga (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL UNIQUE, -- one saga for each
    name           TEXT    NOT NULL,
    job_id         TEXT    NOT NULL UNIQUE,
    state          TEXT    NOT NULL
        CHECK (state IN ('running', 'waiting', 'compensating', 'done', 'undone', 'needs_operator', 'parked')),
    undoing        INTEGER NOT NULL DEFAULT 0, -- it was decided to compensate: that is for good
    woken          INTEGER NOT NULL DEFAULT 0, -- something came while it ran: it may not rest
    watched        INTEGER NOT NULL DEFAULT 0, -- another saga waits for its end
    started_at     REAL    NOT NULL,
    at             REAL    NOT NULL,           -- when its state was written last
    decided_at     REAL,
    finished_at    REAL,
    deadline       REAL,
    asked          TEXT, -- someone wants it undone, and why
    pivot          TEXT, -- the step after which there is no way back; null: that was not passed
    waits          TEXT, -- for what, in words
    result         TEXT,
    error          TEXT,
    cause          TEXT, -- why it is undone
    parent         TEXT, -- the id of the saga that started it
    correlation_id TEXT,
    CHECK ((state IN ('done', 'undone')) = (finished_at IS NOT NULL)),
    CHECK (state <> 'compensating' OR undoing)
);
CREATE INDEX holdfast_saga_open ON holdfast_saga (state, seq) WHERE finished_at IS NULL;
CREATE INDEX holdfast_saga_for_prune ON holdfast_saga (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX holdfast_saga_by_story ON holdfast_saga (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX holdfast_saga_of_parent ON holdfast_saga (parent) WHERE parent IS NOT NULL;

-- What was sent to a saga; the step that has it takes it from the others.
CREATE TABLE holdfast_saga_signal (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    saga     INTEGER NOT NULL REFERENCES holdfast_saga (seq) ON DELETE CASCADE,
    name     TEXT    NOT NULL,
    value    TEXT    NOT NULL,
    at       REAL    NOT NULL,
    taken_by TEXT
);
CREATE INDEX holdfast_saga_signal_by_name ON holdfast_saga_signal (saga, name, seq);

-- What a step waits for: a signal, the end of another saga, or an event of this type (and key).
CREATE TABLE holdfast_saga_wait (
    saga INTEGER NOT NULL REFERENCES holdfast_saga (seq) ON DELETE CASCADE,
    step TEXT    NOT NULL,
    kind TEXT    NOT NULL CHECK (kind IN ('signal', 'saga', 'event')),
    name TEXT    NOT NULL,
    key  TEXT,
    PRIMARY KEY (saga, step)
) WITHOUT ROWID;
CREATE INDEX holdfast_saga_wait_for ON holdfast_saga_wait (kind, name, key);

-- How far what wakes sagas has read the log of events; null: it has not begun.
CREATE TABLE holdfast_saga_reader (
    position INTEGER
);
INSERT INTO holdfast_saga_reader (position) VALUES (NULL);
