-- What a fleet's guards share. Rows are updated about once a second, so what changes with each update is in no index;
-- `forget` is the minute from which on a row may be deleted, and changes once a minute.

-- A bucket of quota for each limiter and key. It held `level` units at the moment `at`, and `rate` of them drain a second.
CREATE TABLE holdfast.bucket (
    name         text COLLATE "C"  NOT NULL,
    key          text COLLATE "C"  NOT NULL,
    level        double precision  NOT NULL,
    at           timestamptz       NOT NULL,
    rate         double precision  NOT NULL,
    drained      double precision  NOT NULL DEFAULT 0, -- units that could have drained since the row was made
    fastest      double precision  NOT NULL DEFAULT 0, -- the largest rate and burst that anybody has asked with lately,
    burst        double precision  NOT NULL DEFAULT 0,
    terms_until  timestamptz,                          -- and until when they count for all
    fewest       double precision  NOT NULL DEFAULT 0, -- with how many units the one who asked last could begin,
    granted      double precision  NOT NULL DEFAULT 0, -- and what was granted
    slowed       double precision,                     -- the rate that the other side has left us
    version      bigint            NOT NULL DEFAULT 0, -- of that rate
    lowered      bigint            NOT NULL DEFAULT 0, -- the version that it was last lowered to
    paused_until timestamptz,
    forget       bigint            NOT NULL,
    PRIMARY KEY (name, key),
    CONSTRAINT level_is_finite CHECK (level >= 0 AND level < 'infinity' AND rate > 0 AND rate < 'infinity')
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.1);
CREATE INDEX bucket_for_prune ON holdfast.bucket (forget);
CREATE INDEX bucket_slowed ON holdfast.bucket (name, slowed) WHERE slowed IS NOT NULL;
CREATE INDEX bucket_paused ON holdfast.bucket (name, paused_until) WHERE paused_until IS NOT NULL;

-- What the fleet and people have decided about a guard. Its generation only grows, so the row stays.
CREATE TABLE holdfast.guard (
    name             text COLLATE "C" NOT NULL PRIMARY KEY,
    generation       bigint           NOT NULL DEFAULT 0,
    reset_generation bigint           NOT NULL DEFAULT 0,
    opened_at        timestamptz,
    opened_until     timestamptz,
    held             text,
    held_by          text,
    held_at          timestamptz,
    CONSTRAINT held_is_known CHECK (held IN ('open', 'closed')),
    CONSTRAINT held_by_someone CHECK ((held IS NULL) = (held_by IS NULL) AND (held IS NULL) = (held_at IS NULL))
);

-- What each node says of its breaker, until it says it again or is not heard of any more.
CREATE TABLE holdfast.breaker (
    guard      text COLLATE "C" NOT NULL,
    node       text COLLATE "C" NOT NULL,
    state      text             NOT NULL,
    generation bigint           NOT NULL,
    open_for   double precision NOT NULL,
    calls      bigint           NOT NULL,
    failures   bigint           NOT NULL,
    slow       bigint           NOT NULL,
    at         timestamptz      NOT NULL,
    until      timestamptz      NOT NULL,
    forget     bigint           NOT NULL,
    PRIMARY KEY (guard, node),
    CONSTRAINT state_is_known CHECK (state IN ('closed', 'open', 'half_open'))
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.1);
CREATE INDEX breaker_for_prune ON holdfast.breaker (forget);

-- Permits for calls while a fleet's breaker is half open.
CREATE TABLE holdfast.probe (
    token  bigint           NOT NULL PRIMARY KEY,
    guard  text COLLATE "C" NOT NULL,
    node   text             NOT NULL,
    at     timestamptz      NOT NULL,
    until  timestamptz      NOT NULL,
    forget bigint           NOT NULL
);
CREATE INDEX probe_of_guard ON holdfast.probe (guard, until);
CREATE INDEX probe_for_prune ON holdfast.probe (forget);

-- So that the jobs that one guard holds are found among those of others.
CREATE INDEX job_gated ON holdfast.job (guard, rank) WHERE held = 'guard';
