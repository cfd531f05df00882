-- A saga is one row, and a job that carries it from step to step. What it has done stands in the steps of its job.

-- How a step is undone, written with its intent; how often it has failed, and how it did last.
ALTER TABLE holdfast.step ADD COLUMN plan text, ADD COLUMN tries integer NOT NULL DEFAULT 0, ADD COLUMN error text;

CREATE TABLE holdfast.saga (
    seq            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id         uuid        NOT NULL,
    started_at     timestamptz NOT NULL DEFAULT holdfast.now(),
    at             timestamptz NOT NULL DEFAULT holdfast.now(), -- when its state was written last
    decided_at     timestamptz,
    finished_at    timestamptz,
    deadline       timestamptz,
    undoing        boolean     NOT NULL DEFAULT false, -- it was decided to compensate: that is for good
    woken          boolean     NOT NULL DEFAULT false, -- something came while it ran: it may not rest
    watched        boolean     NOT NULL DEFAULT false, -- another saga waits for its end
    id             text        NOT NULL,
    name           text        NOT NULL,
    state          text        NOT NULL DEFAULT 'running',
    asked          text, -- someone wants it undone, and why
    pivot          text, -- the step after which there is no way back; null: that was not passed
    waits          text, -- for what, in words
    result         text,
    error          text,
    cause          text, -- why it is undone
    parent         text, -- the id of the saga that started it
    correlation_id text,
    CONSTRAINT state_is_known
        CHECK (state IN ('running', 'waiting', 'compensating', 'done', 'undone', 'needs_operator', 'parked')),
    CONSTRAINT over_has_end CHECK ((state IN ('done', 'undone')) = (finished_at IS NOT NULL)),
    CONSTRAINT compensating_is_decided CHECK (state <> 'compensating' OR undoing)
);
-- One saga for each id.
CREATE UNIQUE INDEX saga_by_id ON holdfast.saga (id);
CREATE UNIQUE INDEX saga_of_job ON holdfast.saga (job_id);
CREATE INDEX saga_open ON holdfast.saga (state, seq) WHERE finished_at IS NULL;
CREATE INDEX saga_for_prune ON holdfast.saga (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX saga_by_story ON holdfast.saga (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX saga_of_parent ON holdfast.saga (parent) WHERE parent IS NOT NULL;

-- What was sent to a saga; the step that has it takes it from the others.
CREATE TABLE holdfast.saga_signal (
    seq      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    saga     bigint      NOT NULL REFERENCES holdfast.saga (seq) ON DELETE CASCADE,
    at       timestamptz NOT NULL DEFAULT holdfast.now(),
    name     text        NOT NULL,
    value    text        NOT NULL,
    taken_by text
);
CREATE INDEX saga_signal_by_name ON holdfast.saga_signal (saga, name, seq);

-- What a step waits for: a signal, the end of another saga, or an event of this type (and key).
CREATE TABLE holdfast.saga_wait (
    saga bigint NOT NULL REFERENCES holdfast.saga (seq) ON DELETE CASCADE,
    step text   NOT NULL,
    kind text   NOT NULL,
    name text   NOT NULL,
    key  text,
    PRIMARY KEY (saga, step),
    CONSTRAINT kind_is_known CHECK (kind IN ('signal', 'saga', 'event'))
);
CREATE INDEX saga_wait_for ON holdfast.saga_wait (kind, name, key);

-- How far what wakes sagas has read the log of events; null: it has not begun. Who looks for an event and finds none shares
-- this row until its commit, so that nothing is read past who waits for it.
CREATE TABLE holdfast.saga_reader (
    position bigint
);
INSERT INTO holdfast.saga_reader (position) VALUES (NULL);
