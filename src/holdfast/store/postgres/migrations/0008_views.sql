-- Views: what projections make of events, how far they have read, and what they could not take.

-- One row for each generation of a view. While the next is being built, the one before it serves.
CREATE TABLE holdfast.view (
    view       text COLLATE "C" NOT NULL,
    generation bigint           NOT NULL,
    state      text             NOT NULL,
    start      bigint           NOT NULL,           -- it reads what is behind this position
    position   bigint           NOT NULL,           -- and has read up to here
    token      bigint           NOT NULL DEFAULT 0, -- of the lease that moved it there
    history    boolean          NOT NULL DEFAULT false,
    begun_at   timestamptz      NOT NULL,
    seen_at    timestamptz      NOT NULL,
    PRIMARY KEY (view, generation),
    CONSTRAINT state_is_known CHECK (state IN ('building', 'serving', 'old')),
    CONSTRAINT position_is_behind_start CHECK (generation > 0 AND position >= start)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.1);
CREATE UNIQUE INDEX view_serving ON holdfast.view (view) WHERE state = 'serving';
CREATE UNIQUE INDEX view_building ON holdfast.view (view) WHERE state = 'building';

CREATE TABLE holdfast.view_row (
    view       text COLLATE "C" NOT NULL,
    generation bigint           NOT NULL,
    key        text COLLATE "C" NOT NULL,
    data       text,                      -- JSON; null: it was deleted, and its version is remembered for a while
    source     text,                      -- the key of the events it is made of; null: several
    version    bigint,                    -- of the newest of them
    position   bigint           NOT NULL, -- of the newest event in it: only grows
    updated_at timestamptz      NOT NULL,
    forget     bigint,                    -- the minute from which on a deleted row may be forgotten
    PRIMARY KEY (view, generation, key),
    CONSTRAINT deleted_is_forgotten CHECK ((data IS NULL) = (forget IS NOT NULL)),
    CONSTRAINT source_has_version CHECK ((source IS NULL) = (version IS NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.1);
-- Nothing that every update changes is in an index, so that updates stay on their page.
CREATE INDEX view_row_for_prune ON holdfast.view_row (forget) WHERE forget IS NOT NULL;

-- Events that a projection could not take. The row of their key waits for them, and so do later events of that row.
CREATE TABLE holdfast.view_aside (
    view       text COLLATE "C" NOT NULL,
    generation bigint           NOT NULL,
    position   bigint           NOT NULL,
    event_id   uuid             NOT NULL,
    key        text COLLATE "C",
    event      text             NOT NULL, -- all of it: the log may be pruned before it is taken
    error      text             NOT NULL,
    tries      integer          NOT NULL DEFAULT 1,
    at         timestamptz      NOT NULL,
    tried_at   timestamptz      NOT NULL,
    PRIMARY KEY (view, generation, position)
);
CREATE INDEX view_aside_of_key ON holdfast.view_aside (view, generation, key);

-- The newest version of each key that a reader has seen.
CREATE TABLE holdfast.seen (
    reader  text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    version bigint           NOT NULL,
    day     bigint           NOT NULL, -- of the last change: it is in an index, so it changes once a day
    PRIMARY KEY (reader, key)
) WITH (fillfactor = 80, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.1);
CREATE INDEX seen_for_prune ON holdfast.seen (day);
