-- Values of cached functions, and who loads one now. Nothing here is the only copy of anything: all of it may be deleted.

-- A value counts while each of its tags has the generation that it had when the load began.
CREATE TABLE holdfast_cache (
    key         TEXT PRIMARY KEY,
    value       TEXT,                        -- JSON; null while it is loaded for the first time
    written_at  REAL,
    fresh_until REAL,
    stale_until REAL,                        -- it is not served after that
    tags        TEXT NOT NULL DEFAULT '[]',  -- JSON: pairs of tag and generation
    token       INTEGER,                     -- of who loads it
    lease_until REAL,
    rest_until  REAL,                        -- a load has failed: no refresh before that
    forget      REAL NOT NULL,               -- from then on the row may be deleted
    CHECK ((value IS NULL) = (written_at IS NULL) AND (value IS NULL) = (fresh_until IS NULL)
        AND (value IS NULL) = (stale_until IS NULL)),
    CHECK ((token IS NULL) = (lease_until IS NULL))
);
CREATE INDEX holdfast_cache_for_prune ON holdfast_cache (forget);

-- The generation of a tag is drawn anew when it is invalidated. A tag that is not here has none, and no value counts.
CREATE TABLE holdfast_cache_tag (
    tag        TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    forget     REAL    NOT NULL
) WITHOUT ROWID;
CREATE INDEX holdfast_cache_tag_for_prune ON holdfast_cache_tag (forget);
