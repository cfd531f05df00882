-- What a job has done so far, for its later attempts: recorded steps, and the intents of effects.
-- The rows of a generation outlive the attempts of their job, and go some time after the job itself is forgotten.

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
    CONSTRAINT progress_is_known CHECK (progress IN ('begun', 'done', 'failed', 'handled', 'unknown'))
);
