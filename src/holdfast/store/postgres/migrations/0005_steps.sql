-- What a job has done so far, for its later attempts: recorded steps, and the intents of effects.
-- The rows of a generation outlive the attempts of their job, and go with the job itself when that is forgotten.

CREATE TABLE holdfast.step (
    job_id      uuid        NOT NULL,
    generation  integer     NOT NULL,
    name        text        NOT NULL,
    number      integer     NOT NULL, -- its place among the job's steps, by their first beginning
    token       bigint      NOT NULL, -- of the run that wrote it last
    first_at    timestamptz NOT NULL,
    at          timestamptz NOT NULL,
    kind        text        NOT NULL,
    progress    text        NOT NULL,
    branch      text        NOT NULL,
    fingerprint text        NOT NULL,
    result      text,
    PRIMARY KEY (job_id, generation, name),
    CONSTRAINT kind_is_known CHECK (kind IN ('step', 'at_most_once', 'at_least_once', 'keyed')),
    CONSTRAINT progress_is_known CHECK (progress IN ('begun', 'sought', 'unknown', 'done', 'resolved', 'aside', 'failed', 'handled'))
);

-- The last generation that has steps; null: none has. So whoever ends a job without any need not look for them.
ALTER TABLE holdfast.job ADD COLUMN steps_of integer;
ALTER TABLE holdfast.history ADD COLUMN steps_of integer;
CREATE INDEX history_with_steps ON holdfast.history (id) WHERE steps_of IS NOT NULL;
