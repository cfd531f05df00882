-- What a job has done so far, for its later attempts: recorded steps, and the intents of effects.
-- They go with the row of their job.

CREATE TABLE holdfast_step (
    seq         INTEGER NOT NULL REFERENCES holdfast_job (seq) ON DELETE CASCADE,
    generation  INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    number      INTEGER NOT NULL, -- its place among the job's steps, by their first beginning
    token       INTEGER NOT NULL, -- of the run that wrote it last
    first_at    REAL    NOT NULL,
    at          REAL    NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('step', 'at_most_once', 'at_least_once', 'keyed')),
    progress    TEXT    NOT NULL CHECK (progress IN ('begun', 'sought', 'unknown', 'done', 'resolved', 'aside', 'failed', 'handled')),
    branch      TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    result      TEXT
);
CREATE UNIQUE INDEX holdfast_step_by_name ON holdfast_step (seq, generation, name);

-- The last generation that has steps; null: none has. So whoever ends a job without any need not look for them.
ALTER TABLE holdfast_job ADD COLUMN steps_of INTEGER;
