-- Jobs that are not over live in holdfast.job; those that are over are moved to holdfast.history.
-- A job is ready when state = 'queued' and held is null.

-- The database's clock. Not now(), which stands still while a transaction waits for a lock.
-- A function of its own, so that tests can move it; the planner puts its body in place of the call.
CREATE FUNCTION holdfast.now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
    AS 'SELECT clock_timestamp()';

-- Fences holders: epoch * 2^40 + n.
CREATE SEQUENCE holdfast.token AS bigint START 1099511627777 CACHE 1;
-- Orders the ready.
CREATE SEQUENCE holdfast.rank AS bigint CACHE 1;

-- Which store this is: a caller's own connection must lead to the same one.
CREATE TABLE holdfast.store (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid()
);
INSERT INTO holdfast.store DEFAULT VALUES;

CREATE TABLE holdfast.job (
    id                uuid        NOT NULL PRIMARY KEY,
    rank              bigint      NOT NULL DEFAULT nextval('holdfast.rank'),
    token             bigint,
    enqueued_at       timestamptz NOT NULL DEFAULT holdfast.now(),
    lease_until       timestamptz,
    started_at        timestamptz,
    run_at            timestamptz,
    expires_at        timestamptz,
    deadline          timestamptz,
    attempt           integer     NOT NULL DEFAULT 0,
    interruptions     integer     NOT NULL DEFAULT 0,
    strikes           integer     NOT NULL DEFAULT 0,
    generation        integer     NOT NULL DEFAULT 0,
    concurrency_limit integer,
    slot              integer,
    priority          smallint    NOT NULL DEFAULT 0,
    suspect           boolean     NOT NULL DEFAULT false,
    alone             boolean     NOT NULL DEFAULT false,
    has_turn          boolean     NOT NULL DEFAULT false,
    bounded           boolean     NOT NULL DEFAULT false,
    state             text        NOT NULL DEFAULT 'queued',
    held              text,
    task              text        NOT NULL,
    queue             text        NOT NULL,
    args              text        NOT NULL,
    worker            text,
    unique_key        text,
    ordering_key      text,
    concurrency_key   text,
    tenant            text,
    guard             text,
    reason            text,
    errors            jsonb,
    correlation_id    text,
    causation_id      text,
    trace             text,
    CONSTRAINT state_is_live CHECK (state IN ('queued', 'running', 'dead', 'unknown')),
    CONSTRAINT running_has_lease CHECK ((state = 'running') = (lease_until IS NOT NULL)),
    CONSTRAINT held_is_queued CHECK (held IS NULL OR state = 'queued')
);

CREATE INDEX job_for_claim ON holdfast.job (queue, priority DESC, rank)
    WHERE state = 'queued' AND held IS NULL AND NOT suspect;
CREATE INDEX job_for_suspect ON holdfast.job (queue, rank)
    WHERE state = 'queued' AND held IS NULL AND suspect;
CREATE INDEX job_for_rescue ON holdfast.job (lease_until) WHERE state = 'running';
CREATE INDEX job_due ON holdfast.job (run_at) WHERE held = 'time';
CREATE INDEX job_arrived ON holdfast.job (rank) WHERE held = 'arrived';
CREATE INDEX job_held_by_hand ON holdfast.job (held, rank) WHERE held IN ('guard', 'unknown_task');
CREATE INDEX job_expiring ON holdfast.job (expires_at) WHERE expires_at IS NOT NULL AND state = 'queued';
CREATE INDEX job_bounded ON holdfast.job (task) WHERE bounded AND state = 'queued';
CREATE INDEX job_ended ON holdfast.job (state, rank) WHERE state IN ('dead', 'unknown');

-- One job that is not over for each unique key.
CREATE UNIQUE INDEX job_unique ON holdfast.job (unique_key) WHERE unique_key IS NOT NULL AND state <> 'dead';
-- One job whose turn it is for each ordering key; the others wait behind it in order.
CREATE UNIQUE INDEX job_turn ON holdfast.job (ordering_key) WHERE has_turn;
CREATE INDEX job_behind ON holdfast.job (ordering_key, rank) WHERE held = 'ordering';
-- One job for each slot of a concurrency key.
CREATE UNIQUE INDEX job_slot ON holdfast.job (concurrency_key, slot) WHERE slot IS NOT NULL;
CREATE INDEX job_for_slot ON holdfast.job (concurrency_key, priority DESC, rank) WHERE held = 'concurrency';
-- A tenant's ready jobs, and those that wait for its window.
CREATE INDEX job_tenant_ready ON holdfast.job (queue, tenant)
    WHERE tenant IS NOT NULL AND state = 'queued' AND held IS NULL;
CREATE INDEX job_for_window ON holdfast.job (queue, tenant, priority DESC, rank) WHERE held = 'tenant';

-- Rows come and go quickly: clean up after every few thousand, at full speed, before dead rows slow the claims.
ALTER TABLE holdfast.job SET (
    autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_threshold = 5000, autovacuum_analyze_scale_factor = 0.05
);

-- One partition a day of finishing, dropped whole; the default one catches what no day was prepared for.
CREATE TABLE holdfast.history (
    id              uuid        NOT NULL,
    token           bigint,
    enqueued_at     timestamptz NOT NULL,
    started_at      timestamptz,
    finished_at     timestamptz NOT NULL,
    attempt         integer     NOT NULL,
    interruptions   integer     NOT NULL,
    generation      integer     NOT NULL,
    priority        smallint    NOT NULL,
    state           text        NOT NULL,
    task            text        NOT NULL,
    queue           text        NOT NULL,
    args            text        NOT NULL,
    worker          text,
    reason          text,
    result          text,
    errors          jsonb,
    unique_key      text,
    ordering_key    text,
    concurrency_key text,
    tenant          text,
    guard           text,
    correlation_id  text,
    causation_id    text,
    trace           text,
    CONSTRAINT state_is_over CHECK (state IN ('succeeded', 'cancelled'))
) PARTITION BY RANGE (finished_at);
CREATE INDEX history_by_id ON holdfast.history (id);
CREATE TABLE holdfast.history_rest PARTITION OF holdfast.history DEFAULT;

CREATE TABLE holdfast.queue (
    name      text        NOT NULL PRIMARY KEY,
    paused_by text        NOT NULL,
    paused_at timestamptz NOT NULL DEFAULT holdfast.now()
);
