-- Values of cached functions, and who loads one now. Nothing here is the only copy of anything: all of it may be deleted.
-- So the tables are not logged: a write costs no disk, and a crash of the server, or a fail-over, empties both of them.

-- A value counts while each of its tags has the generation that it had when the load began.
CREATE UNLOGGED TABLE holdfast.cache (
    key         text COLLATE "C"  NOT NULL PRIMARY KEY,
    value       text,                                   -- JSON; null while it is loaded for the first time
    written_at  timestamptz,
    fresh_until timestamptz,
    stale_until timestamptz,                            -- it is not served after that
    tags        text[]            NOT NULL DEFAULT '{}',
    generations bigint[]          NOT NULL DEFAULT '{}',
    token       bigint,                                 -- of who loads it
    lease_until timestamptz,
    rest_until  timestamptz,                            -- a load has failed: no refresh before that
    forget      timestamptz       NOT NULL,             -- from then on the row may be deleted
    CONSTRAINT value_has_times CHECK ((value IS NULL) = (written_at IS NULL) AND (value IS NULL) = (fresh_until IS NULL)
        AND (value IS NULL) = (stale_until IS NULL)),
    CONSTRAINT load_has_lease CHECK ((token IS NULL) = (lease_until IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.1);
CREATE INDEX cache_for_prune ON holdfast.cache (forget);

-- The generation of a tag is drawn anew when it is invalidated. A tag that is not here has none, and no value counts.
CREATE UNLOGGED TABLE holdfast.cache_tag (
    tag        text COLLATE "C" NOT NULL PRIMARY KEY,
    generation bigint           NOT NULL,
    forget     timestamptz      NOT NULL
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.1);
CREATE INDEX cache_tag_for_prune ON holdfast.cache_tag (forget);
