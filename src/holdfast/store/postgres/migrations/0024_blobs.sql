-- What is kept of each blob: its row says where its object is. `object` is never given to another: a late mover removes nothing new.
CREATE TABLE holdfast.blob (
    name         text COLLATE "C" NOT NULL PRIMARY KEY,
    object       text COLLATE "C" NOT NULL UNIQUE,
    state        text        NOT NULL CHECK (state IN ('kept', 'quarantined', 'deleted', 'purging', 'missing')),
    settled      boolean     NOT NULL,
    size         bigint      NOT NULL CHECK (size >= 0),
    sha256       text        NOT NULL CHECK (length(sha256) = 64),
    content_type text        NOT NULL,
    reason       text,
    created_at   timestamptz NOT NULL,
    changed_at   timestamptz NOT NULL
);
CREATE INDEX blob_to_settle ON holdfast.blob (changed_at) WHERE NOT settled;
CREATE INDEX blob_to_purge ON holdfast.blob (changed_at) WHERE state IN ('deleted', 'purging');
CREATE INDEX blob_to_decide ON holdfast.blob (state, name) WHERE state IN ('quarantined', 'missing');
