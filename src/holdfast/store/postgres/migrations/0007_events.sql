-- Events: the outbox that a relay publishes from, the inbox that lets a group handle each event once, and what could not
-- be understood.

-- The newest position in the log of published events. Whoever stamps holds this one row until the commit, so what is
-- behind a position is complete.
CREATE TABLE holdfast.event_position (
    value bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO holdfast.event_position (value) VALUES (0);

-- The newest version of each key. A row stays when its events are forgotten, so that versions never go back.
CREATE TABLE holdfast.event_key (
    key     text   NOT NULL PRIMARY KEY,
    version bigint NOT NULL
) WITH (fillfactor = 80);

-- Whatever is `held` is not looked at by who reads what waits, in order.
CREATE TABLE holdfast.outbox (
    seq            bigint      NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id             uuid        NOT NULL,
    version        bigint,
    position       bigint,
    time           timestamptz NOT NULL DEFAULT holdfast.now(),
    published_at   timestamptz,
    rest_until     timestamptz, -- of one that failed and blocks nobody: when it may be tried again
    tries          integer     NOT NULL DEFAULT 0,
    held           boolean     NOT NULL DEFAULT false, -- it failed, or stands behind one of its key that did
    state          text        NOT NULL DEFAULT 'waiting',
    type           text        NOT NULL,
    key            text,
    data           text        NOT NULL,
    correlation_id text,
    causation_id   text,
    trace          text,
    error          text,
    CONSTRAINT state_is_known CHECK (state IN ('waiting', 'published', 'quarantined')),
    CONSTRAINT published_has_position CHECK (
        (state = 'published') = (position IS NOT NULL) AND (position IS NULL) = (published_at IS NULL)),
    CONSTRAINT key_has_version CHECK ((key IS NULL) = (version IS NULL))
);
CREATE UNIQUE INDEX outbox_by_id ON holdfast.outbox (id);
CREATE UNIQUE INDEX outbox_by_version ON holdfast.outbox (key, version) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX outbox_log ON holdfast.outbox (position) WHERE position IS NOT NULL;
CREATE INDEX outbox_for_relay ON holdfast.outbox (seq) WHERE state = 'waiting' AND NOT held;
CREATE INDEX outbox_resting ON holdfast.outbox (rest_until) WHERE state = 'waiting' AND rest_until IS NOT NULL;
CREATE INDEX outbox_behind ON holdfast.outbox (key, version) WHERE held AND rest_until IS NULL;
CREATE INDEX outbox_aside ON holdfast.outbox (state, seq) WHERE held AND state <> 'published';
CREATE INDEX outbox_by_correlation ON holdfast.outbox (correlation_id, seq) WHERE correlation_id IS NOT NULL;

-- Rows are published soon after they came: clean up as often as among the jobs.
ALTER TABLE holdfast.outbox SET (
    autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_threshold = 5000, autovacuum_analyze_scale_factor = 0.05
);

-- A key that waits: nothing of it from this version on is published before its time; null: before a person says so.
CREATE TABLE holdfast.event_block (
    key     text   NOT NULL PRIMARY KEY,
    version bigint NOT NULL,
    until   timestamptz
);
CREATE INDEX event_block_due ON holdfast.event_block (until) WHERE until IS NOT NULL;

-- How far each group has read the log.
CREATE TABLE holdfast.event_group (
    name     text        NOT NULL PRIMARY KEY,
    position bigint      NOT NULL,
    seen_at  timestamptz NOT NULL
) WITH (fillfactor = 50);

-- The primary key is the promise: a group has one delivery of each event.
CREATE TABLE holdfast.inbox (
    group_name text        NOT NULL,
    event_id   text        NOT NULL,
    job_id     uuid,
    at         timestamptz NOT NULL,
    handled_at timestamptz,
    PRIMARY KEY (group_name, event_id)
) WITH (fillfactor = 80);
CREATE INDEX inbox_for_prune ON holdfast.inbox (at);
ALTER TABLE holdfast.inbox SET (
    autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_threshold = 5000, autovacuum_analyze_scale_factor = 0.05
);

-- What each member of a group hears, for as long as it is heard of: two versions of a program may run at once.
CREATE TABLE holdfast.event_member (
    group_name text        NOT NULL,
    member     text        NOT NULL,
    hears      text        NOT NULL,
    until      timestamptz NOT NULL,
    PRIMARY KEY (group_name, member)
) WITH (fillfactor = 50);

CREATE TABLE holdfast.stray (
    id         bigint      NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT holdfast.now(),
    hash       bytea       NOT NULL,
    transport  text        NOT NULL,
    group_name text        NOT NULL,
    reason     text        NOT NULL,
    raw        bytea       NOT NULL
);
CREATE UNIQUE INDEX stray_once ON holdfast.stray (hash);

-- One story is found by its correlation id, whatever became of its jobs.
CREATE INDEX job_by_correlation ON holdfast.job (correlation_id, id) WHERE correlation_id IS NOT NULL;
CREATE INDEX history_by_correlation ON holdfast.history (correlation_id, id) WHERE correlation_id IS NOT NULL;
